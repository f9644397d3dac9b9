"""The sweep in C, for numpy arrays; without it everything works, more slowly."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import Array, is_numpy

_sweep: Any
try:
    _sweep = importlib.import_module("tauten.kernels._sweep")
except ImportError:  # installed where there was no compiler
    _sweep = None

ORDERS = range(2, 17)  # a batch of vectors is one matrix product, best left to BLAS
FEWEST = 4  # fewer samples than that are not worth it
MOST_COLUMNS = 12  # sums of each row of X: BLAS is quicker to make more of them


def name() -> str:
    """What the sweep of numpy arrays is: see :func:`tauten.kernels.in_use`."""
    return "plain" if _sweep is None else f"compiled, {_sweep.instructions}"


def serves(X: Array, columns: int = 1) -> bool:
    """Whether this path can take a batch, and is worth taking.

    Without a core there are as many columns as ranks of the modes behind the first, multiplied.
    """
    if _sweep is None or not is_numpy(X) or X.ndim - 1 not in ORDERS:
        return False
    return X.shape[0] >= FEWEST and columns <= MOST_COLUMNS


def serves_norms(X: Array) -> bool:
    """Whether this path can take a batch whose norms are asked for: no copy is made for them."""
    return _sweep is not None and is_numpy(X) and X.ndim > 1 and _in_place(X, _own_type(X))


def project(
    X: np.ndarray,
    factors: Sequence[np.ndarray],
    *,
    center: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    partials: bool = True,
) -> list[np.ndarray]:
    """Projections of a batch: see :func:`tauten.kernels.project`.

    Samples are the fastest axis in memory of what is returned: what is done with them next runs
    along them.
    """
    rank = tuple(u.shape[1] for u in factors)
    shapes = [rank]
    if partials:
        shapes += [(*rank[:k], u.shape[0], *rank[k + 1 :]) for k, u in enumerate(factors)]
    ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
    out = np.empty((ends[-1], X.shape[0]), _type(X, factors))
    _run(X, factors, (None, center, scale), partials, out)
    pairs, n = zip(itertools.pairwise(ends), shapes, strict=True), X.shape[0]
    return [_samples_first(out[low:high].reshape(*shape, n)) for (low, high), shape in pairs]


def derivatives(
    X: np.ndarray,
    factors: Sequence[np.ndarray],
    core: np.ndarray,
    *,
    center: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    beside: np.ndarray | None = None,
    sums: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Derivatives of a batch: see :func:`tauten.kernels.derivatives`; samples are the fastest.

    `sums` are scores, and a tensor that the samples times these are added to.
    """
    entries = core.size + sum([u.size for u in factors])
    rows = entries if beside is None else entries + beside.shape[1]
    out = np.empty((rows, X.shape[0]), _type(X, factors))
    if beside is not None:
        out[entries:] = beside.T
    _run(X, factors, (core, center, scale), True, out[:entries], *sums)
    return out.T


def derivatives_and_sum(
    X: np.ndarray,
    factors: Sequence[np.ndarray],
    core: np.ndarray,
    score: np.ndarray,
    **options: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same and a sum: see :func:`tauten.kernels.derivatives_and_sum`."""
    total = np.zeros(X.shape[1:], _type(X, factors))
    sums = _ready(score, total.dtype), total
    return derivatives(X, factors, core, sums=sums, **options), total


def norms(X: np.ndarray, center: np.ndarray | None) -> np.ndarray:
    """Norms of a batch: see :func:`tauten.kernels.norms`."""
    out = np.empty(X.shape[0], X.dtype)
    _sweep.squares(X, None if center is None else _ready(center, X.dtype), out)
    return np.sqrt(out, out=out)


def _type(X: np.ndarray, factors: Sequence[np.ndarray]) -> Any:
    return np.float32 if _own_type(X) == _own_type(factors[0]) == np.float32 else np.float64


def _own_type(array: np.ndarray) -> Any:
    return np.float32 if array.dtype == np.float32 else np.float64


def _run(
    X: np.ndarray,
    factors: Sequence[np.ndarray],
    others: Sequence[np.ndarray | None],
    partials: bool,
    out: np.ndarray,
    *sums: np.ndarray,
) -> None:
    """The sweep itself, into an array whose last axis are the samples.

    The others are core, centre and scale; for the sums see :func:`derivatives`.
    """
    dtype = out.dtype
    ready = [None if a is None else _ready(a, dtype) for a in others]
    X = X if _in_place(X, dtype) else _ready(X, dtype)
    _sweep.sweep(X, tuple([_ready(u, dtype) for u in factors]), *ready, partials, out, *sums)


def _ready(array: np.ndarray, dtype: Any) -> np.ndarray:
    """An array as the sweep takes it: most are, and numpy is slow to say so."""
    if array.dtype == dtype and array.flags.carray:
        return array
    return np.require(array, dtype, ["C", "A"])


def _in_place(X: np.ndarray, dtype: Any) -> bool:
    """Whether a batch can be taken as it is: samples may lie apart, each must be in one piece.

    Arrays that came over a network may start at any byte.
    """
    apart = X.dtype == dtype and X[:1].flags.c_contiguous and X.strides[0] % X.itemsize == 0
    return bool(apart and X.flags.aligned)


def _samples_first(array: np.ndarray) -> np.ndarray:
    last = array.ndim - 1
    return array.transpose((last, *range(last)))
