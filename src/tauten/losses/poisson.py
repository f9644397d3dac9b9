"""Counts: the GLM of the paper's section 3.3 with Φ(t) = exp t."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace, safe_exp
from .base import Loss


class Poisson(Loss, name="poisson"):
    """Negative log-likelihood ``exp η - y η`` of a count, up to a term without η (log link).

    Beyond η of about 355 (44 in single precision) the exponential goes on as its tangent line.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().score(np.array([0.0, 1.0]), np.array([2.0, 0.0])).round(3)
    array([-1.   ,  2.718])
    """

    domain = "counts, or any numbers ≥ 0"

    def value(self, eta: Array, y: Array) -> Array:
        """``exp η - y η``."""
        return safe_exp(eta)[0] - y * eta

    def score(self, eta: Array, y: Array) -> Array:
        """``exp η - y``."""
        return self.mean(eta) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        """``exp η``."""
        return safe_exp(eta)[2] * namespace(eta).ones_like(y)

    def mean(self, eta: Array) -> Array:
        """``exp η``."""
        return safe_exp(eta)[1]

    def link(self, mean: Array) -> Array:
        """``log m``."""
        return namespace(mean).log(mean)

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """``Poisson(exp η)``."""
        # numpy's sampler refuses rates beyond 2^63; there a count is its rate to 9 digits.
        rate = self.mean(eta)
        return np.where(rate < 1e18, rng.poisson(np.minimum(rate, 1e18)), rate)  # noqa: PLR2004

    def contains(self, y: Array) -> Array:
        """``y ≥ 0``."""
        return (y >= 0) & namespace(y).isfinite(y)
