"""What every place where samples live has in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from .._array import Array, like, namespace, take, to_numpy
from .threads import BLAS

FEW = 2**20  # bytes of samples that are taken at a time
LARGE = 2**26  # bytes of X as doubles, from which reading it once more takes longer than a step
CLOSE = 3  # spaces that are taken as they are: wider ones would leave too few samples
COMMON = 2 * 3 * 5  # what most periods are made of
SAMPLE_SHARE = 4  # a quarter of the memory is for the samples that start and thresholds look at
Find = Callable[[Array, Array | None], Array]  # from covariates and a centre to norms


@dataclass(frozen=True)
class Chunk:
    """Consecutive samples: covariates X, responses y, vector covariates Z, weights.

    `start` is the index of the first one among all the samples. Thinned ones are not consecutive.
    """

    X: Array
    y: Array
    Z: Array
    weight: Array | None
    start: int
    kept: list[tuple[Array, Array]] = field(default_factory=list)

    def weighted(self, weight: Array | None, start: int = 0) -> Chunk:
        """The same samples with their rows of other weights, the first of which is of `start`."""
        if weight is None:
            return self if self.weight is None else replace(self, weight=None)
        first = self.start - start
        return replace(self, weight=weight[first : first + self.y.shape[0]])

    def thin(self, size: int) -> Chunk:
        """At most `size` of the samples, evenly spread."""
        step = spacing(self.y.shape[0], size)
        return self if step == 1 else self._rows(slice(None, None, step))

    def runs(self, size: int, length: int) -> list[Chunk]:
        """At most `size` of them, in evenly spread runs of neighbours: nothing is copied."""
        n = self.y.shape[0]
        if n <= size:
            return self.parts(length)
        starts = np.linspace(0, n - length, max(1, size // length)).astype(int)
        return [self._rows(slice(start, start + length)) for start in starts.tolist()]

    def parts(self, size: int) -> list[Chunk]:
        """All of the samples, at most `size` in a chunk."""
        n = self.y.shape[0]
        return [self._rows(slice(low, min(low + size, n))) for low in range(0, n, size)]

    def _rows(self, rows: slice) -> Chunk:
        arrays = (self.X, self.y, self.Z, self.weight)
        X, y, Z, weight = (None if a is None else a[rows, ...] for a in arrays)
        kept = [(center, norms[rows]) for center, norms in self.kept]
        return Chunk(X, y, Z, weight, self.start + (rows.start or 0), kept)

    def norms(self, center: Array | None, find: Find) -> Array:
        """Norms of the covariates ``X_i - center``: found once for a centre, then kept."""
        for known, norms in self.kept:
            if known is center or _same(known, center):
                return norms
        norms = find(self.X, center)
        self.kept.append((center, norms))
        return norms


def _same(one: Array | None, other: Array | None) -> bool:
    """Whether two centres are equal: one that travelled to a worker is another object."""
    if one is None or other is None:
        return False
    return bool(namespace(one, other).all(one == other))


def spacing(n: int, size: int) -> int:
    """Distance of at most `size` of n samples: such that few periods meet it again and again.

    Every fourth sample, or every tenth, may be of a kind of its own; every seventh seldom is.

    Examples
    --------
    >>> [spacing(n, 10) for n in (10, 11, 30, 31, 61, 71, 100)]
    [1, 2, 3, 7, 7, 11, 11]
    """
    step = math.ceil(n / size)
    while step > CLOSE and math.gcd(step, COMMON) > 1:
        step += 1
    return step


def few(X: Array) -> Iterator[Array]:
    """A few samples at a time, so that what is done to them makes no copy of them all."""
    n, rows = X.shape[0], max(1, FEW // (8 * math.prod(X.shape[1:]) or 8))
    return (X[start : min(start + rows, n), ...] for start in range(0, n, rows))


@dataclass
class Reads:
    """How often the samples were gone through; part of a pass counts as part."""

    passes: float = 0.0


class Samples:
    """The samples of a problem. A subclass knows where they are and how to go over them.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d0) or None
        None for PCA.
    y : array (n, ...) or None
        None where responses are to be predicted.
    Z : array (n, c), optional
    weight : array (n,), optional
        In memory, whatever the others are.
    """

    start = 0  # index of the first sample

    def __init__(
        self,
        X: Array | None,
        y: Array,
        Z: Array | None = None,
        weight: Array | None = None,
    ) -> None:
        self.X, self.y, self.Z, self.weight = X, y, Z, weight
        self.n = self.main.shape[0]
        self.reads = Reads()
        self._samples: dict[int, Chunk] = {}
        self._looked_at: dict[range, Chunk] = {}  # the same, whatever the weights

    @property
    def main(self) -> Array:
        """The largest array: X, or in PCA y."""
        return self.y if self.X is None else self.X

    @property
    def dear(self) -> bool:
        """Whether they are so large that reading them is what takes time."""
        return 8 * math.prod(self.main.shape) >= LARGE

    @property
    def reference(self) -> Array:
        """An array of the library, dtype and device that computations are in."""
        raise NotImplementedError

    def like(self, value: Any) -> Array:
        """Return a value as an array of the kind that a chunk holds."""
        return like(value, self.reference)

    def at_work(self) -> AbstractContextManager[None]:
        """Hold this while passes and small linear algebra take turns, as they do in a fit.

        It keeps linear algebra to one thread: those of OpenBLAS spin for a while after each use, by
        default 2**26 cycles, and would take a core from the threads that go over the samples. Small
        data, which have no such threads, gain little from those of OpenBLAS: these wait for each
        other at each of thousands of calls as soon as another process needs a core.
        """
        return BLAS.single()

    def spread(self, fn: Callable[[Any], Any], shares: Sequence[Any]) -> list[Any]:
        """Apply `fn` to shares of some other work, in memory; return what it finds, in order."""
        return list(map(fn, shares))

    def map_sum(self, fn: Callable[[Chunk], Sequence[Any]], width: int | None = None) -> list[Any]:
        """Apply `fn` to each chunk and add up what it returns, item by item: one pass.

        `width` is how many numbers `fn` makes of a sample, about, where that is known: chunks have
        as many samples as let these stay in cache.
        """
        raise NotImplementedError

    def map_sums(
        self,
        fn: Callable[[list[Chunk]], Sequence[Any]],
        weighings: Sequence[Samples],
        width: int | None = None,
    ) -> list[Any]:
        """Sums with several weights in one pass: `fn` gets each chunk with all of them.

        Parameters
        ----------
        fn : callable
            From a chunk with each of the weights to what is added up.
        weighings : sequence of Samples
            These samples, reweighted.
        width : int, optional
            See :meth:`map_sum`.
        """
        start, weights = self.start, [data.weight for data in weighings]
        return self.map_sum(lambda chunk: fn([chunk.weighted(w, start) for w in weights]), width)

    def map_rows(self, fn: Callable[[Chunk], Array], width: int | None = None) -> Array:
        """Apply `fn` to each chunk and join what it returns along axis 0: one pass.

        For `width` see :meth:`map_sum`; passes of the same share the norms that chunks keep.
        """
        raise NotImplementedError

    @property
    def all(self) -> Chunk | None:
        """All samples as one chunk, where they are in memory, as they are; else None."""
        return None

    def norms(self, center: Array | None, find: Find) -> Array:
        """Norms of all covariates ``X_i - center``, in one pass."""
        return self.map_rows(lambda chunk: chunk.norms(center, find))

    def each(self, name: str, fn: Callable[[Array], Any]) -> list[Any]:
        """Apply `fn` to ``y`` or ``Z`` alone, part by part: X is not read."""
        raise NotImplementedError

    def reweight(self, weight: Array) -> Self:
        """Return the same samples with other weights; their reads are counted together."""
        raise NotImplementedError

    def gram(self) -> Array:
        """``ZᵀZ / n``."""
        return add_up([part] for part in self.each("Z", lambda Z: Z.T @ Z))[0] / self.n

    def sample(self, size: int) -> Chunk:
        """Return at most `size` samples of positive weight, evenly spread; read once, then kept.

        They are fewer where the memory allowed does not hold that many.
        """
        size = min(size, self.room)
        if size not in self._samples:
            self._samples[size] = self._look_at(self._picked(size))
        return self._samples[size]

    def _look_at(self, rows: range | np.ndarray) -> Chunk:
        """Some samples; where none is left out for its weight, read once for all weights."""
        if not isinstance(rows, range):
            return self._read_sample(rows)
        if rows not in self._looked_at:
            self._looked_at[rows] = self._read_sample(rows)
        weight = None if self.weight is None else take(self.weight, slice(0, self.n, rows.step))
        return replace(self._looked_at[rows], weight=weight)

    @property
    def room(self) -> int:
        """Samples that may be held in memory at once."""
        return self.n

    @property
    def counted(self) -> np.ndarray:
        """Which samples have a weight."""
        return np.arange(self.n) if self.weight is None else np.flatnonzero(to_numpy(self.weight))

    def _picked(self, size: int) -> range | np.ndarray:
        if self.weight is None or len(rows := self.counted) == self.n:
            return range(0, self.n, spacing(self.n, size))  # in memory, a view: no copy
        return rows[np.linspace(0, len(rows) - 1, min(size, len(rows))).astype(int)]

    def _read_sample(self, rows: range | np.ndarray) -> Chunk:
        raise NotImplementedError


def rows_within(memory: int, row_bytes: int) -> int:
    """Samples that the quarter of the memory which is for them holds; one at least."""
    return max(1, memory // SAMPLE_SHARE // max(row_bytes, 1))


def add_up(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Sum of rows, item by item. The rows stay as they are: others may hold them."""
    rows = iter(rows)
    total, second = list(next(rows)), next(rows, None)
    if second is None:
        return total
    total = [a + b for a, b in zip(total, second, strict=True)]  # arrays of its own from here on
    for row in rows:
        for i, item in zip(range(len(total)), row, strict=True):
            total[i] += item
    return total
