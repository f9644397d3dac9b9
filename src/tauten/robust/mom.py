"""Median of means, named by the paper (section 6) as an alternative."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Self

from .._array import Array, namespace
from .base import Pilot, Robustifier


class MedianOfMeans(Robustifier, name="mom"):
    """Average the gradients within K blocks of samples, then take the entrywise median.

    Withstands wild values in fewer than half of the blocks, so bounds the influence of responses
    and of covariates. ``n_blocks=1`` is the mean, ``n_blocks=n`` the coordinate-wise median.
    Blocks take every K-th sample: rows should come in no particular order.

    Parameters
    ----------
    n_blocks : int
        K; at most the number of samples.

    Examples
    --------
    >>> import numpy as np
    >>> MedianOfMeans(n_blocks=3).reduce(np.array([[1.0], [2.0], [900.0]]))
    array([2.])
    """

    bounds = frozenset({"responses", "covariates"})

    def __init__(self, n_blocks: int = 11) -> None:
        self.n_blocks = n_blocks

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Check that there are at least as many samples as blocks."""
        most = self.n_blocks if pilot is None else pilot.n
        if not isinstance(self.n_blocks, Integral) or not 1 <= self.n_blocks <= most:
            raise ValueError(
                f"n_blocks must be a whole number from 1 to the number of samples, {most}; "
                f"got {self.n_blocks}"
            )
        new = copy(self)
        new.n_blocks_ = int(self.n_blocks)
        return new

    def reduce(self, means: Array) -> Array:
        """Entrywise median over the blocks."""
        xp = namespace(means)
        ordered, K = xp.sort(means, axis=0), means.shape[0]
        return (ordered[(K - 1) // 2, ...] + ordered[K // 2, ...]) / 2
