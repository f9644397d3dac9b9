"""Positive, skewed responses."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace, safe_exp
from .base import Loss


class Gamma(Loss, name="gamma"):
    """Negative log-likelihood ``y exp(-η) + η`` of a positive response with mean exp η (log link).

    Examples
    --------
    >>> import numpy as np
    >>> Gamma().score(np.array([0.0, 0.0]), np.array([1.0, 3.0]))
    array([ 0., -2.])
    """

    domain = "numbers > 0"

    def value(self, eta: Array, y: Array) -> Array:
        """``y exp(-η) + η``."""
        return y * safe_exp(-eta)[0] + eta

    def score(self, eta: Array, y: Array) -> Array:
        """``1 - y exp(-η)``."""
        return 1 - y * safe_exp(-eta)[1]

    def curvature(self, eta: Array, y: Array) -> Array:
        """``y exp(-η)``."""
        return y * safe_exp(-eta)[2]

    def mean(self, eta: Array) -> Array:
        """``exp η``."""
        return safe_exp(eta)[1]

    def link(self, mean: Array) -> Array:
        """``log m``."""
        return namespace(mean).log(mean)

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Exponential with mean exp η: the gamma distribution of shape one."""
        # A draw of exactly zero lies outside the domain; it happens when exp η underflows.
        tiny = np.finfo(np.float64).tiny
        return np.maximum(rng.standard_exponential(np.shape(eta)) * self.mean(eta), tiny)

    def contains(self, y: Array) -> Array:
        """``y > 0``."""
        return (y > 0) & namespace(y).isfinite(y)
