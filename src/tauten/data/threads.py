"""Threads that go over the samples, and what they share with linear algebra."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import threadpoolctl

from .._lazy import lazy

WORTH_WAKING = 2e9  # operations of linear algebra, a tenth of a second on one core


class Team:
    """Threads that share the chunks of a pass; they are started when first needed, and kept.

    Parameters
    ----------
    size : int, optional
        How many; by default as many as :func:`available_threads`.
    """

    def __init__(self, size: int | None = None) -> None:
        self._asked = size
        self._pools: dict[int, ThreadPoolExecutor] = {}

    @classmethod
    def of(cls, threads: int | Team | None) -> Team:
        """A team from how many it shall have; a team as it is."""
        return threads if isinstance(threads, Team) else cls(threads)

    @lazy
    def size(self) -> int:
        """How many threads there are."""
        return self._asked or available_threads()

    def map(self, work: Callable[[Any], Any], shares: Iterable[Any]) -> list[Any]:
        """Do the work on each share, one after the other by who is free; in the order of shares.

        The caller is one of the threads, so that it need not wait for others to wake, and linear
        algebra keeps to one. What numpy does about overflow is each thread's own: the others do as
        the caller does. After an error no more shares are begun.
        """
        shares = list(shares)
        others = min(self.size, len(shares)) - 1
        if others < 1:
            return list(map(work, shares))
        todo, found, caution = deque(enumerate(shares)), [None] * len(shares), np.geterr()

        def next_share() -> tuple[int, Any] | None:
            with suppress(IndexError):  # there is none left
                return todo.popleft()
            return None

        def take_part() -> None:
            try:
                for place, share in iter(next_share, None):
                    found[place] = work(share)
            finally:
                todo.clear()  # after an error too

        def help_out() -> None:
            with np.errstate(**caution):
                take_part()

        helpers: list[Future[None]] = []
        failed = error = None
        with BLAS.single():
            try:
                for _ in range(others):
                    helpers.append(self._pool().submit(help_out))
                take_part()
            finally:  # who has not begun by now need not; the others end
                todo.clear()
                while helpers:
                    helper = helpers.pop()
                    error = None if helper.cancel() else helper.exception()
                    failed = error if failed is None else failed
        if failed is None:
            return found
        try:
            raise failed
        finally:
            del failed, error, helper  # else the error keeps itself alive, and the samples

    def _pool(self) -> ThreadPoolExecutor:
        """The threads of this process: a fork takes none of its parent's along."""
        if os.getpid() not in self._pools:
            pool = ThreadPoolExecutor(self.size - 1, thread_name_prefix="tauten")
            self._pools[os.getpid()] = pool
        return self._pools[os.getpid()]

    def __reduce__(self) -> tuple[type, tuple[int | None]]:
        return Team, (self._asked,)  # threads stay where they are


class _LinearAlgebra:
    """BLAS kept to one thread while ours run: its threads and ours would wait for each other.

    The limit belongs to the whole process, so passes that overlap in time share it: the first sets
    it, the last lifts it. A fork happens while no one sets or lifts it, and its child has none.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._limits = threading.Lock(), 0, ExitStack()
        self._before = 1
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._begin_anew,
            )

    def _begin_anew(self) -> None:
        self._users = 0
        self._lift()
        self._lock.release()

    def _set(self) -> None:
        _take_control()
        # of BLAS alone: those of OpenMP are each thread's own, and another may lift ours
        self._limits.enter_context(self._pools.select(user_api="blas").limit(limits=1))

    def _lift(self) -> None:
        _take_control()
        self._limits.close()
        _take_control()  # and leave it to whoever is next

    def threads(self) -> int:
        """Fewest threads of a library of linear algebra or of loops; our own limit is no limit."""
        with self._lock:
            return self._before if self._users else _fewest(self._pools.info())

    @contextmanager
    def single(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._before = _fewest(self._pools.info())
                self._set()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users = max(0, self._users - 1)  # none in a fork of who was inside
                if self._users == 0:
                    self._lift()

    @contextmanager
    def all_for(self, operations: float) -> Iterator[None]:
        """Within :meth:`single`, let a product or a factorisation of this size have all threads.

        Only if it is worth their waking: afterwards they spin for a while, in the way of ours.
        """
        with self._lock:
            freed = self._users > 0 and operations >= WORTH_WAKING
            if freed:
                self._lift()
        try:
            yield
        finally:
            with self._lock:
                if freed and self._users > 0:
                    self._set()

    @lazy
    def _pools(self) -> threadpoolctl.ThreadpoolController:
        return threadpoolctl.ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limits of OpenBLAS, whoever did before.

    From threadpoolctl 3.8 on, only the thread that set one may set another, as long as it lives;
    ours is set by the first thread of several, and lifted by the last.
    """
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


BLAS = _LinearAlgebra()


def available_threads(n_jobs: int | None = None) -> int:
    """Threads that this process may use: cores of its container, limits of linear algebra.

    So that ``threadpoolctl.threadpool_limits(1)``, ``OMP_NUM_THREADS=1`` and the workers of joblib
    mean here what they mean for BLAS.

    Parameters
    ----------
    n_jobs : int, optional
        At most so many of them; -1 is all of them, -2 all but one, and so on.

    Examples
    --------
    >>> with threadpoolctl.threadpool_limits(1):
    ...     available_threads(), available_threads(4)
    (1, 1)
    """
    found = max(1, min(joblib.cpu_count(), BLAS.threads()))
    if n_jobs is None:
        return found
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of threads, -1 for as many as there are, or None; got "
            f"{n_jobs!r}"
        )
    return int(min(n_jobs, found) if n_jobs > 0 else max(1, found + 1 + n_jobs))


def _fewest(pools: list[dict[str, Any]]) -> int:
    return min((pool["num_threads"] for pool in pools), default=joblib.cpu_count())
