"""Claims as code: what the paper says in prose, as statistical statements with a verdict.

Every claim comes down to quantities with a standard error, and a region in which the claim puts
each of them. A quantity whose confidence interval lies inside its region agrees, one whose interval
lies outside contradicts, any other says nothing. A claim **holds** if all agree, **fails** if one
contradicts (at a level corrected for their number), and is **undecided** otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

LEVEL = 0.95
TINY = 1e-12  # below this a square is rounding: two points have no bend


@dataclass(frozen=True)
class Quantity:
    """An estimate, and the region where the claim puts it.

    Parameters
    ----------
    label : str
    estimate, stderr : float
    low, high : float
        The region.
    df : float
        Degrees of freedom of the standard error.

    Examples
    --------
    >>> slope = Quantity("slope", 0.7, 0.05, low=0.6)
    >>> round(slope.room, 2), [round(end, 2) for end in slope.interval(0.95)]
    (2.0, [0.6, 0.8])
    """

    label: str
    estimate: float
    stderr: float
    low: float = -math.inf
    high: float = math.inf
    df: float = math.inf

    @property
    def room(self) -> float:
        """How far inside its region it is, in standard errors: negative outside."""
        room = min(self.estimate - self.low, self.high - self.estimate)
        return room / max(self.stderr, TINY) if math.isfinite(room) else math.inf

    def interval(self, level: float) -> tuple[float, float]:
        """Two-sided confidence interval."""
        half = float(stats.t.ppf((1 + level) / 2, self.df)) * self.stderr
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True)
class Verdict:
    """What the results say about a claim: holds, fails or undecided, and the numbers.

    Examples
    --------
    >>> Verdict("holds", (Quantity("slope", 0.7, 0.01, low=0.6, high=0.8),)).numbers
    ['slope: 0.7 ± 0.01']
    """

    verdict: str
    quantities: tuple[Quantity, ...]

    @property
    def numbers(self) -> list[str]:
        """The quantities in words, those that speak most against the claim first."""
        order = sorted(self.quantities, key=lambda q: q.room)
        return [f"{q.label}: {q.estimate:.3g} ± {q.stderr:.2g}" for q in order] or ["no results"]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Parameters
    ----------
    name : str
    statement : str
        In the paper's words or nearly so.
    test : callable
        Turns results (a :class:`Sample`, or what the CT study found) into quantities.
    means : str
        What exactly is tested.

    Examples
    --------
    >>> def slope(results):
    ...     return [Quantity("slope", results, 0.01, low=0.6, high=0.8)]
    >>> Claim("rate", "the error falls with n", slope, "a slope of 0.7").judge(0.7).verdict
    'holds'
    """

    name: str
    statement: str
    test: Callable[[Any], Iterable[Quantity]]
    means: str

    def judge(self, results: Any) -> Verdict:
        """Return the verdict on results."""
        return decide(self.test(results))


def decide(quantities: Iterable[Quantity]) -> Verdict:
    """Join the quantities of a claim into a verdict.

    Examples
    --------
    >>> decide([Quantity("slope", 0.7, 0.01, low=0.6, high=0.8)]).verdict
    'holds'
    >>> decide([Quantity("slope", 0.7, 0.01, low=0.0, high=0.5)]).verdict
    'fails'
    >>> decide([Quantity("slope", 0.7, 0.10, low=0.6, high=0.8)]).verdict
    'undecided'
    """
    known = tuple(quantities)
    standings = [_standing(q, len(known)) for q in known]
    if "fails" in standings:
        return Verdict("fails", known)
    holds = bool(standings) and all(standing == "holds" for standing in standings)
    return Verdict("holds" if holds else "undecided", known)


def _standing(quantity: Quantity, many: int) -> str:
    """What one quantity says.

    For a claim to hold all must agree, which needs no correction; for it to fail, one is enough.
    """
    if not math.isfinite(quantity.estimate) or not math.isfinite(quantity.stderr):
        return "undecided"
    low, high = quantity.interval(1 - (1 - LEVEL) / many)
    if low > quantity.high or high < quantity.low:
        return "fails"
    low, high = quantity.interval(LEVEL)
    # An infinite bound is no bound: the interval of a finite quantity is inside it.
    return "holds" if quantity.low < low and high < quantity.high else "undecided"


class Sample:
    """Results of an experiment, as claims ask for them.

    Parameters
    ----------
    errors, settled : dict
        ``(panel, series, x, method)`` to an array of ``‖Â - A*‖²``, or of whether runs settled,
        over the replications, in their order.

    Examples
    --------
    >>> sample = Sample({("Model I", "t:1.5", 500, "RGD"): np.array([0.1, 0.2])})
    >>> sample.panels, sample.series("Model I"), sample.xs("Model I")
    (['Model I'], ['t:1.5'], [500])
    """

    def __init__(
        self,
        errors: dict[tuple[str, str, Any, str], np.ndarray],
        settled: dict[tuple[str, str, Any, str], np.ndarray] | None = None,
    ) -> None:
        self.errors = errors
        self.settled = settled or {}

    @property
    def panels(self) -> list[str]:
        """Panels, in order."""
        return list(dict.fromkeys(key[0] for key in self.errors))

    def series(self, panel: str) -> list[str]:
        """Series of a panel, in order."""
        return list(dict.fromkeys(key[1] for key in self.errors if key[0] == panel))

    def xs(self, panel: str) -> list[Any]:
        """Abscissae of a panel, in order."""
        return list(dict.fromkeys(key[2] for key in self.errors if key[0] == panel))

    def log_error(self, panel: str, series: str, x: Any, method: str) -> np.ndarray:
        """``log ‖Â - A*‖²`` of the replications."""
        return np.log(np.maximum(self.errors[panel, series, x, method], np.finfo(float).tiny))


def mean(label: str, values: np.ndarray, **region: float) -> Quantity:
    """The mean of independent values."""
    n = len(values)
    stderr = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Quantity(label, float(np.mean(values)), stderr, df=max(n - 1, 1), **region)


@dataclass(frozen=True)
class Line:
    """Slope, and curvature as a share of the rise, of means against x; with standard errors."""

    slope: float
    stderr: float
    bend: float
    bend_stderr: float
    df: float


def fit_line(x: Sequence[float], groups: Sequence[np.ndarray]) -> Line:
    """Fit the mean of each group against x, with each group's own variance."""
    means = np.array([g.mean() for g in groups])
    variances = np.array([g.var(ddof=1) / len(g) if len(g) > 1 else math.inf for g in groups])
    return line_through(x, means, variances, df=max(sum(len(g) - 1 for g in groups), 1))


def line_through(
    x: Sequence[float], means: np.ndarray, variances: np.ndarray, df: float = math.inf
) -> Line:
    """Least squares through means of known variances.

    The bend is the quadratic term, orthogonal to the line, times its range over x, relative to the
    rise of the line.
    """
    points = np.asarray(x, dtype=float)
    centred = points - points.mean()
    slope_of = centred / np.sum(centred**2)
    square = centred**2 - np.mean(centred**2) - centred * np.sum(centred**3) / np.sum(centred**2)
    size = float(np.sum(square**2))
    bend_of = square / size * np.ptp(square) if size > TINY else np.zeros_like(points)
    slope, bend = float(slope_of @ means), float(bend_of @ means)
    rise = abs(slope) * float(np.ptp(points)) or math.nan  # of a flat line there is no share
    stderr, bend_stderr = (math.sqrt(float(w**2 @ variances)) for w in (slope_of, bend_of))
    return Line(slope, stderr, bend / rise, bend_stderr / rise, df)


def lines(sample: Sample, method: str) -> dict[tuple[str, str], Line]:
    """The line of ``-log ‖Â - A*‖²`` against x, for every panel and series."""
    found = {}
    for panel in sample.panels:
        xs = sample.xs(panel)
        for series in sample.series(panel):
            groups = [-sample.log_error(panel, series, x, method) for x in xs]
            found[panel, series] = fit_line(xs, groups)
    return found


def smoothed(successes: np.ndarray) -> tuple[float, float]:
    """A share, and its variance after Agresti and Coull: never zero, even if all agree."""
    n = len(successes)
    p = (float(np.sum(successes)) + 1) / (n + 2)
    return float(np.mean(successes)), p * (1 - p) / (n + 2)


def share(label: str, ups: np.ndarray, downs: np.ndarray, **region: float) -> Quantity:
    """Difference of two independent shares."""
    (p, p_variance), (q, q_variance) = smoothed(ups), smoothed(downs)
    return Quantity(label, p - q, math.sqrt(p_variance + q_variance), **region)
