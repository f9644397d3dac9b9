"""The sweep in C, for numpy arrays; without it everything works, more slowly."""

from __future__ import annotations

import importlib
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


def name() -> str:
    """What the sweep of numpy arrays is: see :func:`tauten.kernels.in_use`."""
    return "plain" if _sweep is None else f"compiled, {_sweep.instructions}"


def serves(X: Array) -> bool:
    """Whether this path can take a batch, and is worth taking."""
    return _sweep is not None and is_numpy(X) and X.ndim - 1 in ORDERS and X.shape[0] >= FEWEST


def project(
    X: np.ndarray,
    factors: Sequence[np.ndarray],
    *,
    core: np.ndarray | None = None,
    center: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    partials: bool = True,
) -> list[np.ndarray]:
    """Projections of a batch: see :func:`tauten.kernels.project`.

    Samples are the fastest axis in memory of what is returned: what is done with them next runs
    along them. Vectors run along the last mode; one shorter than a vector is taken first instead.
    """
    dtype = np.float32 if X.dtype == factors[0].dtype == np.float32 else np.float64
    turned = X.shape[-1] < _sweep.width // np.dtype(dtype).itemsize <= X.shape[-2]
    if turned:
        factors = [factors[-1], *factors[:-1]]
        core = None if core is None else np.moveaxis(core, -1, 0)
    n, rank = X.shape[0], tuple(u.shape[1] for u in factors)
    shapes = [rank]
    if partials:
        for k, u in enumerate(factors):
            left, right = rank[:k], rank[k + 1 :]
            shapes.append(u.shape if core is not None else (*left, u.shape[0], *right))
    outs = tuple(np.empty((*shape, n), dtype) for shape in shapes)
    others = (None if a is None else _ready(a, dtype) for a in (core, center, scale))
    inputs = (_ready_samples(X, dtype), tuple(_ready(u, dtype) for u in factors))
    _sweep.sweep(*inputs, *others, outs, turned)
    if turned:
        xbar, *parts = outs
        back = (lambda a: np.moveaxis(a, 0, -2)) if core is None else (lambda a: a)
        outs = (np.moveaxis(xbar, 0, -2), *map(back, (*parts[1:], *parts[:1])))
    return [_samples_first(out) for out in outs]


def _ready(array: np.ndarray, dtype: Any) -> np.ndarray:
    """An array as the sweep takes it: most are, and numpy is slow to say so."""
    if array.dtype == dtype and array.flags.carray:
        return array
    return np.require(array, dtype, ["C", "A"])


def _ready_samples(X: np.ndarray, dtype: Any) -> np.ndarray:
    """The batch as the sweep takes it: samples may lie apart, each must be in one piece.

    Arrays that came over a network may start at any byte.
    """
    apart = X.dtype == dtype and X[:1].flags.c_contiguous and X.strides[0] % X.itemsize == 0
    return X if apart and X.flags.aligned else _ready(X, dtype)


def _samples_first(array: np.ndarray) -> np.ndarray:
    last = array.ndim - 1
    return array.transpose((last, *range(last)))
