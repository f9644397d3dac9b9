"""Thresholds by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._progress import Count, ignore
from ..problem import Problem
from ..solver import Solver
from ..tucker import Tucker
from .folds import cross_validate, standard_error

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
    mean = errors.mean(axis=0)
    return ThresholdPath(float(taus[np.argmin(mean)]), taus, mean, standard_error(errors))
