"""Binary responses: section 3.3 of the paper, Φ(t) = log(1 + exp t)."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace, ratio
from .base import Loss


class Logistic(Loss, name="logistic"):
    """Negative log-likelihood ``log(1 + exp η) - y η`` of a binary response.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().score(np.array([0.0, 800.0]), np.array([1.0, 1.0]))
    array([-0.5,  0. ])
    """

    domain = "0 or 1 (or probabilities)"
    classes = True

    def value(self, eta: Array, y: Array) -> Array:
        """``max(η, 0) + log(1 + exp(-|η|)) - y η``: no exponential of a positive number."""
        xp = namespace(eta)
        return xp.maximum(eta, xp.zeros_like(eta)) + xp.log1p(xp.exp(-xp.abs(eta))) - y * eta

    def score(self, eta: Array, y: Array) -> Array:
        """``P(1 | η) - y``."""
        return self.mean(eta) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        """``P(1 | η) P(0 | η)``."""
        xp = namespace(eta)
        return self.mean(eta) * self.mean(-eta) * xp.ones_like(y)

    def weight(self, eta: Array, y: Array) -> Array:
        """Curvature of a sample in its class, ``tanh(η/2) / 2η`` of one in the other, and between.

        The curvature vanishes where a sample is far on the wrong side, and a step divided by it
        runs away; that of a quadratic above the loss does not, but is slow where all is well.
        """
        bound = ratio(self.mean(eta) - 0.5, eta, otherwise=namespace(eta).ones_like(eta) / 4)
        wrong = namespace(eta).abs(self.score(eta, y))
        return (1 - wrong) * self.curvature(eta, y) + wrong * bound

    def pseudo_observations(self, eta: Array, spread: Array) -> tuple[Array, Array]:
        """``h (P(1 | η) - 1/2)``, and the hat value ``h = P(1 | η) P(0 | η) Var(η)``."""
        count = self.mean(eta) * self.mean(-eta) * spread
        return count * (self.mean(eta) - 0.5), count

    def mean(self, eta: Array) -> Array:
        """``P(1 | η) = 1 / (1 + exp(-η))``."""
        xp = namespace(eta)
        small = xp.exp(-xp.abs(eta))
        return xp.where(eta >= 0, xp.ones_like(eta), small) / (1 + small)

    def link(self, mean: Array) -> Array:
        """``log(m / (1 - m))``."""
        xp = namespace(mean)
        return xp.log(mean) - xp.log1p(-mean)

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """``Bernoulli(P(1 | η))``."""
        return (rng.random(np.shape(eta)) < self.mean(eta)).astype(eta.dtype)

    def contains(self, y: Array) -> Array:
        """``0 ≤ y ≤ 1``."""
        return (y >= 0) & (y <= 1)
