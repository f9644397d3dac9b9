"""The pseudo-Huber score: Huber's without the corner."""

from __future__ import annotations

from .._array import Array
from .huber import Huber


class PseudoHuber(Huber, name="pseudohuber"):
    """Bend the score as ``s / √(1 + (s / ν)²)``, which levels off at ν.

    With the squared loss, the gradient of the pseudo-Huber loss ``ν² (√(1 + (r / ν)²) - 1)``, which
    the paper starts PCA from (Shen and Xia, 2023). Bounds the influence of responses only.

    Parameters
    ----------
    nu : float or "auto"
        Threshold, in the units of the score; ``"auto"`` is one robust standard deviation of the
        pilot's scores.

    Attributes
    ----------
    nu_ : float
        The threshold in use.

    Examples
    --------
    >>> import numpy as np
    >>> PseudoHuber(nu=1.0).calibrate().score(np.array([0.0, 0.75, 1e9]))
    array([0. , 0.6, 1. ])
    """

    factor = 1.0

    def score(self, score: Array) -> Array:
        """``s / √(1 + (s / ν)²)``."""
        return score / (1 + (score / self.nu_) ** 2) ** 0.5

    def value(self, score: Array) -> Array:
        """``ν² (√(1 + (s / ν)²) - 1)``."""
        return self.nu_**2 * ((1 + (score / self.nu_) ** 2) ** 0.5 - 1)
