"""The paper's robust gradient: entrywise truncation, section 2.3."""

from __future__ import annotations

from typing import Any

from .._array import Array, clip
from .base import GradientThreshold, Pilot, entry_scales


class Truncate(GradientThreshold, name="truncate"):
    """Truncate every entry of every per-sample gradient, then average (the paper's RGD).

    ``G_k = (1/n) Σ_i T(∇_{U_k} L(F; z_i), τ)`` with ``T(x, τ) = sgn(x) min(|x|, τ)``. Bounds the
    influence of responses and covariates: one sample moves no entry by more than 2τ/n.

    Parameters
    ----------
    tau : float, sequence, or "auto"
        One threshold for every block as in the paper; one per block (core, U_1, ..., U_d, and the
        intercept's where there is one); one array per block for a threshold per entry; ``inf`` for
        no truncation; ``"auto"`` for a threshold per entry, 8 robust standard deviations of that
        entry over the samples of the pilot.

    Attributes
    ----------
    tau_ : list
        The threshold in use, block by block.

    Examples
    --------
    >>> import numpy as np
    >>> Truncate(tau=1.0).calibrate().sample(np.array([[0.5], [-7.0]]), k=0)
    array([[ 0.5],
           [-1. ]])
    """

    def choose(self, pilot: Pilot) -> list[Any]:
        """Eight robust standard deviations of each entry."""
        return [8 * scale for scale in entry_scales(pilot.gradients())]

    def sample(self, gradient: Array, k: int) -> Array:
        """``T(g, τ_k)``."""
        return clip(gradient, self.threshold(k))
