"""Tasks of dask: named, sent once, and waited for no longer than there is a scheduler."""

from __future__ import annotations

import ctypes
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

# Of glibc's malloc.h, in bytes: what is free at the end of the heap and kept (M_TRIM_THRESHOLD),
# and from what size on memory comes from the system and goes back to it (M_MMAP_THRESHOLD).
MALLOC = {-1: 2**26, -3: 2**25}


def task(name: str, i: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make tasks of a function that dask's dashboard shows as ``tauten-name``."""
    import dask

    key = f"tauten-{name}-{uuid.uuid4().hex}-{i}"

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        make = dask.delayed(fn, pure=False, traverse=False)
        return lambda *args: make(*args, dask_key_name=key)

    return wrap


class Work:
    """Functions that dask is not to call, but to hand on."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn


def shared(fn: Any) -> Any:
    """Functions, with the points they hold, as one task: sent once, not with every block."""
    import dask

    return dask.delayed(Work(fn), name=f"tauten-point-{uuid.uuid4().hex}", traverse=False)


def computed(*tasks: Any) -> list[Any]:
    """What the tasks find."""
    import dask

    with _loss_told():
        return list(dask.compute(*tasks))


@contextmanager
def _loss_told() -> Iterator[None]:
    """Work that a scheduler has lost, said in words."""
    check_scheduler()
    try:
        yield
    except CancelledError as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise ConnectionError(
            f"the work sent to dask was lost: {reason}. If the scheduler or the client has ended, "
            f"connect to a running one and fit again; with checkpoint=path a fit goes on from its "
            f"last iteration"
        ) from error


def persisted(tasks: list[Any]) -> list[Any]:
    """The tasks, begun; what they find stays where it is."""
    import dask

    check_scheduler()
    return list(dask.persist(*tasks))


def places(tasks: list[Any]) -> list[Any]:
    """The worker that holds what each of the tasks found, if any does: waits for those begun."""
    client = _client()
    if not hasattr(client, "who_has"):  # no cluster, so no workers
        return [None] * len(tasks)
    from distributed import futures_of, wait

    with _loss_told():
        wait(futures_of(tasks))
        holders = client.who_has(futures_of(tasks))
    return [min(holders.get(each.key, ()), default=None) for each in tasks]


def keep_memory() -> None:
    """Let a worker process keep some megabytes of memory that it will need again in a moment.

    dask starts workers with an allocator that gives back every page at once (the environment's
    MALLOC_TRIM_THRESHOLD_). A pass makes the same arrays for each chunk, and would wait for the
    system to clear the same pages for each.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc's allocator
        return
    for option, size in MALLOC.items():
        set_option(option, size)


def check_scheduler() -> None:
    """Raise if the scheduler in use is a cluster's that is gone: its client would wait for ever."""
    client = _client()
    status = getattr(client, "status", "running")
    if status != "running":
        raise ConnectionError(
            f"the dask scheduler cannot be reached: the client {client!r} is {status!r}. Close it, "
            f"connect to a running scheduler and fit again; with checkpoint=path a fit goes on "
            f"from its last iteration"
        )


def _client() -> Any:
    """The client of the cluster in use; of other schedulers None."""
    import dask

    return getattr(dask.base.get_scheduler(), "__self__", None)  # others are functions
