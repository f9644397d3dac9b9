"""Norm clipping, as in the training of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._array import Array, like, namespace
from .base import GradientThreshold, Pilot


class NormClip(GradientThreshold, name="normclip"):
    """Scale every per-sample gradient block down to norm τ, then average.

    ``g_i min(1, τ / ‖g_i‖_F)``: keeps the direction of a gradient, where truncation keeps the sign
    of each entry. Bounds the influence of responses and covariates.

    Parameters
    ----------
    tau : float, sequence, or "auto"
        One threshold, or one per block; ``"auto"`` is three times the median norm of each block.

    Attributes
    ----------
    tau_ : list
        The threshold in use, block by block.

    Examples
    --------
    >>> import numpy as np
    >>> NormClip(tau=1.0).calibrate().sample(np.array([[3.0, 4.0]]), k=0)
    array([[0.6, 0.8]])
    """

    def choose(self, pilot: Pilot) -> list[Any]:
        """Three times the median norm of each block."""
        norms = [np.linalg.norm(g.reshape(g.shape[0], -1), axis=1) for g in pilot.gradients()]
        return [3 * float(np.median(norm)) or np.inf for norm in norms]

    def sample(self, gradient: Array, k: int) -> Array:
        """``g_i min(1, τ_k / ‖g_i‖_F)``."""
        tau = self.threshold(k)
        if np.ndim(tau) > 0:
            raise ValueError("tau must be one number per block for norm clipping; got an array")
        if np.isinf(tau):
            return gradient
        xp = namespace(gradient)
        axes = tuple(range(1, gradient.ndim))
        norms = xp.linalg.vector_norm(gradient, axis=axes, keepdims=True)
        return gradient * (tau / xp.maximum(norms, like(tau, gradient)))
