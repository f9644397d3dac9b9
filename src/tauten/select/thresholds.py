"""Thresholds by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._progress import Count, ignore
from ..init.base import responses_per_parameter, tame
from ..problem import Problem
from ..problem.nearby import linear
from ..solver import Solver
from ..tucker import Tucker
from .folds import cross_validate, standard_error
from .nearby import ENOUGH, errors_near, fit_near
from .rough import descend

QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)


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
    :func:`cross_validate`, and for responses that are numbers :func:`errors_near`.

    Parameters
    ----------
    problem : Problem
        Its robustifier has a parameter `tau`.
    theta : Tucker
        Start of every fold, or of the fit that they are near.
    solver : Solver
        Of the folds; near one fit it says only whether its steps have a matrix.
    rng : Generator
        Draws the folds.
    report : callable
        Told how many candidates are done, and of how many.
    """
    return _chosen(problem, theta, solver, rng=rng, report=report)[0]


def threshold_and_start(
    problem: Problem, theta: Tucker, solver: Solver, **options: Any
) -> tuple[ThresholdPath, Tucker]:
    """:func:`select_threshold`, and a point that a fit with its threshold may begin at."""
    path, trial, point = _chosen(problem, theta, solver, **options)
    return path, theta if trial is None else fit_near(trial, point)


def _chosen(
    problem: Problem,
    theta: Tucker,
    solver: Solver,
    *,
    rng: np.random.Generator,
    report: Count = ignore,
) -> tuple[ThresholdPath, Problem | None, Tucker]:
    """The choice; where it was made near a fit, the problem with that threshold; and the fit."""
    sizes = np.abs(np.concatenate([g.ravel() for g in problem.pilot(theta).gradients()]))
    taus = np.unique(np.quantile(sizes, QUANTILES))
    taus = np.concatenate([taus[taus > 0], [np.inf]])
    candidates = [clone(problem.robust).set_params(tau=float(tau)) for tau in taus]
    near = _at_hand(problem, theta, solver)
    if near:
        trials = [replace(problem, robust=robust).calibrate(theta) for robust in candidates]
        # Near a fit that outliers do not move, whatever the candidates are.
        ((_, theta),) = descend([(tame(problem, problem.pilot(theta)), theta)])
        theta = theta.canonical()
        errors = errors_near(trials, theta, rng=rng, report=report)
    else:
        errors = cross_validate(problem, theta, solver, candidates, rng=rng, report=report)
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    path = ThresholdPath(float(taus[best]), taus, mean, standard_error(errors))
    return path, trials[best] if near else None, theta


def _at_hand(problem: Problem, theta: Tucker, solver: Solver) -> bool:
    """Whether fits near one are as good: of residuals, by matrices, of samples enough."""
    enough = responses_per_parameter(problem, theta.rank) >= ENOUGH
    return enough and solver.curvature and problem.loss.residual and linear(problem)
