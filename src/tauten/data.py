"""Where samples live. The only place that knows how to go over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._array import Array, namespace, to_numpy

CHUNK_BYTES = 2**22  # a chunk of X and its projections stay in a core's cache


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

    def norms(self, center: Array | None) -> Array:
        """Norms of the covariates ``X_i - center``; computed once for a centre, then kept."""
        if id(center) not in self.kept:
            X: Array = self.X if center is None else self.X - center
            norms = namespace(X).linalg.vector_norm(X, axis=tuple(range(1, X.ndim)))
            self.kept[id(center)] = (center, norms)  # the centre too, so that its id stays its own
        return self.kept[id(center)][1]


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
        Samples per chunk; by default as many as make 4 MB.

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
    ) -> None:
        self.X, self.y, self.Z, self.weight = X, y, Z, weight
        self.n = y.shape[0]
        row_bytes = 8 * math.prod((y if X is None else X).shape[1:])
        self.chunk = chunk or max(1, CHUNK_BYTES // max(1, row_bytes))
        self.reads = Reads()
        self._samples: dict[int, Chunk] = {}
        self._kept: dict[int, dict[int, tuple[Any, Array]]] = {}

    def chunks(self) -> Iterator[Chunk]:
        """Yield the samples chunk by chunk: one pass over the data."""
        self.reads.passes += 1
        for start in range(0, self.n, self.chunk):
            rows = slice(start, min(start + self.chunk, self.n))
            yield self._chunk(rows, start, self._kept.setdefault(start, {}))

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]]) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item."""
        chunks = self.chunks()
        total = list(fn(next(chunks)))
        for chunk in chunks:
            total = [a + b for a, b in zip(total, fn(chunk), strict=True)]
        return total

    def map_rows(self, fn: Callable[[Chunk], Array]) -> Array:
        """Apply `fn` to each chunk and join what it returns along axis 0."""
        parts = [fn(chunk) for chunk in self.chunks()]
        return namespace(parts[0]).concat(parts, axis=0)

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
        picked = np.linspace(0, len(rows) - 1, min(size, len(rows))).astype(int)
        return self._chunk(rows[picked], 0)

    def reweight(self, weight: Array) -> Rows:
        """Return the same samples with other weights; their reads are counted together."""
        rows = Rows(self.X, self.y, self.Z, weight, chunk=self.chunk)
        rows.reads, rows._kept = self.reads, self._kept
        return rows

    def _chunk(
        self, rows: slice | np.ndarray, start: int, kept: dict[int, Any] | None = None
    ) -> Chunk:
        X, Z, weight = (None if a is None else a[rows, ...] for a in (self.X, self.Z, self.weight))
        return Chunk(X, self.y[rows, ...], Z, weight, start, {} if kept is None else kept)
