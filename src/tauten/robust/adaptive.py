"""The default robust gradient: every threshold chosen from the data, or switched off."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np

from .._array import Array
from ..registry import is_word
from ..tucker import Tucker
from .base import Pilot, Robustifier, required
from .cauchy import Cauchy
from .huber import Huber
from .shrink import Shrink
from .thresholds import MAD, MOST_SCORES, gentlest, robust_scale, sandwich
from .truncate import Truncate

# Candidate thresholds in robust standard deviations, from the most to the least cutting.
FACTORS = (
    (Huber, (0.2, 0.3, 0.5, 0.7)),
    (Cauchy, (0.5, 0.7, 1.0, 1.5, 2.385, 4.0)),
    (Huber, (1.0, 1.345, 1.7, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, np.inf)),
)
# A gentler bend is preferred while its estimated variance is within 2/√n of the best, relatively:
# about what n scores can tell.
SLACK = 2.0


class Adaptive(Robustifier, name="auto"):
    """Shrink the sample at ω, bend its residual at ν, then truncate the gradient it makes at τ.

    ``g_i = T(J_iᵀ ψ(r_i), τ)``: bending the residual tames responses, entry by entry before they
    mix; truncating the gradient, what is left of wild covariates. Bounds both. Truncating only the
    gradient would cut good samples that have large covariates; only the residual, none of the bad.

    Each threshold is chosen at a pilot fit, with no cross-validation, and is infinite where the
    data do not need it:

    - ψ and ν by the estimated asymptotic variance of a location, ``mean ψ² / (mean ψ')²``, over
      Huber's and Cauchy's scores at a grid of ν: the gentlest that is about as good as the best.
    - τ by the estimated error of A (the sandwich), per entry, over multiples of each entry's robust
      standard deviation: the gentlest within 5% of the best. Infinite for classes, whose scores are
      bounded and whose wild covariates ω has tamed: there it was never measured to gain anything.
    - ω, the median norm, only where the loss is not one of the residual (classes, counts): there
      scores are bounded or skewed, and the covariates are what can be wild. Samples with larger
      ones count less: see :class:`Shrink`.

    Parameters
    ----------
    omega, nu : float or "auto"
    tau : float, sequence or "auto"
        Fix a threshold instead; ``inf`` switches it off.

    Attributes
    ----------
    omega_, nu_ : float
    tau_ : float or list
        The thresholds in use.
    psi_ : str
        ``"huber"`` or ``"cauchy"``.

    Examples
    --------
    >>> import numpy as np
    >>> robust = Adaptive(omega=np.inf, nu=2.0, tau=1.0).calibrate()
    >>> robust.sample(3.0 * robust.score(np.array([0.1, 9.0])), k=0)
    array([0.3, 1. ])
    """

    bounds = frozenset({"responses", "covariates"})

    def __init__(self, omega: Any = "auto", nu: Any = "auto", tau: Any = "auto") -> None:
        self.omega = omega
        self.nu = nu
        self.tau = tau

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Choose each threshold with the ones before it in place."""
        new = copy(self)
        auto = is_word(self.tau, "auto")
        new._truncate = Truncate(np.inf if auto else self.tau).calibrate(pilot)
        new._bend = self._choose_bend(pilot)
        new._shrink = Shrink(self._choose_omega(pilot)).calibrate(pilot)
        new._publish()
        if not auto or required(pilot).direct or required(pilot).classes:
            return new  # PCA has no covariates that could be wild; ω has tamed those of classes
        return new._with_tau(sandwich(required(pilot), new._with_tau, new.score))

    def _choose_omega(self, pilot: Pilot | None) -> Any:
        idle = pilot is None or pilot.residual or pilot.direct
        return np.inf if idle and is_word(self.omega, "auto") else self.omega

    def _choose_bend(self, pilot: Pilot | None) -> Huber:
        if not is_word(self.nu, "auto"):
            return Huber(self.nu).calibrate(pilot)
        pilot = required(pilot)
        return (
            choose_bend(pilot.scores(MOST_SCORES)) if pilot.residual else Huber(np.inf).calibrate()
        )

    def _with_tau(self, tau: Any) -> Self:
        return self._with(self._bend, Truncate(tau).calibrate())

    def with_bend(self, bend: Huber) -> Self:
        """The same thresholds with another bend of the score."""
        return self._with(bend, self._truncate)

    def _with(self, bend: Huber, truncate: Truncate) -> Self:
        new = copy(self)
        new._bend, new._truncate = bend, truncate
        return new._publish()

    def _publish(self) -> Self:
        self.omega_, self.nu_, self.tau_ = self._shrink.omega_, self._bend.nu_, self._truncate.tau_
        self.psi_ = self._bend.name
        return self

    def shrink(self, norms: Callable[[], Array]) -> Array | None:
        """See :class:`Shrink`."""
        return self._shrink.shrink(norms)

    def score(self, score: Array) -> Array:
        """See :class:`Huber` and :class:`Cauchy`."""
        return self._bend.score(score)

    def sample(self, gradient: Array, k: int) -> Array:
        """See :class:`Truncate`."""
        return self._truncate.sample(gradient, k)

    def samples(self, gradients: Array, point: Tucker) -> Array:
        """See :class:`Truncate`."""
        return self._truncate.samples(gradients, point)

    def sample_slope(self, gradient: Array, k: int) -> Array:
        """See :class:`Truncate`."""
        return self._truncate.sample_slope(gradient, k)

    def sample_slopes(self, gradients: Array, point: Tucker) -> Array:
        """See :class:`Truncate`."""
        return self._truncate.sample_slopes(gradients, point)


def choose_bend(scores: np.ndarray) -> Huber:
    """Choose a bend by the estimated asymptotic variance of a location; nan is missing."""
    scores = drawn(scores[np.isfinite(scores)])
    scale = robust_scale(scores) if scores.size else 0.0
    if scale == 0:
        return Huber(np.inf).calibrate()
    bends = [
        family(factor * scale).calibrate() for family, factors in FACTORS for factor in factors
    ]
    fits = [location_variance(bend.score, scores, scale / MAD) for bend in bends]
    variances = [variance for variance, _ in fits]
    best = int(np.argmin(variances))
    # Bend only if that beats least squares beyond doubt: two standard errors of the log ratio.
    doubt = np.std(fits[best][1] - fits[-1][1]) / np.sqrt(scores.size)
    if np.log(variances[-1] / variances[best]) <= 2 * doubt:
        return bends[-1]
    return gentlest(bends, variances, 1 + SLACK / np.sqrt(scores.size))


def drawn(scores: np.ndarray) -> np.ndarray:
    """As many scores as scales and bends come of; not strided: that may meet one response entry."""
    if scores.size <= MOST_SCORES:
        return scores
    return scores[np.random.default_rng(0).integers(scores.size, size=MOST_SCORES)]


def slopes_of(
    bend: Callable[[Array], Array], scores: np.ndarray, typical: float | None = None
) -> np.ndarray:
    """Derivative of a bend at each score; taken as one where most are zero, and tell no scale.

    `typical` is the median of their sizes, if it is known.
    """
    h = 1e-4 * (np.median(np.abs(scores)) if typical is None else typical)
    if h == 0:
        return np.ones_like(scores)
    return np.asarray(bend(scores + h) - bend(scores - h)) / (2 * h)


def location_variance(
    bend: Callable[[Array], Array], scores: np.ndarray, typical: float | None = None
) -> tuple[float, np.ndarray]:
    """``mean ψ² / (mean ψ')²``, the variance of the location that ψ estimates.

    Returned with each score's influence on its logarithm. For `typical` see :func:`slopes_of`.
    """
    squares, slopes = bend(scores) ** 2, slopes_of(bend, scores, typical)
    if not np.mean(slopes) > 0:
        return np.inf, np.zeros_like(scores)
    influence = squares / np.mean(squares) - 2 * slopes / np.mean(slopes)
    return float(np.mean(squares) / np.mean(slopes) ** 2), influence
