"""Several classes: softmax along the last response mode."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace
from .base import Loss


class Multinomial(Loss, name="multinomial"):
    """Negative log-likelihood ``log Σ_c exp η_c - Σ_c y_c η_c`` of class shares y.

    The classes lie along the last axis, where y is one-hot (or sums to one). The value is spread
    over the classes, ``y_c (log Σ exp η - η_c)``, so that it has the shape of η and sums to ℓ.

    Examples
    --------
    >>> import numpy as np
    >>> Multinomial().mean(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    domain = "class shares that sum to one along the last axis"
    classes = True
    one_hot = True

    def value(self, eta: Array, y: Array) -> Array:
        """``y_c (log Σ exp η - η_c)``, after subtracting the largest η."""
        xp = namespace(eta)
        shifted = eta - xp.max(eta, axis=-1, keepdims=True)
        return y * (xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True)) - shifted)

    def score(self, eta: Array, y: Array) -> Array:
        """``P(c | η) - y_c``."""
        return self.mean(eta) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        """``P(c | η) (1 - P(c | η))``: the diagonal of the Hessian."""
        p = self.mean(eta)
        return p * (1 - p) * namespace(eta).ones_like(y)

    def weight(self, eta: Array, y: Array) -> Array:
        """``P(c | η)``: diag p lies above the Hessian diag p - p pᵀ, whose diagonal does not."""
        return self.mean(eta) * namespace(eta).ones_like(y)

    def pseudo_observations(self, eta: Array, spread: Array) -> tuple[Array, Array]:
        """``P(c) (h - q_c) / 2`` for spreads q and ``h = Σ_c P(c) q_c``; C h / 2(C - 1) in number.

        With two classes both are the logistic loss's. In a saturated model q_c is 1 / P(c) - 1, and
        they are C / 2 observations of all classes in equal shares.
        """
        p, classes = self.mean(eta), eta.shape[-1]
        total = namespace(eta).sum(p * spread, axis=-1, keepdims=True)
        count = namespace(eta).ones_like(eta) * total * classes / (2 * (classes - 1))
        return p * (total - spread) / 2, count

    def mean(self, eta: Array) -> Array:
        """``P(c | η) = exp η_c / Σ exp η``."""
        xp = namespace(eta)
        weights = xp.exp(eta - xp.max(eta, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    def link(self, mean: Array) -> Array:
        """``log m_c`` minus its mean over the classes."""
        xp = namespace(mean)
        return xp.log(mean) - xp.mean(xp.log(mean), axis=-1, keepdims=True)

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One-hot draws of the classes."""
        edges = np.cumsum(self.mean(eta), axis=-1)
        label = np.sum(rng.random((*eta.shape[:-1], 1)) > edges[..., :-1], axis=-1)
        return np.eye(eta.shape[-1], dtype=eta.dtype)[label]

    def contains(self, y: Array) -> Array:
        """``y_c ≥ 0`` and ``Σ_c y_c = 1``."""
        xp = namespace(y)
        total = xp.sum(y, axis=-1, keepdims=True)
        return (y >= 0) & (xp.abs(total - 1) < 1e-6)  # noqa: PLR2004
