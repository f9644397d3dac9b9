"""Samples on the workers of a dask cluster: only points and sums travel."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from .._array import Array, quiet
from ..exceptions import ChunksWarning
from .base import Chunk, Samples, add_up, rows_within
from .files import check_finite, check_samples
from .memory import keep_memory_of_worker
from .rows import Rows
from .tasks import (
    Work,
    check_scheduler,
    computed,
    persisted,
    places,
    shared,
    task,
    threads_of_workers,
)
from .threads import BLAS

FAN_IN = 8  # sums that a task of the tree adds up


def is_dask(value: Any) -> bool:
    """Whether a value is a dask array, without importing dask."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(value, dask.Array)


def check_blocks(name: str, array: Any) -> Any:
    """Return a dask array of floats whose blocks hold whole samples."""
    if any(np.isnan(size) for size in array.shape):
        raise ValueError(
            f"{name} must have chunks of known sizes; call {name}.compute_chunk_sizes() first"
        )
    if any(count > 1 for count in array.numblocks[1:]):
        warnings.warn(
            f"{name} is chunked along axes other than the samples'; they are merged, which moves "
            f"data between workers. Chunk along axis 0 only: {name}.rechunk({{0: 'auto', "
            f"{', '.join(f'{k}: -1' for k in range(1, array.ndim))}}})",
            ChunksWarning,
            stacklevel=2,
        )
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers; got a dask array of {array.dtype}")
    return array.astype(np.float64)


class Blocks(Samples):
    """Samples in a dask array: one :class:`Rows` per block, kept where the scheduler put it.

    Parameters
    ----------
    X, y, Z, weight : see :class:`tauten.data.Samples`
        X, or in PCA y, a dask array; the others dask arrays of the same chunks, or in memory.
    memory : int
        Bytes that the samples brought to this process may take.
    keep : bool
        Whether to keep the blocks in the workers' memory: for many passes, not for one.
    """

    def __init__(
        self,
        X: Array | None,
        y: Array,
        Z: Array | None = None,
        weight: Array | None = None,
        *,
        memory: int,
        keep: bool = True,
    ) -> None:
        super().__init__(X, y, Z, weight)
        self.memory, self.keep = memory, keep
        self.sizes = tuple(int(size) for size in self.main.chunks[0])
        self.starts = (0, *accumulate(self.sizes))
        for name, array in (("y", y), ("covariates", Z)):
            self._check_chunks(name, array)
        parts = zip(*(self._parts(a) for a in (X, y, Z, weight)), strict=True)
        self._blocks = self._kept(
            [task("load", i)(_load)(*part, self.starts[i]) for i, part in enumerate(parts)]
        )

    def _check_chunks(self, name: str, array: Array) -> None:
        if is_dask(array) and array.chunks[0] != self.main.chunks[0]:
            raise ValueError(
                f"{name} must be chunked like X along axis 0, in blocks of {_short(self.sizes)} "
                f"samples; got blocks of {_short(array.chunks[0])}. Use {name}.rechunk({{0: "
                f"X.chunks[0]}})"
            )

    def _parts(self, array: Array) -> list[Any]:
        """The blocks of an array: of a dask array tasks, of others slices."""
        if is_dask(array):
            return list(array.to_delayed().ravel())
        ends = pairwise(self.starts)
        return [None if array is None else array[low:high] for low, high in ends]

    def _kept(self, tasks: list[Any]) -> list[Any]:
        return persisted(tasks) if self.keep else tasks

    @property
    def reference(self) -> np.ndarray:
        """What a block holds is numpy's."""
        return np.empty(0, self.main.dtype)

    @property
    def room(self) -> int:
        """Samples that a quarter of the memory holds."""
        row_bytes = self.main.dtype.itemsize * int(np.prod(self.main.shape[1:]))
        return min(self.n, rows_within(self.memory, row_bytes))

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]], width: int | None = None) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item: one pass."""
        return self.map_sums(lambda chunks: fn(chunks[0]), [self], width)

    def map_sums(
        self,
        fn: Callable[[list[Chunk]], Sequence[Any]],
        weighings: Sequence[Any],
        width: int | None = None,
    ) -> list[Any]:
        """Sums with several weights in one pass; the weights are where the blocks are."""
        self.reads.passes += 1
        groups = self._groups()
        # Sent with each of a few tasks; one more task, that workers hand on, where they are many.
        work = Work(fn) if len(groups) <= FAN_IN else shared(fn)
        sums = []
        for i, (holder, held) in enumerate(groups):
            blocks = [data._blocks[place] for place in held for data in weighings]
            sums.append(task("sum", i, holder)(_sums)(work, len(weighings), width, *blocks))
        return list(computed(_added(sums))[0])

    def _groups(self) -> list[tuple[str | None, Sequence[int]]]:
        """Blocks that a task goes over and adds up: those that a worker holds, by its threads.

        Tasks cost messages. Where it is not known who holds what, there is one for each block.
        """
        by_holder: dict[str, list[int]] = {}
        for place, holder in enumerate(self._holders()):
            if holder is None:
                return [(None, [i]) for i in range(len(self._blocks))]
            by_holder.setdefault(holder, []).append(place)
        threads = threads_of_workers()
        return [
            (holder, held[t :: threads.get(holder, 1)])
            for holder, held in by_holder.items()
            for t in range(min(len(held), threads.get(holder, 1)))
        ]

    def _holders(self) -> list[str | None]:
        """The worker that holds each block: asked for each pass, as blocks move and workers die.

        None of all while some are not loaded yet.
        """
        found = places(self._blocks) if self.keep else []
        return [None] * len(self.sizes) if None in found or not found else found

    def map_rows(self, fn: Callable[[Chunk], Array], width: int | None = None) -> Any:
        """Apply `fn` to each chunk and join what it returns along axis 0: a dask array."""
        import dask.array as da

        check_scheduler()  # what is made here may be computed elsewhere
        self.reads.passes += 1
        work, like = shared(fn), self._one(fn)
        parts = zip(self.sizes, self._blocks, self._holders(), strict=True)
        blocks = [
            da.from_delayed(
                task("rows", i, holder)(_rows)(work, width, block),
                (size, *like.shape[1:]),
                dtype=like.dtype,
            )
            for i, (size, block, holder) in enumerate(parts)
        ]
        return da.concatenate(blocks, axis=0)

    def _one(self, fn: Callable[[Chunk], Array]) -> np.ndarray:
        """What `fn` returns for one sample of zeros: its shape and type are those of any other."""

        def zeros(array: Array | None) -> np.ndarray | None:
            return None if array is None else np.zeros((1, *array.shape[1:]), self.main.dtype)

        with quiet():
            return fn(Chunk(zeros(self.X), zeros(self.y), zeros(self.Z), zeros(self.weight), 0))

    def each(self, name: str, fn: Callable[[Array], Any]) -> list[Any]:
        """Apply `fn` to each block's ``y`` or ``Z``, on the workers."""
        work = shared(fn)
        parts = enumerate(zip(self._blocks, self._holders(), strict=True))
        return computed(*(task("each", i, at)(_each)(work, b, name) for i, (b, at) in parts))

    def reweight(self, weight: Array) -> Blocks:
        """Return the same samples with other weights; the blocks stay where they are."""
        other = object.__new__(Blocks)
        other.__dict__.update(self.__dict__)
        other.weight, other._samples = weight, {}
        parts = zip(self._blocks, self._parts(weight), self._holders(), strict=True)
        other._blocks = self._kept(
            [
                task("weigh", i, holder)(Rows.reweight)(block, part)
                for i, (block, part, holder) in enumerate(parts)
            ]
        )
        return other

    def _read_sample(self, rows: range | np.ndarray) -> Chunk:
        rows = np.asarray(rows)
        self.reads.passes += len(rows) / self.n
        where, holders = np.searchsorted(self.starts, rows, side="right") - 1, self._holders()
        picks = {int(i): rows[where == i] - self.starts[i] for i in np.unique(where)}
        tasks = [
            task("pick", i, holders[i])(Rows.take)(self._blocks[i], some)
            for i, some in picks.items()
        ]
        return _joined(computed(*tasks, at={holders[i] for i in picks}))


def _short(sizes: Sequence[Any]) -> str:
    shown = ", ".join(str(size) for size in sizes[:4])
    return f"({shown}{', ...' if len(sizes) > 4 else ''})"


def _load(X: Array, y: Array, Z: Array, weight: Array, start: int) -> Rows:
    check_samples(X, y, start)
    check_finite("covariates", Z, start)
    keep_memory_of_worker()
    return Rows(X, y, Z, weight, threads=1, start=start)  # the scheduler has threads of its own


def _sums(work: Work, count: int, width: int | None, *blocks: Rows) -> list[Any]:
    """Sums over blocks; of each there are so many, which differ in weights alone."""
    with BLAS.single(), quiet():
        groups = (blocks[low : low + count] for low in range(0, len(blocks), count))
        sums = (first.map_sums(work.fn, (first, *rest), width) for first, *rest in groups)
        return add_up(sums)


def _rows(work: Work, width: int | None, rows: Rows) -> Array:
    with BLAS.single(), quiet():
        return rows.map_rows(work.fn, width)


def _each(work: Work, rows: Rows, name: str) -> Any:
    return rows.each(name, work.fn)[0]


def _added(sums: list[Any]) -> Any:
    """A tree of tasks that adds up what tasks find, a few at a time."""
    while len(sums) > 1:
        few = [sums[low : low + FAN_IN] for low in range(0, len(sums), FAN_IN)]
        sums = [task("add", i)(_add)(*some) for i, some in enumerate(few)]
    return sums[0]


def _add(*sums: list[Any]) -> list[Any]:
    return add_up(sums)


def _joined(chunks: Sequence[Chunk]) -> Chunk:
    def join(name: str) -> np.ndarray | None:
        parts = [getattr(chunk, name) for chunk in chunks]
        return None if parts[0] is None else np.concatenate(parts)

    return Chunk(join("X"), join("y"), join("Z"), join("weight"), 0)
