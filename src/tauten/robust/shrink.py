"""Norm shrinkage of the covariates: step 1 of the paper's initialisation, for the whole fit."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np

from .._array import Array, like, namespace
from ..registry import is_word
from .base import Pilot, Robustifier, positive, required


class Shrink(Robustifier, name="shrink"):
    """Shrink every covariate to norm ω, ``X_i min(1, ω / ‖X_i‖_F)``; a residual shrinks along.

    With a loss of the residual (squared, Huber) the response is scaled with its covariate, so that
    a sample that fits keeps fitting. A label or a count cannot shrink along, and A would come out
    too large; there the sample keeps its size and counts ``min(1, ω / ‖X_i‖_F)²``, as its squared
    residual would. Bounds the influence of covariates only.

    Parameters
    ----------
    omega : float or "auto"
        Norm threshold; ``"auto"`` is the median norm of the pilot's covariates.

    Attributes
    ----------
    omega_ : float
        The threshold in use.

    Examples
    --------
    >>> import numpy as np
    >>> Shrink(omega=1.0).calibrate().shrink(lambda: np.array([0.5, 5.0]))
    array([1. , 0.2])
    """

    bounds = frozenset({"covariates"})

    def __init__(self, omega: Any = "auto") -> None:
        self.omega = omega

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Check omega, or take the median norm."""
        new = copy(self)
        if is_word(self.omega, "auto"):  # covariates that are mostly zero have no norm to shrink to
            new.omega_ = float(np.median(required(pilot).norms())) or np.inf
        else:
            new.omega_ = positive("omega", self.omega)
        return new

    def shrink(self, norms: Callable[[], Array]) -> Array | None:
        """``min(1, ω / ‖X_i‖_F)``."""
        if np.isinf(self.omega_):
            return None
        sizes = norms()
        return self.omega_ / namespace(sizes).maximum(sizes, like(self.omega_, sizes))
