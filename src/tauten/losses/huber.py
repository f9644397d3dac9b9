"""Huber's loss: the paper's equation (huber), with |x| in its linear part."""

from __future__ import annotations

from .._array import Array, clip, namespace
from .squared import Squared


class Huber(Squared, name="huber"):
    """Huber loss ``½ ℓ_ν(η - y)``, ``ℓ_ν(x) = x²`` if ``|x| ≤ ν``, else ``2ν|x| - ν²``.

    Its score is the residual truncated at ν; with ``nu=inf`` it is the squared error. The
    robustifier of the same name does the same to any loss, and can choose ν from the data.

    Parameters
    ----------
    nu : float
        Residual threshold, in the units of y.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(nu=2.0).score(np.array([1.0, 9.0]), np.array([0.0, 0.0]))
    array([1., 2.])
    """

    def __init__(self, nu: float = 1.345) -> None:
        self.nu = nu

    def value(self, eta: Array, y: Array) -> Array:
        """``½ ℓ_ν(η - y)``, written as ``s (r - s / 2)`` with s the truncated residual."""
        bent = self.score(eta, y)
        return bent * (eta - y - bent / 2)

    def score(self, eta: Array, y: Array) -> Array:
        """``T(η - y, ν)``."""
        if not self.nu > 0:
            raise ValueError(f"nu must be positive; got {self.nu}")
        return clip(eta - y, self.nu)

    def curvature(self, eta: Array, y: Array) -> Array:
        """One where the residual is within ν, else zero."""
        xp = namespace(eta)
        return xp.astype(xp.abs(eta - y) <= self.nu, (eta - y).dtype)
