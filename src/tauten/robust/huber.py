"""Huber's residual truncation: the paper's rival HUB, equation (huber)."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from .._array import Array, clip
from ..registry import is_word
from .base import Pilot, Robustifier, positive, required
from .thresholds import MOST_SCORES, robust_scale


class Huber(Robustifier, name="huber"):
    """Truncate the score at ν before it meets the covariate (the paper's rival HUB).

    With the squared loss this is Huber regression, ``(1/n) Σ_i X_i ∘ T(<A, X_i> - Y_i, ν)``.
    Bounds the influence of responses only: a wild covariate still carries any weight.

    Parameters
    ----------
    nu : float or "auto"
        Threshold, in the units of the score (for the squared loss, of y). ``"auto"`` is 1.345
        robust standard deviations of the pilot's scores: 95% efficient for normal noise.

    Attributes
    ----------
    nu_ : float
        The threshold in use.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(nu=2.0).calibrate().score(np.array([1.0, -9.0]))
    array([ 1., -2.])
    """

    bounds = frozenset({"responses"})
    factor: ClassVar[float] = 1.345

    def __init__(self, nu: Any = "auto") -> None:
        self.nu = nu

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Check nu, or take 1.345 robust standard deviations of the scores."""
        new = copy(self)
        auto = is_word(self.nu, "auto")
        new.nu_ = self.factor * score_scale(required(pilot)) if auto else positive("nu", self.nu)
        return new

    def score(self, score: Array) -> Array:
        """``T(s, ν)``."""
        return clip(score, self.nu_)

    def value(self, score: Array) -> Array:
        """The loss that bent scores are the slope of: ``T(s, ν) (s - T(s, ν) / 2)``."""
        bent = self.score(score)
        return bent * (score - bent / 2)


def score_scale(pilot: Pilot) -> float:
    """Return the robust standard deviation of the pilot's scores; inf if most are zero."""
    return robust_scale(pilot.scores(MOST_SCORES)) or np.inf
