"""Samples in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .._array import Array, is_numpy, namespace, take
from .base import Chunk, Find, Samples, add_up
from .memory import keep_memory
from .threads import Team

CACHED = 2**20  # bytes that are made of a chunk: what is done to them is then done in cache
# Bytes of the samples of a chunk, or of what is made of them, at least: calls of numpy should take
# less time than these; and of the samples, at most. So many are enough, however small they are.
SMALL_CHUNK, LARGE_CHUNK = 13_000_000, 2**26
ENOUGH = 2**14
SHARE = 2**22  # bytes of X that are worth a thread of their own
COLUMNS = 3  # of the factors, where nothing is said
# Bytes of X from which more threads than one pay; where responses are arrays there is more to do.
WORTH_THREADS, WORTH_FOR_ARRAYS = 2**24, 2**23

Kept = dict[tuple[int, int], list[tuple[Array | None, Array]]]  # of chunks by start and size


class Rows(Samples):
    """Samples in arrays in memory, of any library, that can be sliced along axis 0.

    Parameters
    ----------
    X, y, Z, weight : see :class:`tauten.data.Samples`
    chunk : int, optional
        Samples per chunk; by default as many as suit a pass.
    threads : int or Team, optional
        Threads that go over the chunks; by default as many as :func:`available_threads`. Sums are
        the same, to the last bit, for the same number of them.
    start : int
        Index of the first sample, where these are part of a larger whole.
    kept : dict, optional
        What chunks remember between passes.

    Examples
    --------
    >>> import numpy as np
    >>> data = Rows(np.ones((10, 3)), np.arange(10.0), chunk=4)
    >>> float(data.map_sum(lambda chunk: (chunk.y.sum(),))[0])
    45.0
    """

    def __init__(
        self,
        X: Array | None,
        y: Array,
        Z: Array | None = None,
        weight: Array | None = None,
        *,
        chunk: int | None = None,
        threads: int | Team | None = None,
        start: int = 0,
        kept: Kept | None = None,
    ) -> None:
        super().__init__(X, y, Z, weight)
        keep_memory()
        self.chunk = chunk or None
        self.threads = Team.of(threads)
        self.start = start
        self._kept: Kept = {} if kept is None else kept
        self._norms: list[tuple[Array | None, Array]] = []  # of all samples, by centre

    @property
    def reference(self) -> Array:
        """The responses, which are as the covariates are."""
        return self.X if self.y is None else self.y

    def at_work(self) -> AbstractContextManager[None]:
        """See :meth:`Samples.at_work`; other libraries know best how many threads they need."""
        return super().at_work() if is_numpy(self.main) else nullcontext()

    def spread(self, fn: Callable[[Any], Any], shares: Sequence[Any]) -> list[Any]:
        """Apply `fn` to shares of some other work, on the threads that a pass has."""
        if self._threads(self.chunk_rows()) == 1:
            return super().spread(fn, shares)
        return self.threads.map(fn, shares)

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]], width: int | None = None) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item: one pass."""
        return add_up(self._pass(lambda chunks: add_up(map(fn, chunks)), self.chunk_rows(width)))

    def map_rows(self, fn: Callable[[Chunk], Array], width: int | None = None) -> Array:
        """Apply `fn` to each chunk and join what it returns along axis 0: one pass."""
        stretches = self._pass(lambda chunks: list(map(fn, chunks)), self.chunk_rows(width))
        parts = list(itertools.chain.from_iterable(stretches))
        return namespace(parts[0]).concat(parts, axis=0)

    @property
    def all(self) -> Chunk:
        """All samples as one chunk."""
        return self.take(slice(0, self.n))

    def each(self, name: str, fn: Callable[[Array], Any]) -> list[Any]:
        """Apply `fn` to ``y`` or ``Z``, which is one part."""
        return [fn(getattr(self, name))]

    def _pass(
        self, work: Callable[[Iterator[Chunk]], Sequence[Any]], rows: int
    ) -> list[Sequence[Any]]:
        """Give each thread a stretch of the chunks; return what `work` makes of each, in order."""
        self.reads.passes += 1
        starts, threads = range(0, self.n, rows), self._threads(rows)
        if threads == 1:
            return [work(self._chunks(starts))]
        ends = [len(starts) * t // threads for t in range(threads + 1)]
        stretches = [starts[low:high] for low, high in itertools.pairwise(ends)]
        return self.threads.map(lambda stretch: work(self._chunks(stretch)), stretches)

    def _chunks(self, starts: range) -> Iterator[Chunk]:
        for start in starts:
            rows, first = slice(start, min(start + starts.step, self.n)), self.start + start
            known = self._known(rows)
            yield self._chunk(rows, first, self._kept.setdefault((first, starts.step), known))

    def _known(self, rows: slice | np.ndarray) -> list[tuple[Array | None, Array]]:
        return [(center, take(norms, rows)) for center, norms in self._norms]

    def _threads(self, rows: int) -> int:
        """How many threads a pass in chunks of so many is worth: no more than there are chunks."""
        chunks = math.ceil(self.n / rows)
        if chunks <= 1 or not is_numpy(self.main) or self.main.nbytes < self._worth_threads:
            return 1
        return min(self.threads.size, chunks)

    @property
    def _worth_threads(self) -> int:
        arrays = self.y is not None and self.y.ndim > 1
        return WORTH_FOR_ARRAYS if arrays else WORTH_THREADS

    def chunk_rows(self, width: int | None = None) -> int:
        """Samples per chunk, such that the chunks are even and as many for each thread.

        `width` is how many numbers a pass makes of each: see :meth:`Samples.map_sum`.
        """
        if self.chunk is not None:
            return self.chunk
        shape = self.main.shape[1:]
        responses = () if self.X is None or self.y is None else [self.y.shape[1:]]
        row_bytes = 8 * sum(map(math.prod, (shape, *responses))) or 8
        projected = COLUMNS * sum(shape) + (math.prod(shape) if self.X is None else 0)
        in_cache = CACHED // (8 * (width or projected) or 8)
        least = min(SMALL_CHUNK // max(row_bytes, 8 * (width or 0)), ENOUGH)
        rows = max(min(in_cache, LARGE_CHUNK // row_bytes), least, 1)
        if self.n <= rows and self.n * row_bytes < self._worth_threads:
            return self.n
        hands = max(2, min(self.threads.size, self.n * row_bytes // SHARE))
        rounds = math.ceil(self.n / rows / hands)
        return max(1, math.ceil(self.n / (hands * rounds)))

    def _read_sample(self, rows: range | np.ndarray) -> Chunk:
        self.reads.passes += len(rows) / self.n
        return self.take(slice(0, self.n, rows.step) if isinstance(rows, range) else rows)

    def reweight(self, weight: Array) -> Rows:
        """Return the same samples with other weights; their reads are counted together."""
        rows = Rows(
            self.X,
            self.y,
            self.Z,
            weight,
            chunk=self.chunk,
            threads=self.threads,
            start=self.start,
            kept=self._kept,
        )
        rows.reads, rows._looked_at, rows._norms = self.reads, self._looked_at, self._norms
        return rows

    def norms(self, center: Array | None, find: Find) -> Array:
        """Norms of all covariates ``X_i - center``; all chunks to come know them.

        Passes are counted alike wherever samples are: this is in place of a check, which is none.
        """
        parts = self.all.parts(self.chunk_rows())
        found = self.spread(lambda part: part.norms(center, find), parts)
        norms = namespace(*found).concat(found, axis=0)
        self._norms.append((center, norms))
        for rows, chunk in self._looked_at.items():
            chunk.kept.append((center, norms[:: rows.step]))
        return norms

    def take(self, rows: slice | np.ndarray) -> Chunk:
        """Return some samples, by their place among these."""
        return self._chunk(rows, self.start, self._known(rows))

    def _chunk(self, rows: slice | np.ndarray, start: int, kept: list[Any] | None = None) -> Chunk:
        X, y, Z, weight = (
            None if a is None else take(a, rows) for a in (self.X, self.y, self.Z, self.weight)
        )
        return Chunk(X, y, Z, weight, start, [] if kept is None else kept)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: dask asks, to know when a worker is full."""
        arrays = (self.X, self.y, self.Z, self.weight)
        return object.__sizeof__(self) + sum(getattr(a, "nbytes", 0) for a in arrays)
