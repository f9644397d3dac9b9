"""Samples on disk: passes over files, reading ahead, within a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .._array import Array, quiet
from .base import Chunk, Samples, add_up, rows_within
from .rows import Kept, Rows
from .stored import Stored
from .threads import Team

# Of the memory allowed: two slabs (one in use, one read ahead) take 2/5, the samples that start and
# thresholds look at 1/4, and what is computed from them the rest. Threads that hand a slab on wait
# for each other, so that few large ones are faster.
SLAB_SHARE = 5

Room = dict[int, np.ndarray]  # memory that samples are read into, for each array on disk


class Files(Samples):
    """Samples of which some are on disk; each slab of them is a :class:`Rows` for a while.

    Parameters
    ----------
    X, y, Z, weight : see :class:`tauten.data.Samples`
        X or y, or both, a :class:`tauten.data.stored.Stored`.
    memory : int
        Bytes that may be used, beside what the interpreter and its libraries take.
    threads : int or Team, optional
        As for :class:`Rows`, for what is in memory; one more reads ahead.
    """

    def __init__(
        self,
        X: Array | None,
        y: Array,
        Z: Array | None = None,
        weight: Array | None = None,
        *,
        memory: int,
        threads: int | Team | None = None,
    ) -> None:
        super().__init__(X, y, Z, weight)
        self.memory = memory
        self._stored = [a for a in (X, y) if isinstance(a, Stored)]
        self._row_bytes = sum(a.row_bytes for a in self._stored)
        self.slab = self._slab_rows()
        self.threads = Team.of(threads)
        self._kept, self._checked = Kept(), False
        self._rooms: list[Room] = []  # of slabs that are done with

    def _slab_rows(self) -> int:
        """Samples per slab: as many as the budget holds, whole chunks of the file."""
        chunk = self.main.chunk if isinstance(self.main, Stored) else 1
        rows = self.memory // SLAB_SHARE // max(self._row_bytes, 1)
        if rows >= chunk:
            return min(self.n, rows // chunk * chunk)
        if 3 * chunk * self._row_bytes > self.memory:
            raise ValueError(
                f"memory must be at least {3 * chunk * self._row_bytes} bytes for {self.main}: its "
                f"file stores {chunk} sample(s) of {self._row_bytes} bytes together, and up to "
                f"three times as much is held; got {self.memory}"
            )
        return min(self.n, chunk)

    @property
    def nbytes(self) -> int:
        """Bytes of what is on disk, in memory."""
        return self.n * self._row_bytes

    def whole(self) -> Rows:
        """Return all the samples, in memory: one pass."""
        rows = Rows(*self._arrays(slice(0, self.n)), threads=self.threads)
        check_samples(rows.X, rows.y, 0)
        rows.reads.passes = 1
        return rows

    @property
    def reference(self) -> np.ndarray:
        """What is read is numpy's."""
        return np.empty(0, self.main.dtype)

    @property
    def room(self) -> int:
        """Samples that a quarter of the memory holds."""
        return min(self.n, rows_within(self.memory, self._row_bytes))

    def spread(self, fn: Callable[[Any], Any], shares: Sequence[Any]) -> list[Any]:
        """Apply `fn` to shares of some other work, on the threads for what is in memory."""
        return self.threads.map(fn, shares)

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]], width: int | None = None) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item: one pass."""
        work = self._checking(fn)
        return add_up(rows.map_sum(work, width) for rows in self._slabs())

    def map_rows(self, fn: Callable[[Chunk], Array], width: int | None = None) -> np.ndarray:
        """Apply `fn` to each chunk and join what it returns along axis 0: one pass."""
        work = self._checking(fn)
        return np.concatenate([rows.map_rows(work, width) for rows in self._slabs()])

    def _checking(self, fn: Callable[[Chunk], Any]) -> Callable[[Chunk], Any]:
        """The function, which in the first pass makes sure that its samples are finite."""
        if self._checked:
            return fn

        def checked(chunk: Chunk) -> Any:
            check_samples(chunk.X, chunk.y, chunk.start)
            return fn(chunk)

        return checked

    def each(self, name: str, fn: Callable[[Array], Any]) -> list[Any]:
        """Apply `fn` to ``y`` or ``Z`` alone, part by part: X is not read."""
        array = getattr(self, name)
        if not isinstance(array, Stored):
            return [fn(array)]
        if array is self.main:
            self.reads.passes += 1
        return [fn(part) for part in array.parts()]

    def reweight(self, weight: Array) -> Files:
        """Return the same samples with other weights; their reads are counted together."""
        other = Files(self.X, self.y, self.Z, weight, memory=self.memory, threads=self.threads)
        other.reads, other._kept, other._checked = self.reads, self._kept, self._checked
        other._rooms, other._looked_at = self._rooms, self._looked_at
        return other

    def _slabs(self) -> Iterator[Rows]:
        """Go over the samples; the next slab is read while the present one is in use."""
        self.reads.passes += 1
        self._check_unchanged()
        starts, rooms = range(0, self.n, self.slab), [self._room(), self._room()]
        with ThreadPoolExecutor(1, thread_name_prefix="tauten-read") as reader:
            ahead = reader.submit(self._load, starts[0], rooms[0])
            for k, start in enumerate(starts[1:], start=1):  # the slab before the last is done with
                rows, ahead = ahead.result(), reader.submit(self._load, start, rooms[k % 2])
                yield rows
            yield ahead.result()
        self._rooms += rooms
        self._check_unchanged()
        self._checked = True

    def _room(self) -> Room:
        """Memory for a slab, that of an earlier pass if there was one."""
        try:
            return self._rooms.pop()
        except IndexError:
            return {id(array): array.room(self.slab) for array in self._stored}

    def _load(self, start: int, room: Room) -> Rows:
        arrays = self._arrays(slice(start, min(start + self.slab, self.n)), room)
        return Rows(*arrays, threads=self.threads, start=start, kept=self._kept)

    def _arrays(
        self, rows: slice | np.ndarray, room: Room | None = None
    ) -> list[np.ndarray | None]:
        def part(array: Array | None) -> np.ndarray | None:
            if array is None:
                return None
            if room is not None and isinstance(rows, slice) and isinstance(array, Stored):
                return array.read(rows.start, rows.stop, room[id(array)])
            return array[rows]

        return [part(array) for array in (self.X, self.y, self.Z, self.weight)]

    def _read_sample(self, rows: range | np.ndarray) -> Chunk:
        rows = np.asarray(rows)
        touched = [a.touched(rows) for a in self._stored]
        self.reads.passes += max(touched) / self.n
        self._check_unchanged()
        X, y, Z, weight = self._arrays(rows)
        check_samples(X, y, 0)
        return Chunk(X, y, Z, weight, 0)

    def _check_unchanged(self) -> None:
        for array in self._stored:
            array.check_unchanged()


def check_samples(X: np.ndarray | None, y: np.ndarray | None, start: int) -> None:
    """Raise unless covariates are finite, and responses too, which in PCA may be missing."""
    check_finite("X", X, start)
    check_finite("y", y, start, missing=X is None)


def check_finite(name: str, array: np.ndarray | None, start: int, *, missing: bool = False) -> None:
    """Raise if samples from index `start` on hold infinities, or nan where none may be missing."""
    if array is None:
        return
    with quiet():
        if np.isfinite(np.sum(array, dtype=np.float64)):  # one read, no temporary
            return
    wrong = np.isinf(array) if missing else ~np.isfinite(array)
    rows = np.flatnonzero(wrong.reshape(len(array), -1).any(axis=1))
    if len(rows):
        raise ValueError(
            f"{name} must hold finite numbers; one of its samples from {start} to "
            f"{start + len(array)} contains {'infinity' if missing else 'NaN or infinity'}. Remove "
            f"or replace such values in the file"
        )
