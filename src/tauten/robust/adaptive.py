"""The default robust gradient: samples, residuals and gradients, each bent at a pilot's scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .._array import Array
from .base import Pilot, Robustifier
from .huber import Huber
from .shrink import Shrink
from .truncate import Truncate


class Adaptive(Robustifier, name="auto"):
    """Shrink the sample at ω, truncate its residual at ν, then the gradient it makes at τ.

    ``g_i = T(J_iᵀ T(r_i, ν), τ)``: the residual's truncation tames responses, entry by entry
    before they mix; the gradient's, what is left of wild covariates. Bounds both. Truncating only
    the gradient would cut good samples that have large covariates; only the residual, none of the
    bad ones.

    Parameters
    ----------
    omega : float or "auto"
        Norm threshold of :class:`Shrink`; off by default.
    nu : float or "auto"
        Residual threshold of :class:`Huber`.
    tau : float, sequence or "auto"
        Gradient threshold of :class:`Truncate`.

    Attributes
    ----------
    omega_, nu_ : float
    tau_ : float or list
        The thresholds in use.

    Examples
    --------
    >>> import numpy as np
    >>> robust = Adaptive(nu=2.0, tau=1.0).calibrate()
    >>> robust.sample(3.0 * robust.score(np.array([0.1, 9.0])), k=0)
    array([0.3, 1. ])
    """

    bounds = frozenset({"responses", "covariates"})

    def __init__(self, omega: Any = np.inf, nu: Any = "auto", tau: Any = "auto") -> None:
        self.omega = omega
        self.nu = nu
        self.tau = tau

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Calibrate each step with the ones before it in place."""
        new = clone(self)
        new._shrink = Shrink(self.omega).calibrate(pilot)
        new._huber = Huber(self.nu).calibrate(pilot)
        after = None if pilot is None else _BentPilot(pilot, new.score)
        new._truncate = Truncate(self.tau).calibrate(after)
        new.omega_, new.nu_ = new._shrink.omega_, new._huber.nu_
        new.tau_ = new._truncate.tau_
        return new

    def shrink(self, X: Array, center: Array | None = None) -> Array | None:
        """See :class:`Shrink`."""
        return None if np.isinf(self.omega_) else self._shrink.shrink(X, center)

    def score(self, score: Array) -> Array:
        """``T(s, ν)``."""
        return self._huber.score(score)

    def sample(self, gradient: Array, k: int) -> Array:
        """``T(g, τ_k)``."""
        return self._truncate.sample(gradient, k)


class _BentPilot:
    """A pilot whose gradients come from scores that are bent already."""

    def __init__(self, pilot: Pilot, bend: Callable[[Array], Array]) -> None:
        self.n, self.n_blocks = pilot.n, pilot.n_blocks
        self.scores, self.norms = pilot.scores, pilot.norms
        self._pilot, self._bend = pilot, bend

    def gradients(self, bend: Callable[[Array], Array] | None = None) -> list[np.ndarray]:
        return self._pilot.gradients(self._bend if bend is None else bend)
