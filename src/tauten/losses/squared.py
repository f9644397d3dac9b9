"""Least squares: section 3.2 of the paper."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace
from .base import Loss


class Squared(Loss, name="squared"):
    """Squared error ``½ (η - y)²``; the model is Gaussian noise of variance one.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().score(np.array([1.0, 2.0]), np.array([0.0, 5.0]))
    array([ 1., -3.])
    """

    residual = quadratic = True

    def value(self, eta: Array, y: Array) -> Array:
        """``½ (η - y)²``."""
        return (eta - y) ** 2 / 2

    def score(self, eta: Array, y: Array) -> Array:
        """``η - y``."""
        return eta - y

    def curvature(self, eta: Array, y: Array) -> Array:
        """One."""
        return namespace(eta).ones_like(eta - y)

    def mean(self, eta: Array) -> Array:
        """``η``."""
        return eta

    def link(self, mean: Array) -> Array:
        """``mean``."""
        return mean

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """``N(η, 1)``."""
        return eta + rng.standard_normal(np.shape(eta))
