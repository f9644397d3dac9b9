"""The paper's methods at convergence, by the library's own solvers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..init import start
from ..metrics import frobenius_error
from ..problem import Problem
from ..robust import Huber, Robustifier, Truncate
from ..select import cross_validate
from ..solver import Solver
from ..solver.choice import choose
from ..tucker import Tucker
from .descents import GRID
from .outcomes import Outcome, Outcomes, Trial

# The starts of the paper, on the most square matricisation: where they end does not depend on it.
STARTS = {"I": "nuclear", "II": "nuclear", "III": "nuclear", "IV": "pseudo-huber"}


def converge(trial: Trial) -> Outcomes:
    """VGD, RGD and HUB at their fixed points."""
    problem, truth = trial.problem(), trial.data.truth
    theta = truth
    if not trial.from_truth:
        theta = start(STARTS[trial.cell.model], problem, truth.rank, trial.rng)
    solver = choose(problem, theta).set_params(n_iter=100, tol=1e-6)
    outcomes = {}
    for method in trial.methods:
        robust = _robust(trial, method, problem, theta, solver=solver)
        result = solver.run(replace(problem, robust=robust).calibrate(theta), theta)
        error = frobenius_error(result.theta, truth, squared=True)
        diverged = result.reason.startswith("diverged")
        outcomes[method] = Outcome(error, result.converged, diverged)
    return outcomes


def _robust(
    trial: Trial, method: str, problem: Problem, theta: Tucker, *, solver: Solver
) -> Robustifier:
    """The method's robust gradient, its threshold given or by cross-validation."""
    if method == "VGD":
        return Robustifier()
    if trial.cell.tau is not None:
        return _truncate(trial.cell.tau, theta.order, trial.b)
    if method == "HUB":
        scores = problem.pilot(theta).scores()
        candidates: list[Robustifier] = [Huber(nu) for nu in _candidates(scores)]
    else:
        pilot = problem.pilot(theta.balance(trial.b))
        entries = np.concatenate([g.ravel() for g in pilot.gradients()])
        candidates = [_truncate(tau, theta.order, trial.b) for tau in _candidates(entries)]
    errors = cross_validate(problem, theta, solver, candidates, rng=trial.rng)
    return candidates[int(np.argmin(errors.mean(axis=0)))]


def _candidates(entries: np.ndarray) -> list[float]:
    """Quantiles of the sizes and infinity: tightest first, as cross-validation wants them."""
    return [*(float(q) for q in np.quantile(np.abs(entries), GRID)), math.inf]


def _truncate(tau: float, order: int, b: float) -> Truncate:
    """One τ for all blocks where factors have norm b, said for the solvers' orthonormal factors.

    A factor b times as long has a gradient as many times smaller, and the core the other way.
    """
    return Truncate([tau / b**order, *([tau * b] * order)])
