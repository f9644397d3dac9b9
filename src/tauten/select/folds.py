"""Folds, and what a fit of the others says of the samples in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import clone

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

Error = Callable[[Loss, np.ndarray], float]


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
    """Robust prediction errors (folds, candidates) of robust gradients, tightest first."""
    trials = [replace(problem, robust=robust).calibrate(theta) for robust in candidates]
    return held_out(trials, theta, solver, rng=rng, report=report)


def held_out(
    trials: Sequence[Problem],
    theta: Tucker,
    solver: Solver,
    *,
    rng: np.random.Generator,
    report: Count = ignore,
    error: Error = prediction_error,
) -> np.ndarray:
    """Prediction errors (folds, trials) of problems on the same samples, most held back first.

    The folds go through the trials in order, each fit starting where the last one ended, and
    through the data together: a step of all of them is one pass. Most steps have no matrix of their
    own: see :attr:`Progress.thrifty`.
    """
    solver = clone(solver).set_params(
        tol=max(solver.tol, ROUGH), n_iter=min(solver.n_iter, FOLD_STEPS)
    )
    parts, tests = zip(*folds(trials[0], rng), strict=True)
    points: Sequence[Tucker] = [theta] * len(parts)
    fits: Sequence[Problem] = parts
    progress = [Progress(thrifty=True) for _ in parts]
    fitted, ends = [], []
    for done, trial in enumerate(trials):
        report(done, len(trials))
        fits = [trial.on_samples_of(fit) for fit in fits]
        gentler = trial.ridge == trials[done - 1].ridge  # with another ridge, matrices are others
        progress = [p.gentler() if gentler else Progress(thrifty=True) for p in progress]
        points = [r.theta for r in run_together(solver, fits, points, None, progress)]
        fitted += fits
        ends += points
    report(len(trials), len(trials))
    errors = validate(fitted, ends, tests * len(trials), error)
    return np.reshape(errors, (len(trials), len(parts))).T


def standard_error(errors: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the folds, axis 0."""
    return np.asarray(errors.std(axis=0, ddof=1) / math.sqrt(len(errors)))
