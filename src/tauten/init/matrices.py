"""Tensors as matrices, and what the nuclear norm does to them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .._array import Array, matrix_of, namespace


@dataclass(frozen=True)
class Matricisation:
    """A tensor as a matrix, some of its modes on the rows and the others on the columns.

    Examples
    --------
    >>> import numpy as np
    >>> Matricisation((1,), (0, 2)).of(np.ones((2, 3, 4))).shape
    (3, 8)
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def of(self, tensor: Array) -> Array:
        """The matrix of a tensor."""
        xp = namespace(tensor)
        return matrix_of(xp.permute_dims(tensor, (*self.rows, *self.columns)), len(self.rows))

    def back(self, matrix: Array, shape: Sequence[int]) -> Array:
        """The tensor of a matrix."""
        xp, axes = namespace(matrix), (*self.rows, *self.columns)
        tensor = xp.reshape(matrix, tuple(shape[k] for k in axes))
        return xp.permute_dims(tensor, tuple(axes.index(k) for k in range(len(axes))))


def most_square(shape: Sequence[int]) -> Matricisation:
    """The matricisation with the least difference between rows and columns.

    Examples
    --------
    >>> most_square((10, 4, 3))
    Matricisation(rows=(0,), columns=(1, 2))
    """
    modes = range(len(shape))
    subsets = itertools.chain.from_iterable(itertools.combinations(modes, m) for m in modes)
    rows = min(subsets, key=lambda s: _longer_side(shape, s))
    return Matricisation(rows, tuple(k for k in modes if k not in rows))


def by_response(shape: Sequence[int], order: int) -> Matricisation:
    """The paper's mat(A): the last `order` modes, the response's, by the covariate's.

    Examples
    --------
    >>> by_response((10, 10, 10), 1)
    Matricisation(rows=(2,), columns=(0, 1))
    """
    modes = tuple(range(len(shape)))
    return Matricisation(modes[len(shape) - order :], modes[: len(shape) - order])


def _longer_side(shape: Sequence[int], rows: Sequence[int]) -> float:
    side = math.prod(shape[k] for k in rows)
    return max(side, math.prod(shape) / side)


def singular_value_threshold(matrix: Array, level: float) -> Array:
    """``argmin_M ½‖M - matrix‖² + level ‖M‖_nuc``: singular values less `level`, or zero.

    Examples
    --------
    >>> import numpy as np
    >>> singular_value_threshold(np.diag([3.0, 1.0]), 2.0)
    array([[1., 0.],
           [0., 0.]])
    """
    xp = namespace(matrix)
    u, s, vt = xp.linalg.svd(matrix, full_matrices=False)
    return u * xp.maximum(s - level, xp.zeros_like(s)) @ vt
