"""Folds, and what a fit of the others says of the samples in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from .._array import to_numpy
from .._progress import Count, ignore
from ..losses import Loss
from ..problem import Problem, scores, values
from ..robust import Robustifier
from ..solver import Solver
from ..solver.loop import run_together
from ..solver.result import Progress
from ..tucker import Tucker

ROUGH, FOLD_STEPS = 1e-2, 8  # a prediction error needs no better fit
FIRST_STEPS = 12  # of the first one: what the start knows of samples left out should be forgotten
NEAR, NEAR_STEPS = 3e-2, 4  # of Newton's steps from the fit with a threshold next to one's own

Error = Callable[[Loss, np.ndarray], float]


class Fold(NamedTuple):
    """A fit of all samples but one fold's: its problem, where it is, and what its steps know."""

    problem: Problem
    theta: Tucker
    progress: Progress


def folds(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[Problem, np.ndarray]]:
    """Yield the problem with the samples of one fold weighted zero, and their indices."""
    from sklearn.model_selection import KFold  # here: it takes half a second to import

    n, rows = problem.data.n, problem.data.counted
    base = np.ones(n) if problem.data.weight is None else to_numpy(problem.data.weight)
    if len(rows) < 2:
        raise ValueError(f"cross-validation ('cv') needs two samples or more; got {len(rows)}")
    splits = KFold(min(5, len(rows)), shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in splits.split(rows):
        weight = np.zeros(n)
        weight[rows[train]] = base[rows[train]]
        yield replace(problem, data=problem.data.reweight(problem.data.like(weight))), rows[test]


def can_fold(problem: Problem) -> bool:
    """Whether there are samples to leave out."""
    return len(problem.data.counted) > 1  # the others have no say in their own fold either


def prediction_error(loss: Loss, entries: np.ndarray) -> float:
    """Mean absolute residual, or deviance without its largest tenth.

    The mean square and the plain deviance pick no robustness at all exactly where it is needed.

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


def validate(
    problems: Sequence[Problem],
    points: Sequence[Tucker],
    tests: Sequence[np.ndarray],
    error: Error = prediction_error,
) -> list[float]:
    """Prediction errors of the samples left out of each problem, in one pass."""
    loss = problems[0].loss
    entries = (scores if loss.residual else values)(problems, points)
    return [error(loss, e[rows]) for e, rows in zip(entries, tests, strict=True)]


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

    Folds begin with one of the tighter candidates, which cut outliers, but not with the tightest:
    there steps creep, and fits keep what their start knows of the samples left out.
    """
    trials = [replace(problem, robust=robust).calibrate(theta) for robust in candidates]
    tol, n_iter = (NEAR, NEAR_STEPS) if solver.curvature else (ROUGH, FOLD_STEPS)
    first = (len(trials) - 1) // 3
    return held_out(
        trials, theta, solver, first=first, tol=tol, n_iter=n_iter, rng=rng, report=report
    )


def held_out(
    trials: Sequence[Problem],
    theta: Tucker,
    solver: Solver,
    *,
    first: int = 0,
    tol: float = ROUGH,
    n_iter: int = FOLD_STEPS,
    rng: np.random.Generator,
    report: Count = ignore,
    error: Error = prediction_error,
) -> np.ndarray:
    """Prediction errors (folds, trials) of problems on the same samples, most held back first.

    The folds begin at `theta` with the trial numbered `first`, and go both ways from there, each
    fit starting where that of the trial before ended, to `tol` in `n_iter` steps at most; the
    first takes more, if need be. They go through the data together: a step of all of them is one
    pass. Most steps have no matrix of their own: see :attr:`Progress.thrifty`.
    """
    parts, tests = zip(*folds(trials[0], rng), strict=True)
    last = {first: [Fold(part, theta, Progress(thrifty=True)) for part in parts]}
    rough, near = solver.rougher(ROUGH, FIRST_STEPS), solver.rougher(tol, n_iter)
    ends: dict[int, list[tuple[Problem, Tucker]]] = {}
    for wave in _waves(len(trials), first):
        report(len(ends), len(trials))
        begun = {i: _begun(trials, i, first, last) for i in wave}
        last = _ended(near if ends else rough, begun)
        ends |= {i: [(fit.problem, fit.theta) for fit in fits] for i, fits in last.items()}
    report(len(trials), len(trials))
    problems, points = zip(*(end for i in range(len(trials)) for end in ends[i]), strict=True)
    errors = validate(problems, points, tests * len(trials), error)
    return np.reshape(errors, (len(trials), len(parts))).T


def _waves(count: int, first: int) -> Iterator[list[int]]:
    """The first of some numbers, then its neighbours, and so on to both ends."""
    for away in range(max(first, count - 1 - first) + 1):
        both = dict.fromkeys((first - away, first + away))
        yield [i for i in both if 0 <= i < count]


def _begun(
    trials: Sequence[Problem], i: int, first: int, last: Mapping[int, Sequence[Fold]]
) -> list[Fold]:
    """Fits of a trial that begin where those of its neighbour ended."""
    before = i - 1 if i > first else min(i + 1, first)
    gentler = i > first and trials[i].ridge == trials[before].ridge  # else matrices are others
    return [
        Fold(
            trials[i].on_samples_of(fit.problem),
            fit.theta,
            fit.progress.gentler() if gentler else Progress(thrifty=True),
        )
        for fit in last[before]
    ]


def _ended(solver: Solver, begun: Mapping[int, Sequence[Fold]]) -> dict[int, list[Fold]]:
    """Fits of some trials run to their ends, side by side."""
    problems, thetas, progress = zip(*chain.from_iterable(begun.values()), strict=True)
    runs = iter(run_together(solver, problems, thetas, None, progress))
    return {i: [fit._replace(theta=next(runs).theta) for fit in fits] for i, fits in begun.items()}


def standard_error(errors: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the folds, axis 0."""
    return np.asarray(errors.std(axis=0, ddof=1) / math.sqrt(len(errors)))
