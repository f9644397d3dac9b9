"""The paper's prose claims, which recur from model to model, as :class:`~.claims.Claim` objects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from .claims import (
    Claim,
    Line,
    Quantity,
    Sample,
    fit_line,
    line_through,
    lines,
    mean,
    share,
    smoothed,
)

# What prose leaves open. Slopes are of log errors per doubling of n, where theory says up to 0.69.
BEND = 0.25  # "linear": the bend is under a quarter of the rise
SLOPE_MARGIN = 0.1  # "stabilise", and "as the theorem says"
SHARE_MARGIN = 0.15  # "similar" shares of converged runs
ALIKE = math.log(1.1)  # "nearly identical" squared errors
MUCH_LARGER = math.log(2.0)  # "much larger" squared errors
SMALLEST = math.log(1.05)  # "smallest": nobody is smaller by more than this
METHOD = "RGD"


def theory_slope(epsilon: float) -> float:
    """Growth of ``-log ‖Â - A*‖²`` per doubling of n, ``2ε/(1+ε) log 2`` with ε at most one.

    Examples
    --------
    >>> round(theory_slope(1.6), 3)
    0.693
    """
    effective = min(1.0, epsilon)
    return 2 * effective / (1 + effective) * math.log(2)


def _difference(label: str, up: Line, down: Line, **region: float) -> Quantity:
    stderr = math.hypot(up.stderr, down.stderr)
    return Quantity(label, up.slope - down.slope, stderr, df=up.df + down.df, **region)


def _linear(sample: Sample) -> Iterator[Quantity]:
    for (panel, series), line in lines(sample, METHOD).items():
        label = f"{panel}, ε = {series}: bend / rise"
        yield Quantity(label, line.bend, line.bend_stderr, -BEND, BEND, line.df)


def _rising(sample: Sample) -> Iterator[Quantity]:
    found = lines(sample, METHOD)
    for panel in sample.panels:
        below = [s for s in sample.series(panel) if float(s) <= 1]
        for small, large in itertools.pairwise(below):
            label = f"{panel}: slope at ε = {large} less that at {small}"
            yield _difference(label, found[panel, large], found[panel, small], low=0.0)


def _stable(sample: Sample) -> Iterator[Quantity]:
    found = lines(sample, METHOD)
    for panel in sample.panels:
        first, *others = [s for s in sample.series(panel) if float(s) >= 1]
        for other in others:
            label = f"{panel}: slope at ε = {other} less that at {first}"
            region = {"low": -SLOPE_MARGIN, "high": SLOPE_MARGIN}
            yield _difference(label, found[panel, other], found[panel, first], **region)


def _rate(sample: Sample) -> Iterator[Quantity]:
    for (panel, series), line in lines(sample, METHOD).items():
        want = theory_slope(float(series))
        label = f"{panel}, ε = {series}: slope (theory {want:.2f})"
        low, high = want - SLOPE_MARGIN, want + SLOPE_MARGIN
        yield Quantity(label, line.slope, line.stderr, low, high, line.df)


def rates() -> tuple[Claim, ...]:
    """Experiments 2 and 8: how the error falls with n, by the tail of the noise."""
    return (
        Claim(
            "linear in m",
            "For each ε, the average negative log errors exhibit a linear relationship with m",
            _linear,
            f"the quadratic term bends each line by less than {BEND:.0%} of its rise",
        ),
        Claim(
            "slopes rise with ε below 1",
            "When ε is in (0, 1), the slope increases as ε increases",
            _rising,
            "each slope is larger than that of the ε before it",
        ),
        Claim(
            "slopes stabilise from ε = 1",
            "When ε ≥ 1, the slopes stabilise",
            _stable,
            f"slopes at ε > 1 are within {SLOPE_MARGIN} of that at ε = 1",
        ),
        Claim(
            "rate of the theorem",
            "The findings verify the rate of the theorem, 2ε/(1+ε) with ε at most 1",
            _rate,
            f"each slope is within {SLOPE_MARGIN} of 2ε/(1+ε) log 2",
        ),
    )


def _needs_samples(sample: Sample) -> Iterator[Quantity]:
    for panel in sample.panels:
        below = [s for s in sample.series(panel) if float(s) <= 1]
        xs = sample.xs(panel)
        shares = np.array(
            [[smoothed(sample.settled[panel, s, x, METHOD]) for x in xs] for s in below]
        )
        means, variances = shares[..., 0].mean(axis=1), shares[..., 1].sum(axis=1) / len(xs) ** 2
        line = line_through([float(s) for s in below], means, variances)
        label = f"{panel}: share converged, per unit of λ"
        yield Quantity(label, line.slope, line.stderr, low=0.0, df=line.df)


def _similar(sample: Sample) -> Iterator[Quantity]:
    for panel in sample.panels:
        first, *others = [s for s in sample.series(panel) if float(s) >= 1]
        for x in sample.xs(panel):
            base = sample.settled[panel, first, x, METHOD]
            for other in others:
                label = f"{panel}, m = {x}: share at λ = {other} less that at {first}"
                theirs = sample.settled[panel, other, x, METHOD]
                yield share(label, theirs, base, low=-SHARE_MARGIN, high=SHARE_MARGIN)


def convergence() -> tuple[Claim, ...]:
    """Experiments 1 and 5: who converges, by the tail of the covariates."""
    return (
        Claim(
            "heavy covariates need more samples",
            "The smaller value of λ leads to a greater sample size requirement for convergence",
            _needs_samples,
            "for λ ≤ 1, the share of converged runs, over all n, grows with λ",
        ),
        Claim(
            "alike from λ = 1",
            "For λ ≥ 1, the convergence patterns across different m are similar",
            _similar,
            f"shares at λ > 1 are within {SHARE_MARGIN} of that at λ = 1, for every m",
        ),
    )


def _grows(sample: Sample) -> Iterator[Quantity]:
    for panel in sample.panels:
        angles, xs = sample.series(panel), sample.xs(panel)
        logs = {s: _averaged([sample.log_error(panel, s, x, METHOD) for x in xs]) for s in angles}
        for small, large in itertools.pairwise(angles):
            line = fit_line([0, 1], [logs[small], logs[large]])
            label = f"{panel}: log error at θ₀ = {large} less that at {small}"
            yield Quantity(label, line.slope, line.stderr, low=0.0, df=line.df)


def _averaged(logs: list[np.ndarray]) -> np.ndarray:
    """Means over cells, of replications that all have: a run that was stopped left some short."""
    least = min(map(len, logs))
    return np.mean([log[:least] for log in logs], axis=0)


def local_moments() -> tuple[Claim, ...]:
    """Experiments 3, 6 and 9: the error by the direction of most variance."""
    return (
        Claim(
            "error grows with θ₀",
            "As θ₀ increases, the local moments increase, and the average errors increase",
            _grows,
            "the log error, averaged over n, is larger at each θ₀ than at the one before it",
        ),
    )


def _paired(sample: Sample, case: str, panel: str, one: str, two: str, **region: float) -> Quantity:
    logs = [sample.log_error(panel, "", case, method) for method in (one, two)]
    return mean(f"{panel}, {case}: log {one} / {two}", logs[0] - logs[1], **region)


def _rivals(sample: Sample, but: str) -> list[str]:
    methods = dict.fromkeys(key[3] for key in sample.errors)
    return [m for m in methods if m not in {but, "auto"}]


def comparison(light: str) -> tuple[Claim, ...]:
    """Experiments 4, 7 and 10: the methods beside each other; `light` is the case without tails."""

    def alike(sample: Sample) -> Iterator[Quantity]:
        for panel in sample.panels:
            for rival in _rivals(sample, METHOD):
                yield _paired(sample, light, panel, rival, METHOD, low=-ALIKE, high=ALIKE)

    def deteriorates(sample: Sample) -> Iterator[Quantity]:
        for panel in sample.panels:
            for case in (c for c in sample.xs(panel) if c != light):
                for rival in _rivals(sample, "VGD"):
                    yield _paired(sample, case, panel, "VGD", rival, low=MUCH_LARGER)

    def smallest(sample: Sample) -> Iterator[Quantity]:
        for panel in sample.panels:
            for case in sample.xs(panel):
                for rival in _rivals(sample, METHOD):
                    yield _paired(sample, case, panel, METHOD, rival, high=SMALLEST)

    def ours(sample: Sample) -> Iterator[Quantity]:
        for panel in sample.panels:
            for case in sample.xs(panel):
                for rival in _rivals(sample, "auto"):
                    yield _paired(sample, case, panel, "auto", rival, high=ALIKE)

    return (
        Claim(
            "alike under light tails",
            "When the tails are light, the performances of the methods are nearly identical",
            alike,
            "paired squared errors differ by less than 10%",
        ),
        Claim(
            "VGD deteriorates",
            "In heavy-tailed cases VGD deteriorates, with errors much larger than the others'",
            deteriorates,
            "paired, VGD's squared error is more than twice that of each other method",
        ),
        Claim(
            "RGD is smallest",
            "The RGD method consistently yields the smallest estimation errors",
            smallest,
            "paired, no method has a squared error smaller than RGD's by more than 5%",
        ),
        Claim(
            "ours is no worse",
            "(not the paper's) The default of this library is no worse than any of them",
            ours,
            "paired, its squared error is at most 10% above that of every method, in every case",
        ),
    )
