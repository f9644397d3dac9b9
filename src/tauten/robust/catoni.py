"""Catoni's influence function."""

from __future__ import annotations

import math
from typing import Any

from .._array import Array, clip, like
from .base import GradientThreshold, Pilot
from .thresholds import entry_scales


class Catoni(GradientThreshold, name="catoni"):
    """Bend every entry smoothly, ``τ ψ(g / τ)``, with the bounded ψ of Catoni and Giulini (2017).

    ``ψ(t) = t - t³/6`` for ``|t| ≤ √2`` and ``±2√2/3`` beyond: the polynomial between Catoni's
    logarithmic limits. Bounds the influence of responses and covariates.

    Parameters
    ----------
    tau : float, sequence, or "auto"
        Scale of the bend: one, one per block, or one array per block. ``"auto"`` is Catoni's
        ``sd √(n / (2 log 2n))`` with the robust standard deviation of each entry.

    Attributes
    ----------
    tau_ : list
        The scale in use, block by block.

    Examples
    --------
    >>> import numpy as np
    >>> Catoni(tau=1.0).calibrate().sample(np.array([[0.1], [100.0]]), k=0).round(3)
    array([[0.1  ],
           [0.943]])
    """

    def choose(self, pilot: Pilot) -> list[Any]:
        """Catoni's scale, from the robust standard deviation of each entry."""
        width = math.sqrt(pilot.n / (2 * math.log(2 * pilot.n)))
        return [width * scale for scale in entry_scales(pilot.gradients())]

    def sample(self, gradient: Array, k: int) -> Array:
        """``τ ψ(g / τ)``, as ``c - c³ / (6 τ²)`` with ``c = T(g, √2 τ)``: exact at τ = inf."""
        tau = like(self.threshold(k), gradient)
        bounded = clip(gradient, math.sqrt(2) * tau)
        return bounded * (1 - (bounded / tau) ** 2 / 6)
