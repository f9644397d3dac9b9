"""How covariates spread along each of their modes."""

from __future__ import annotations

import math

import numpy as np

from .._array import Array, column, like, namespace, ratio, to_numpy
from ..data import Chunk
from ..data.base import add_up

SIZE = 200  # samples that are looked at: each has many rows along a mode
PART = 16  # of them at a time, so that no copy of them all is made


def mode_spreads(samples: Chunk, center: Array | None) -> list[Array]:
    """Covariances ``Σ_1, ..., Σ_d`` of samples whose covariance is taken to be ``Σ_1 ⊗ ... ⊗ Σ_d``.

    Each sample is brought to the same size first, so that none outweighs the others; Σ_1 has the
    median of their sizes. What few rows say of a long mode is not much: as far as there are fewer
    rows than columns, a matrix is that of white covariates.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2, 3)) * np.array([1.0, 2.0, 2.0])
    >>> first, second = mode_spreads(Chunk(X, X[:, 0, 0], None, None, 0), None)
    >>> second.diagonal().round(1)
    array([0.5, 1.3, 1.2])
    """
    few, xp = samples.thin(SIZE), namespace(samples.X)
    sizes, sums = [], []
    for part in few.parts(PART):
        rows = part.X if center is None else part.X - center
        squares = xp.mean(rows**2, axis=tuple(range(1, rows.ndim)))
        rows = rows * column(xp.sqrt(ratio(xp.ones_like(squares), squares)), rows.ndim)
        sizes.append(squares)
        sums.append([_products(rows, k) for k in range(1, rows.ndim)])
    count = math.prod(few.X.shape)
    found = [_shrunk(total, count) for total in add_up(sums)]
    level = float(np.median(np.concatenate([to_numpy(size) for size in sizes])))
    return [level * found[0], *found[1:]] if level > 0 else found


def _products(rows: Array, mode: int) -> Array:
    """``Σ X_(k) X_(k)ᵀ`` over samples."""
    xp = namespace(rows)
    matrix = xp.reshape(xp.moveaxis(rows, mode, 0), (rows.shape[mode], -1))
    return matrix @ matrix.T


def _shrunk(total: Array, count: int) -> Array:
    """A covariance from a sum of products over entries, drawn to the unit matrix."""
    p = total.shape[0]
    share = min(1.0, p * p / count)
    return (1 - share) * total * (p / count) + share * like(np.eye(p), total)
