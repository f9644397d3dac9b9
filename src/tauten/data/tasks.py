"""Tasks of dask: named, sent once, and waited for no longer than there is a scheduler."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 1.0  # seconds that a worker may take to answer the first time


def task(
    name: str, i: int, at: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make tasks of a function that dask's dashboard shows as ``tauten-name``.

    They go to the worker `at`, where there is one and it lives: left alone, dask may find it
    quicker to move a block of samples than to wait for the worker that holds it.
    """
    import dask

    key = f"tauten-{name}-{uuid.uuid4().hex}-{i}"
    where = {} if at is None else {"workers": [at], "allow_other_workers": True}

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any) -> Any:
            with dask.annotate(**where):
                return dask.delayed(fn, pure=False, traverse=False)(*args, dask_key_name=key)

        return make

    return wrap


class Work:
    """Functions that dask is not to call, but to hand on."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn


def shared(fn: Any) -> Any:
    """Functions, with the points they hold, as one task: sent once, not with every block."""
    import dask

    return dask.delayed(Work(fn), name=f"tauten-point-{uuid.uuid4().hex}", traverse=False)


def computed(*tasks: Any, at: Collection[str | None] = ()) -> list[Any]:
    """What the tasks find, brought here through the scheduler.

    Or, if all of the workers `at` can be reached from here, straight from the workers: for what is
    large and rarely asked for. Where one dies on the way, dask waits for it a while
    (``distributed.comm.timeouts.connect``) before the work is done again.
    """
    import dask

    check_scheduler()
    directly = {"direct": True} if at and all(map(_answers, at)) else {}
    try:
        return list(dask.compute(*tasks, **directly))
    except CancelledError as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise ConnectionError(
            f"the work sent to dask was lost: {reason}. If the scheduler or the client has ended, "
            f"connect to a running one and fit again; with checkpoint=path a fit goes on from its "
            f"last iteration"
        ) from error


@lru_cache(maxsize=2**16)
def _answers(worker: str | None) -> bool:
    """Whether a worker can be reached from here: there may be a wall around the cluster."""
    if worker is None:
        return False
    place = urlsplit(worker)
    try:
        with socket.create_connection((place.hostname, place.port), PATIENCE):
            return True
    except OSError:
        return False


def persisted(tasks: list[Any]) -> list[Any]:
    """The tasks, begun; what they find stays where it is."""
    import dask

    check_scheduler()
    return list(dask.persist(*tasks))


def places(tasks: list[Any]) -> list[str | None]:
    """The worker that holds what each of the begun tasks found; None where none does, or not yet.

    Where to add sums is worth knowing, not worth waiting or failing for.
    """
    holders = _told("who_has", tasks)
    return [min(holders.get(each.key, ()), default=None) for each in tasks]


def threads_of_workers() -> dict[str, int]:
    """How many tasks each worker does at once; none known where there are no workers."""
    return _told("nthreads")


def _told(question: str, *about: Any) -> dict[Any, Any]:
    """What the scheduler of a cluster answers; nothing where there is none."""
    ask = getattr(_client(), question, None)
    try:
        return {} if ask is None else dict(ask(*about))
    except OSError:  # the scheduler is gone: whoever needs it will say so
        return {}


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
