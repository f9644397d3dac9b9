"""A Tucker tensor with the vector coefficients beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from .._array import Array
from .point import Tucker


@dataclass(frozen=True, eq=False)
class Affine(Tucker):
    """A Tucker tensor and one more block: the coefficients of vector covariates and intercept.

    The linear predictor is then ``<X_i, A> + Σ_c Z_ic linear_c``.

    Parameters
    ----------
    core, factors : see :class:`Tucker`
    linear : array (c, q_1, ..., q_m)
        One row per vector covariate, each of the shape of a response.

    Examples
    --------
    >>> import numpy as np
    >>> Affine(np.ones(1), [np.ones((3, 1))], np.zeros(1)).blocks[-1]
    array([0.])
    """

    linear: Array

    @property
    def blocks(self) -> tuple[Array, ...]:
        """The parameter blocks ``(S, U_1, ..., U_d, linear)``."""
        return (self.core, *self.factors, self.linear)

    def with_blocks(self, blocks: Sequence[Array]) -> Self:
        """Return a point of the same type with other blocks."""
        return type(self)(blocks[0], tuple(blocks[1:-1]), blocks[-1])

    @property
    def tucker(self) -> Tucker:
        """The tensor alone."""
        return Tucker(self.core, self.factors)
