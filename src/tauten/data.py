"""Where samples live. The only place that knows how to go over them."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import threadpoolctl

from ._array import Array, is_numpy, matrix_of, namespace, to_numpy

CHUNK_ROWS = 256  # so that what is projected, a few kB a sample, stays in a core's cache ...
SMALL_CHUNK, LARGE_CHUNK = 2**24, 2**26  # ... unless the samples are small, or huge (in bytes)
CENTRED = 2**20  # bytes of samples that are centred at a time
WORTH_THREADS = 2**24  # bytes of X from which more threads than one pay


@dataclass(frozen=True)
class Chunk:
    """Consecutive samples: covariates X, responses y, vector covariates Z, weights.

    `start` is the index of the first one among all the samples.
    """

    X: Array | None
    y: Array
    Z: Array | None
    weight: Array | None
    start: int
    kept: dict[int, tuple[Any, Array]] = field(default_factory=dict)

    def weighted(self, weight: Array | None) -> Chunk:
        """The same samples with their rows of another vector of weights."""
        if weight is not None:
            weight = weight[self.start : self.start + self.y.shape[0]]
        return replace(self, weight=weight)

    def norms(self, center: Array | None) -> Array:
        """Norms of the covariates ``X_i - center``; computed once for a centre, then kept."""
        if id(center) not in self.kept:
            norms = [_norms(rows, center) for rows in _blocks(self.X)]
            norms = norms[0] if len(norms) == 1 else namespace(self.X).concat(norms)
            self.kept[id(center)] = (center, norms)  # the centre too, so that its id stays its own
        return self.kept[id(center)][1]


def _blocks(X: Array) -> Iterator[Array]:
    """A few samples at a time, so that centring them makes no copy of them all."""
    n, rows = X.shape[0], max(1, CENTRED // (8 * math.prod(X.shape[1:]) or 8))
    return (X[start : min(start + rows, n), ...] for start in range(0, n, rows))


def _norms(X: Array, center: Array | None) -> Array:
    rows = matrix_of(X if center is None else X - center, 1)
    return namespace(rows).linalg.vector_norm(rows, axis=1)


@dataclass
class Reads:
    """How often the samples were gone through; part of a pass counts as part."""

    passes: float = 0.0


class Rows:
    """Samples in arrays that can be sliced along axis 0.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d0) or None
        None for PCA.
    y : array (n, ...)
    Z : array (n, c), optional
    weight : array (n,), optional
    chunk : int, optional
        Samples per chunk; by default about 256, or more where they are small.
    threads : int, optional
        Threads that go over the chunks; by default as many as :func:`available_threads`. Sums are
        the same, to the last bit, for the same number of them.

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
        threads: int | None = None,
    ) -> None:
        self.X, self.y, self.Z, self.weight = X, y, Z, weight
        self.n = y.shape[0]
        self.chunk = chunk or self._chunk_rows()
        self.threads = threads
        self.reads = Reads()
        self._samples: dict[int, Chunk] = {}
        self._kept: dict[int, dict[int, tuple[Any, Array]]] = {}

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]]) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item: one pass."""
        return _add_up(self._pass(lambda chunks: _add_up(map(fn, chunks))))

    def map_rows(self, fn: Callable[[Chunk], Array]) -> Array:
        """Apply `fn` to each chunk and join what it returns along axis 0: one pass."""
        stretches = self._pass(lambda chunks: list(map(fn, chunks)))
        parts = list(itertools.chain.from_iterable(stretches))
        return namespace(parts[0]).concat(parts, axis=0)

    def _pass(self, work: Callable[[Iterator[Chunk]], Sequence[Any]]) -> list[Sequence[Any]]:
        """Give each thread a stretch of the chunks; return what `work` makes of each, in order."""
        self.reads.passes += 1
        starts = range(0, self.n, self.chunk)
        threads = min(self._threads, len(starts))
        if threads == 1:
            return [work(self._chunks(starts))]
        ends = [len(starts) * t // threads for t in range(threads + 1)]
        stretches = [starts[low:high] for low, high in itertools.pairwise(ends)]
        with _BLAS.single():
            return list(self._pool.map(lambda stretch: work(self._chunks(stretch)), stretches))

    def _chunks(self, starts: range) -> Iterator[Chunk]:
        for start in starts:
            rows = slice(start, min(start + self.chunk, self.n))
            yield self._chunk(rows, start, self._kept.setdefault(start, {}))

    @cached_property
    def _threads(self) -> int:
        samples = self.y if self.X is None else self.X
        if not is_numpy(samples) or samples.nbytes < WORTH_THREADS:
            return 1
        return self.threads or available_threads()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="tauten")

    def _chunk_rows(self) -> int:
        """Samples per chunk, such that the chunks are even and evenly many."""
        row_bytes = 8 * math.prod((self.y if self.X is None else self.X).shape[1:]) or 8
        rows = max(min(CHUNK_ROWS, LARGE_CHUNK // row_bytes), SMALL_CHUNK // row_bytes, 1)
        if self.n <= rows and self.n * row_bytes < WORTH_THREADS:
            return self.n
        pairs = math.ceil(self.n / rows / 2)
        return max(1, math.ceil(self.n / (2 * pairs)))

    def sample(self, size: int) -> Chunk:
        """Return at most `size` samples of positive weight, evenly spread; read once, then kept."""
        if size not in self._samples:
            self._samples[size] = self._read_sample(size)
        return self._samples[size]

    def _read_sample(self, size: int) -> Chunk:
        rows = np.arange(self.n) if self.weight is None else np.flatnonzero(to_numpy(self.weight))
        self.reads.passes += min(size, len(rows)) / self.n
        if len(rows) == self.n <= size:
            return self._chunk(slice(None), 0)
        if len(rows) == self.n:
            return self._chunk(slice(None, None, math.ceil(self.n / size)), 0)  # a view: no copy
        picked = np.linspace(0, len(rows) - 1, min(size, len(rows))).astype(int)
        return self._chunk(rows[picked], 0)

    def reweight(self, weight: Array) -> Rows:
        """Return the same samples with other weights; their reads are counted together."""
        rows = Rows(self.X, self.y, self.Z, weight, chunk=self.chunk, threads=self.threads)
        rows.reads, rows._kept = self.reads, self._kept
        return rows

    def _chunk(
        self, rows: slice | np.ndarray, start: int, kept: dict[int, Any] | None = None
    ) -> Chunk:
        X, Z, weight = (None if a is None else a[rows, ...] for a in (self.X, self.Z, self.weight))
        return Chunk(X, self.y[rows, ...], Z, weight, start, {} if kept is None else kept)


def _add_up(rows: Iterable[Sequence[Any]]) -> list[Any]:
    rows = iter(rows)
    total = list(next(rows))
    for row in rows:
        total = [a + b for a, b in zip(total, row, strict=True)]
    return total


class _LinearAlgebra:
    """BLAS kept to one thread while ours run: its threads and ours would wait for each other.

    The limit belongs to the whole process, so passes that overlap in time share it: the first sets
    it, the last lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._limits = threading.Lock(), 0, ExitStack()

    @contextmanager
    def single(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._limits.enter_context(self._pools.limit(limits=1, user_api="blas"))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limits.close()

    @cached_property
    def _pools(self) -> threadpoolctl.ThreadpoolController:
        return threadpoolctl.ThreadpoolController()


_BLAS = _LinearAlgebra()


def available_threads() -> int:
    """Threads that this process may use: cores of its container, limits of linear algebra.

    So that ``threadpoolctl.threadpool_limits(1)``, ``OMP_NUM_THREADS=1`` and the workers of joblib
    mean here what they mean for BLAS.

    Examples
    --------
    >>> with threadpoolctl.threadpool_limits(1):
    ...     available_threads()
    1
    """
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    return max(1, min([joblib.cpu_count(), *pools]))
