"""The sweep in C, for numpy arrays; without it everything works, more slowly."""

from __future__ import annotations

import importlib
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
FEWEST = 4  # fewer samples than half the lanes of a vector are not worth it


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

    Samples are the fastest axis in memory of what is returned: as lanes of vectors they are
    written together, and what is done with them next runs along them.
    """
    dtype = np.float32 if X.dtype == factors[0].dtype == np.float32 else np.float64

    def ready(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else np.require(array, dtype, ["C", "A"])

    n, rank = X.shape[0], tuple(u.shape[1] for u in factors)
    shapes = [rank]
    if partials:
        for k, u in enumerate(factors):
            left, right = rank[:k], rank[k + 1 :]
            shapes.append(u.shape if core is not None else (*left, u.shape[0], *right))
    outs = tuple(np.empty((math.prod(shape), n), dtype) for shape in shapes)
    factors = tuple(np.require(u, dtype, ["C", "A"]) for u in factors)
    _sweep.sweep(_ready_samples(X, dtype), factors, ready(core), ready(center), ready(scale), outs)
    return [
        _samples_first(out.reshape((*shape, n))) for out, shape in zip(outs, shapes, strict=True)
    ]


def _ready_samples(X: np.ndarray, dtype: Any) -> np.ndarray:
    """The batch as the sweep takes it: samples may lie apart, each must be in one piece.

    Arrays that came over a network may start at any byte.
    """
    apart = X.dtype == dtype and X[:1].flags.c_contiguous and X.strides[0] % X.itemsize == 0
    return X if apart and X.flags.aligned else np.require(X, dtype, ["C", "A"])


def _samples_first(array: np.ndarray) -> np.ndarray:
    last = array.ndim - 1
    return array.transpose((last, *range(last)))
