"""Rules that choose a gradient threshold from a pilot fit, for ``tau="theory"`` and the like.

Each returns one threshold per block, as an array with one entry per gradient entry, and is
equivariant: gradients twice as large get thresholds twice as large.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._median import medians
from .base import Pilot, Robustifier

MAD = 1.4826  # the median absolute deviation of a normal variable times this is its sd
# Candidates, in robust standard deviations. The last one cuts nothing but what is out of this
# world, yet keeps the influence of one sample bounded: a single huge covariate makes itself fit, so
# that its own estimated error never speaks against it.
FACTORS = (2.0, 4.0, 8.0, 16.0, 32.0, 100.0)
ROUGH = FACTORS[1::2]  # are enough where a better choice follows
# A gentler threshold is preferred while it costs no more than this in estimated error: the
# estimates are noisy, and a cut that is not needed loses good samples.
SLACK = 1.05
FLAT = 1.2  # estimated errors that differ by less are about as good
# Data are clean beyond doubt if no entry is larger, in standard deviations, and no threshold gains
# more where entries are taken one by one: their errors then hardly ever ask for a cut.
MODERATE, SURE = 32.0, 1.01
MOST_SCORES = 200_000  # that scales and bends come of: variances are then good to half a per cent
FEWEST = 10  # fewer samples (PCA of one tensor) tell no scale


def robust_scale(x: np.ndarray) -> float:
    """Robust standard deviation ``1.4826 median |x|`` about zero; nan is missing."""
    return MAD * float(np.nanmedian(np.abs(x)))


def entry_scales(gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Robust standard deviation ``1.4826 median_i |g_ij|`` of every gradient entry.

    An entry that is zero in most samples has none; it gets the largest of its block.
    """
    if gradients[0].shape[0] < FEWEST:
        return [np.full(g.shape[1:], np.inf) for g in gradients]
    scales = []
    for g in gradients:
        scale = MAD * medians(np.abs(g))
        largest = scale.max(initial=0.0)
        scales.append(np.where(scale > 0, scale, largest if largest > 0 else np.inf))
    return scales


def theory(pilot: Pilot) -> list[np.ndarray]:
    """The paper's rate ``(n / log p̄)^{1/2}``, times the robust standard deviation of each entry.

    Theorem 2 with ε = 1, its moment estimated entry by entry.
    """
    gradients = pilot.gradients()
    largest = max(g.shape[1] for g in gradients[1:])
    rate = math.sqrt(pilot.n / math.log(max(largest, 2)))
    return [rate * scale for scale in entry_scales(gradients)]


def tuning_free(pilot: Pilot) -> list[np.ndarray]:
    """Solve ``mean_i min(g_i², τ²) / τ² = 10 log(n D) / n`` in each entry (censored second moment).

    The equation of Wang, Zheng, Zhou and Zhu (2021) for a robust mean; their constant 1 leaves too
    much in under very heavy tails, 10 is what we measured to work.
    """
    gradients = pilot.gradients()
    size = sum(math.prod(g.shape[1:]) for g in gradients)
    share = min(0.5, 10 * math.log(pilot.n * size) / pilot.n)
    return [_censored_root(np.abs(g), share) for g in gradients]


def _censored_root(sizes: np.ndarray, share: float) -> np.ndarray:
    """Bisect for τ: the mean of min(g², τ²)/τ² falls from 1 to 0 as τ grows."""
    low, high = np.zeros(sizes.shape[1:]), sizes.max(axis=0) / math.sqrt(share)
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.mean(np.minimum(sizes / middle, 1) ** 2, axis=0)
        low, high = np.where(mean > share, middle, low), np.where(mean > share, high, middle)
    return np.where(high > 0, high, np.inf)


def sandwich(
    pilot: Pilot,
    make: Callable[[Any], Robustifier],
    bend: Callable[[Any], Any] | None = None,
) -> list[np.ndarray]:
    """Gentlest multiple of the entries' scales whose estimated error of A is within 5% of the best.

    Errors are not worked out where no entry is large, and no multiple does better than the gentlest
    where entries are taken one by one: these data are clean.

    Parameters
    ----------
    pilot : Pilot
    make : callable
        Makes the robustifier to be tried from its thresholds.
    bend : callable, optional
        How scores are bent before they make a gradient.
    """
    canonical = pilot.canonical()
    gradients = telling = canonical.gradients(bend)
    if pilot.classes:  # most scores of a good fit are about zero, and tell no scale
        bend = _undecided
        telling = canonical.gradients(bend)
    scales = entry_scales(telling)
    pairs = zip(gradients, scales, strict=True)
    largest = max(float(np.max(np.abs(g) / s, initial=0.0)) for g, s in pairs)

    def made(some: Sequence[float]) -> list[Robustifier]:
        return [make([c * s for s in scales]) for c in some]

    factor = _factor(canonical, made, largest, rough=pilot.rough)
    own = scales if canonical is pilot else entry_scales(pilot.gradients(bend))
    return [factor * s for s in own]


def _factor(
    pilot: Pilot,
    made: Callable[[Sequence[float]], list[Robustifier]],
    largest: float,
    *,
    rough: bool,
) -> float:
    """The gentlest factor whose estimated error is about the least.

    `largest` is the largest entry, in standard deviations.
    """
    factors = ROUGH if rough else FACTORS
    # Of those that cut nothing one is enough: the others are the same.
    tried = [c for below, c in itertools.pairwise((0.0, *factors)) if not below > largest]
    if len(tried) == 1:
        return factors[-1]
    if largest <= MODERATE:
        alone = as_needed(lambda some: pilot.entry_risks(made(some)), tried)
        if alone[-1] <= SURE * min(alone):  # not where they are not known
            return factors[-1]
    found = as_needed(lambda some: pilot.risks(made(some)), tried)
    found += [found[-1]] * (len(factors) - len(tried))
    return float(gentlest(factors, found, SLACK))


def _undecided(scores: Any) -> Any:
    """Scores of samples whose class is anybody's guess."""
    return 0 * scores + 0.5


def as_needed(
    costs: Callable[[Sequence[Any]], list[float]], candidates: Sequence[Any]
) -> list[float]:
    """Costs of candidates, from the most to the least cutting; infinite where nothing asks for one.

    Nothing asks for those that cut more than the middle one where it is no better than the next,
    and all from there on are about as good: these data are clean.

    Examples
    --------
    >>> as_needed(lambda some: [1 + 0.01 * (x - 5) ** 2 for x in some], [1, 2, 3, 4, 5, 6])
    [inf, inf, 1.04, 1.01, 1.0, 1.01]
    """
    low = (len(candidates) - 1) // 2
    found = costs(candidates[low:])
    flat = all(cost <= FLAT * min(found) for cost in found)
    if flat and found[0] >= found[min(1, len(found) - 1)]:
        return [*[math.inf] * low, *found]
    return [*costs(candidates[:low]), *found]


def gentlest(candidates: Sequence[Any], costs: Sequence[float], slack: float) -> Any:
    """Return the last candidate whose cost is within `slack` of the least; of no costs, the last.

    There are none where a fit is perfect: separable classes have no curvature left.
    """
    finite = [cost for cost in costs if np.isfinite(cost)]
    if not finite:
        return candidates[-1]
    enough = max(slack * min(finite), min(finite))  # rounding may leave a least cost below zero
    return [c for c, cost in zip(candidates, costs, strict=True) if cost <= enough][-1]
