"""Ridges by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._progress import Count, ignore
from ..init.penalised import smoothness, whole
from ..losses import Loss
from ..problem import Problem
from ..solver.choice import choose
from ..tucker import Tucker
from .folds import held_out, standard_error

# Ridges to try, in units of the largest curvature of the mean loss: the first leaves next to
# nothing of A.
LEVELS = np.append(np.geomspace(1.0, 1e-4, 9), 0.0)


@dataclass(frozen=True)
class RidgePath:
    """Cross-validation of a ridge: the candidates, their mean error and its standard error."""

    ridge: float
    ridges: np.ndarray
    error: np.ndarray
    stderr: np.ndarray


def select_ridge(
    problem: Problem, theta: Tucker, *, rng: np.random.Generator, report: Count = ignore
) -> RidgePath:
    """Choose a ridge by five-fold cross-validation, or none.

    The error is the mean loss of samples left out, shrunk as in the fit but not trimmed: a ridge
    is for what a model is unsure of, and trimming leaves out just that. None is preferred unless
    the best ridge beats it by more than one standard error of the difference.

    Parameters
    ----------
    problem : Problem
    theta : Tucker
        Start of every fold, and where thresholds are chosen.
    rng : Generator
        Draws the folds.
    report : callable
        Told how many candidates are done, and of how many.
    """
    problem = problem.calibrate(theta)
    ridges = smoothness(problem, whole(problem)) * LEVELS
    trials = [replace(problem, ridge=float(ridge)) for ridge in ridges]
    solver = choose(problem, theta)
    errors = held_out(trials, theta, solver, rng=rng, report=report, error=_mean_loss)
    mean = errors.mean(axis=0)
    best, none = int(np.argmin(mean)), len(ridges) - 1
    gain = errors[:, none] - errors[:, best]
    chosen = best if np.mean(gain) > standard_error(gain) else none
    return RidgePath(float(ridges[chosen]), ridges, mean, standard_error(errors))


def _mean_loss(loss: Loss, entries: np.ndarray) -> float:
    return float(np.sum(entries) / len(entries))
