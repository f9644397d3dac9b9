"""Choices that need fits: ranks (robust BIC, cross-validation) and thresholds by cross-validation.

Folds and candidates are weights of zero and one on the same data: X is never copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from sklearn.base import clone

from ._array import column, namespace, to_numpy
from ._checks import feasible_rank
from ._progress import Count, ignore
from .init import start
from .init.base import tame, tensor_shape
from .losses import Loss
from .problem import Problem, scores, values
from .robust import Robustifier
from .robust.thresholds import robust_scale
from .solver import Solver
from .solver.choice import choose
from .solver.loop import run_together
from .tucker import Tucker, degrees_of_freedom

HUBER = 1.345
LARGEST_RANK = 5
ROUGH, FOLD_STEPS = 1e-2, 8  # a prediction error needs no better fit
QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

Rank = tuple[int, ...]


@dataclass(frozen=True)
class RankPath:
    """The rank chosen, and those tried, in order, with their criterion as the last move saw it."""

    rank: Rank
    ranks: list[Rank]
    criterion: list[float]


def select_rank(
    problem: Problem,
    *,
    criterion: str = "bic",
    rng: np.random.Generator,
    largest: int = LARGEST_RANK,
    report: Count = ignore,
) -> RankPath:
    """Choose Tucker ranks: the best equal ranks, then moves of one or two modes by one.

    Parameters
    ----------
    problem : Problem
    criterion : {"bic", "cv"}
        ``"bic"``: twice Huber's loss of the standardised residuals (or the deviance) plus
        ``df log N``: equal ranks at the scale of the largest fit, moves at that of the best fit so
        far. ``"cv"``: five-fold robust prediction error.
    rng : Generator
        For the folds, and for starts that draw.
    largest : int
        Largest rank of a mode.
    report : callable
        Told how many ranks were tried; of how many, nobody knows.
    """
    shape = tensor_shape(problem)
    largest = largest if len(shape) > 1 else 1  # a vector has rank one
    equal = [feasible_rank([min(r, p) for p in shape]) for r in range(1, largest + 1)]
    room = np.count_nonzero(_seen(problem)) / 2  # more free parameters than that tell nothing
    equal = [r for r in equal if degrees_of_freedom(shape, r) <= room] or equal[:1]
    cost: _Bic | _CrossValidated = (_Bic if criterion == "bic" else _CrossValidated)(
        problem, equal[-1], rng
    )
    tried: list[Rank] = []

    def price(rank: Rank) -> float:
        found = cost.of(rank)
        if rank not in tried:
            tried.append(rank)
            report(len(tried), None)
        return found

    def best(candidates: Iterable[Rank]) -> Rank:
        fits = [rank for rank in candidates if degrees_of_freedom(shape, rank) <= room]
        return min(fits, key=price, default=equal[0])

    current, seen = best(equal), set()
    while current not in seen:  # at the scale of another fit an earlier one may be the best again
        seen.add(current)
        cost.rescale(current)
        current = best([current, *_neighbours(current, shape, largest)])
    return RankPath(current, tried, [cost.of(rank) for rank in tried])


def _neighbours(rank: Rank, shape: Sequence[int], largest: int) -> Iterator[Rank]:
    """Ranks one up or down in one mode, or in two together, that some tensor has."""
    modes = range(len(rank))
    for chosen, sign in product([*combinations(modes, 1), *combinations(modes, 2)], (-1, 1)):
        new = tuple(r + sign * (k in chosen) for k, r in enumerate(rank))
        inside = all(1 <= r <= min(p, largest) for r, p in zip(new, shape, strict=True))
        if inside and feasible_rank(new) == new:
            yield new


def _pilot_fit(problem: Problem, rank: Rank, rng: np.random.Generator) -> tuple[Problem, Tucker]:
    """A cheap robust fit: shrunk covariates and Huber's scores, a few steps."""
    theta = start(problem.design.init, problem, rank, rng)
    problem = tame(problem, theta, shrink=problem.data.X is not None)
    solver = choose(problem, theta).set_params(n_iter=15, tol=1e-3)
    return problem, solver.run(problem, theta).theta


class _Bic:
    """Robust BIC, with the scale and efficiency of one fit for every rank.

    At first those of the largest: a scale that holds signal would hide it. But low-rank fits follow
    noise more than their degrees of freedom tell, so that its residuals are too small by far; from
    there on the scale is that of the best fit so far.
    """

    def __init__(self, problem: Problem, largest: Rank, rng: np.random.Generator) -> None:
        self._problem, self._rng = problem, rng
        self._shape, self._seen = tensor_shape(problem), _seen(problem)
        self._n = int(np.count_nonzero(self._seen))
        self._entries: dict[Rank, np.ndarray] = {}
        self.rescale(largest)

    def rescale(self, rank: Rank) -> None:
        """Take scale and efficiency from the fit of a rank."""
        if not self._problem.loss.residual:
            return
        residuals = self._fitted(rank)
        # What the fit has taken out of the residuals is given back to their scale.
        left = max(self._n - degrees_of_freedom(self._shape, rank), 1)
        self._scale = (robust_scale(residuals) or 1.0) * math.sqrt(self._n / left)
        bent = np.clip(residuals / self._scale, -HUBER, HUBER)
        inside = np.mean(np.abs(residuals) <= HUBER * self._scale)
        # None where nothing is left to explain.
        self._efficiency = float(np.mean(bent**2) / max(inside, 1e-3)) or 1.0

    def of(self, rank: Rank) -> float:
        """Twice Huber's loss, or the deviance, and the penalty."""
        penalty = degrees_of_freedom(self._shape, rank) * math.log(self._n)
        entries = self._fitted(rank)
        if self._problem.loss.residual:
            entries = huber_loss(entries / self._scale) / self._efficiency
        return 2 * float(np.sum(entries)) + penalty

    def _fitted(self, rank: Rank) -> np.ndarray:
        """Residuals of the fit of a rank, or for losses of no residual its losses."""
        if rank not in self._entries:
            fitted, theta = _pilot_fit(self._problem, rank, self._rng)
            entries = fitted.scores if fitted.loss.residual else fitted.values
            self._entries[rank] = entries(theta)[self._seen]
        return self._entries[rank]


def _seen(problem: Problem) -> np.ndarray:
    """Which response entries count: observed, in samples of positive weight."""
    data = problem.data
    if problem.missing:
        seen = to_numpy(data.map_rows(lambda chunk: namespace(chunk.y).isfinite(chunk.y)))
    else:
        seen = np.ones(data.y.shape, bool)
    if data.weight is None:
        return seen
    return seen & column(to_numpy(data.weight) > 0, seen.ndim)


class _CrossValidated:
    """Five-fold robust prediction error; the folds are drawn once, for every rank."""

    def __init__(self, problem: Problem, largest: Rank, rng: np.random.Generator) -> None:
        self._folds, self._rng = list(_folds(problem, rng)), rng
        self._errors: dict[Rank, float] = {}

    def rescale(self, rank: Rank) -> None:
        """Nothing: prediction errors need no scale."""

    def of(self, rank: Rank) -> float:
        """Mean error over the folds."""
        if rank not in self._errors:
            fits = [_pilot_fit(train, rank, self._rng) for train, _ in self._folds]
            problems, points = zip(*fits, strict=True)
            errors = _validate(problems, points, [test for _, test in self._folds])
            self._errors[rank] = float(np.mean(errors))
        return self._errors[rank]


def _folds(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[Problem, np.ndarray]]:
    """Yield the problem with the samples of one fold weighted zero, and their indices."""
    from sklearn.model_selection import KFold  # here: it takes half a second to import

    n = problem.data.n
    base = np.ones(n) if problem.data.weight is None else to_numpy(problem.data.weight)
    rows = np.flatnonzero(base)  # a sample without weight has no say in its own fold either
    if len(rows) < 2:
        raise ValueError(f"cross-validation ('cv') needs two samples or more; got {len(rows)}")
    splits = KFold(min(5, len(rows)), shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in splits.split(rows):
        weight = np.zeros(n)
        weight[rows[train]] = base[rows[train]]
        yield replace(problem, data=problem.data.reweight(problem.data.like(weight))), rows[test]


def _validate(
    problems: Sequence[Problem], points: Sequence[Tucker], tests: Sequence[np.ndarray]
) -> list[float]:
    """Robust prediction errors, in one pass: mean absolute residual, or trimmed deviance.

    The mean square and the plain deviance pick no robustness at all exactly where it is needed.
    """
    loss = problems[0].loss
    entries = (scores if loss.residual else values)(problems, points)
    return [prediction_error(loss, e[rows]) for e, rows in zip(entries, tests, strict=True)]


def prediction_error(loss: Loss, entries: np.ndarray) -> float:
    """Mean absolute residual, or deviance without its largest tenth.

    Parameters
    ----------
    loss : Loss
    entries : array (n, ...)
        Residuals of the held-out samples, or for losses of no residual their losses.
    """
    if loss.residual:
        return float(np.nanmean(np.abs(entries)))
    losses = np.sort(entries.reshape(len(entries), -1).sum(axis=1))
    return float(np.mean(losses[: math.ceil(0.9 * len(losses))]))


@dataclass(frozen=True)
class ThresholdPath:
    """Cross-validation of a threshold: the candidates, their mean error and its standard error."""

    tau: float
    taus: np.ndarray
    error: np.ndarray
    stderr: np.ndarray


def select_threshold(
    problem: Problem,
    theta: Tucker,
    solver: Solver,
    *,
    rng: np.random.Generator,
    report: Count = ignore,
) -> ThresholdPath:
    """Choose one threshold for all blocks by five-fold cross-validation.

    The candidates are quantiles of the pilot's gradient entries, and infinity: see
    :func:`cross_validate`.

    Parameters
    ----------
    problem : Problem
        Its robustifier has a parameter `tau`.
    theta : Tucker
        Start of every fold.
    solver : Solver
    rng : Generator
        Draws the folds.
    report : callable
        Told how many candidates are done, and of how many.
    """
    sizes = np.abs(np.concatenate([g.ravel() for g in problem.pilot(theta).gradients()]))
    taus = np.unique(np.quantile(sizes, QUANTILES))
    taus = np.concatenate([taus[taus > 0], [np.inf]])
    candidates = [clone(problem.robust).set_params(tau=float(tau)) for tau in taus]
    errors = cross_validate(problem, theta, solver, candidates, rng=rng, report=report)
    mean, stderr = errors.mean(axis=0), errors.std(axis=0, ddof=1) / math.sqrt(len(errors))
    return ThresholdPath(float(taus[np.argmin(mean)]), taus, mean, stderr)


def cross_validate(
    problem: Problem,
    theta: Tucker,
    solver: Solver,
    candidates: Sequence[Robustifier],
    *,
    rng: np.random.Generator,
    report: Count = ignore,
) -> np.ndarray:
    """Robust prediction errors (folds, candidates) of robust gradients, tightest first.

    The folds go through the candidates in order, each fit starting where the last one ended, and
    through the data together: a step of all of them is one pass.
    """
    solver = clone(solver).set_params(
        tol=max(solver.tol, ROUGH), n_iter=min(solver.n_iter, FOLD_STEPS)
    )
    folds, tests = zip(*_folds(problem, rng), strict=True)
    points: Sequence[Tucker] = [theta] * len(folds)
    fitted, ends = [], []
    for done, robust in enumerate(candidates):
        report(done, len(candidates))
        trial = replace(problem, robust=robust).calibrate(theta)
        trials = [replace(trial, data=fold.data) for fold in folds]
        points = [result.theta for result in run_together(solver, trials, points)]
        fitted += trials
        ends += points
    report(len(candidates), len(candidates))
    errors = _validate(fitted, ends, tests * len(candidates))
    return np.reshape(errors, (len(candidates), len(folds))).T


def huber_loss(x: np.ndarray) -> np.ndarray:
    """``½ ℓ_ν(x)`` at ν = 1.345."""
    bent = np.clip(x, -HUBER, HUBER)
    return bent * (x - bent / 2)
