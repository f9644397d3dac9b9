"""The paper's robust gradient: entrywise truncation, section 2.3."""

from __future__ import annotations

from typing import Any

from .._array import Array, clip, like, namespace
from ..tucker import Tucker
from .base import GradientThreshold, Pilot
from .thresholds import entry_scales, sandwich, theory, tuning_free


class Truncate(GradientThreshold, name="truncate"):
    """Truncate every entry of every per-sample gradient, then average (the paper's RGD).

    ``G_k = (1/n) Σ_i T(∇_{U_k} L(F; z_i), τ)`` with ``T(x, τ) = sgn(x) min(|x|, τ)``. Bounds the
    influence of responses and covariates: one sample moves no entry by more than 2τ/n.

    Parameters
    ----------
    tau : float, sequence, "auto", "theory", "tuning-free" or "cv"
        One threshold for every block as in the paper; one per block (core, U_1, ..., U_d, and the
        intercept's where there is one); one array per block for a threshold per entry; ``inf`` for
        no truncation. Chosen from the data: ``"auto"`` by the estimated error of A (the sandwich),
        ``"theory"`` by the paper's rate, ``"tuning-free"`` by the censored second moment, all per
        entry; ``"cv"`` one for all blocks by cross-validation, with an estimator only.

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

    rules = ("auto", "theory", "tuning-free", "cv")

    def choose(self, pilot: Pilot) -> list[Any]:
        """See :mod:`tauten.robust.thresholds`."""
        if self.tau == "auto" and pilot.direct:  # no covariates: nothing to weigh against
            return [8 * scale for scale in entry_scales(pilot.gradients())]
        if self.tau == "cv":
            raise ValueError("tau='cv' needs an estimator, which fits the folds")
        if self.tau == "auto":
            return sandwich(pilot, lambda tau: Truncate(tau).calibrate())
        return theory(pilot) if self.tau == "theory" else tuning_free(pilot)

    def sample(self, gradient: Array, k: int) -> Array:
        """``T(g, τ_k)``."""
        return clip(gradient, self.threshold(k))

    def samples(self, gradients: Array, point: Tucker) -> Array:
        """``T(g, τ)`` of all blocks at once."""
        return clip(gradients, self.thresholds(point))

    def sample_slope(self, gradient: Array, k: int) -> Array:
        """One where nothing is cut, zero elsewhere."""
        return _whole(gradient, self.threshold(k))

    def sample_slopes(self, gradients: Array, point: Tucker) -> Array:
        """The same of all blocks at once."""
        return _whole(gradients, self.thresholds(point))


def _whole(gradient: Array, tau: Any) -> Array:
    xp = namespace(gradient)
    return xp.astype(xp.abs(gradient) < like(tau, gradient), gradient.dtype)
