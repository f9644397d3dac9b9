"""The methods compared: the paper's VGD, RGD and HUB as it tunes them or at convergence, and ours."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from ..data import Rows
from ..datasets import Simulated
from ..designs import Covariate, Direct
from ..estimators import TensorClassifier, TensorPCA, TensorRegressor
from ..init import start
from ..losses import Loss
from ..metrics import frobenius_error, has_converged
from ..problem import Problem
from ..robust import Huber, Robustifier, Truncate
from ..select import QUANTILES, cross_validate, prediction_error
from ..solver import Solver, choose
from ..tucker import Tucker
from .base import ITERATIONS, LARGEST, OURS, STEP, WINDOW, Cell, Experiment, Settings
from .lanes import Lanes, Stack, descend, gradients, lanes_at

LANE_BYTES = 2**22  # of the data sets that step together
# Thresholds that cross-validation tries: these quantiles of what is truncated, and infinity. The
# paper does not say which; finer grids cost time and change little.
GRID = QUANTILES[::2]
# At convergence, Experiments 1 and 5 still watch Algorithm 1's iterates: with the step of the proof
# of Theorem 1, η ∝ b^(-2d), small enough for t2.2 covariates, and time to arrive.
STABLE_STEP, MANY_ITERATIONS = 0.02, 3000
# The paper's data-driven starts (appendix E), and what it prints for scalar responses apart.
STARTS = {
    "paper": {
        "I": "nuclear-literal",
        "II": "nuclear-literal",
        "III": "nuclear",
        "IV": "pseudo-huber",
    },
    "converged": {"I": "nuclear", "II": "nuclear", "III": "nuclear", "IV": "pseudo-huber"},
}
FOLDS = 5


@dataclass(frozen=True)
class Outcome:
    """One fit: ``‖Â - A*‖²``, whether it settled, and whether it ran away before."""

    error: float
    settled: bool
    diverged: bool = False


Outcomes = dict[str, Outcome]  # by method


def fit_group(
    experiment: Experiment, cells: list[Cell], settings: Settings, replications: Sequence[int]
) -> dict[str, dict[int, Outcomes]]:
    """Fit every method to every data set of a group of cells: by cell, then by replication."""
    found: dict[str, dict[int, Outcomes]] = {cell.key: {} for cell in cells}
    size = LANE_BYTES // (8 * cells[0].n * math.prod((10,) * (2 if cells[0].model == "II" else 3)))
    for low in range(0, len(replications), max(1, size)):
        batch = replications[low : low + max(1, size)]
        data = [experiment.draw(cells, settings, r) for r in batch]
        for r, row, theirs in zip(batch, data, _paper(experiment, cells, data, settings, batch)):
            for cell, simulated, outcomes in zip(cells, row, theirs, strict=True):
                found[cell.key][r] = outcomes
                if experiment.fits_ours(settings, r):
                    rng = experiment.rng(settings, r, f"{cell.key}|{OURS}")
                    outcomes[OURS] = ours(cell.model, simulated, rng)
    return found


def _paper(
    experiment: Experiment,
    cells: list[Cell],
    data: list[list[Simulated]],
    settings: Settings,
    batch: Sequence[int],
) -> list[list[Outcomes]]:
    """The paper's methods on each data set (replication, cell)."""
    methods = tuple(m for m in experiment.chosen(settings) if m != OURS)
    if not methods:
        return [[{} for _ in cells] for _ in data]
    if settings.tuning == "paper" or experiment.measure == "settled":
        if experiment.start == "truth":
            return _descents(experiment, cells, data, settings)
        fits = descend_from_data
    else:
        fits = converge
    return [
        [
            fits(
                experiment,
                cell,
                simulated,
                settings,
                experiment.rng(settings, r, f"{cell.key}|fit"),
            )
            for cell, simulated in zip(cells, row, strict=True)
        ]
        for r, row in zip(batch, data, strict=True)
    ]


def _scale(truth: Tucker) -> float:
    """b, the norm of the factors of A* in its reading: 1, or √10."""
    return float(np.linalg.norm(truth.factors[0]))


def _descents(
    experiment: Experiment, cells: list[Cell], data: list[list[Simulated]], settings: Settings
) -> list[list[Outcomes]]:
    """RGD by Algorithm 1 from the truth, all data sets and cells of a group together."""
    first, cell = data[0][0], cells[0]
    b = _scale(first.truth)
    step, n_iter = STEP, ITERATIONS
    if settings.tuning == "converged":
        step, n_iter = STABLE_STEP * b ** (-2 * first.truth.order), MANY_ITERATIONS
    lanes = lanes_at([[d.truth for d in row] for row in data], [c.tau for c in cells])
    end = descend(
        _stack(cell.model, data),
        lanes,
        first.truth.full(),
        step=step,
        b=b,
        n_iter=n_iter,
        window=WINDOW,
    )
    return [
        [
            {"RGD": _outcome(end.errors[:, i, m], bool(end.diverged[i, m]), cell.n)}
            for m in range(len(cells))
        ]
        for i in range(len(data))
    ]


def _stack(model: str, data: list[list[Simulated]]) -> Stack:
    X = None if model == "IV" else np.stack([row[0].X for row in data])
    return Stack(X, np.stack([np.stack([d.y for d in row]) for row in data]), model == "III")


def _outcome(errors: np.ndarray, diverged: bool, n: int) -> Outcome:
    settled = not diverged and len(errors) == WINDOW
    settled = settled and has_converged(errors, n=n, p_max=LARGEST, window=WINDOW)
    return Outcome(float(errors[-1]), settled, diverged)


def descend_from_data(
    experiment: Experiment,
    cell: Cell,
    data: Simulated,
    settings: Settings,
    rng: np.random.Generator,
) -> Outcomes:
    """The paper's methods by Algorithm 1 from its data-driven start, thresholds by validation."""
    b = _scale(data.truth)
    name = STARTS["paper"][cell.model]
    theta = start(name, problem_of(cell.model, data), data.truth.rank, rng).balance(b)
    stack, outcomes = _stack(cell.model, [[data]]), {}
    for method in (m for m in experiment.chosen(settings) if m != OURS):
        tau = nu = math.inf
        if method != "VGD":
            grid = _grid(stack, lanes_at([[theta]], math.inf), method)
            best = grid[_best_lane(stack, theta, method, grid, data, b, rng)]
            tau, nu = (best, nu) if method == "RGD" else (tau, best)
        end = descend(
            stack,
            lanes_at([[theta]], tau, nu),
            data.truth.full(),
            step=STEP,
            b=b,
            n_iter=ITERATIONS,
            window=WINDOW,
        )
        outcomes[method] = _outcome(end.errors[:, 0, 0], bool(end.diverged[0, 0]), cell.n)
    return outcomes


def _grid(stack: Stack, lanes: Lanes, method: str) -> np.ndarray:
    """Thresholds to try: of gradient entries for RGD, of residuals for HUB."""
    if method == "RGD":
        parts = [p.ravel() for _, blocks in gradients(stack, lanes) for p in blocks]
        sizes = np.abs(np.concatenate(parts))
    else:
        sizes = np.abs(_predictors(stack, lanes.full()[0])[0] - stack.y[0, 0])
    return np.append(np.quantile(sizes, GRID), math.inf)


def _predictors(stack: Stack, tensors: np.ndarray) -> np.ndarray:
    """Linear predictors of the first data set, lane by lane."""
    if stack.X is None:
        return tensors[:, None]
    X = stack.X[0]
    flat = tensors.reshape(len(tensors), math.prod(X.shape[1:]), -1)
    eta = X.reshape(len(X), -1) @ flat
    return eta.reshape(len(tensors), *stack.y.shape[2:])


def _best_lane(
    stack: Stack,
    theta: Tucker,
    method: str,
    grid: np.ndarray,
    data: Simulated,
    b: float,
    rng: np.random.Generator,
) -> int:
    """Index of the threshold of least five-fold prediction error; all folds and thresholds descend at once."""
    folds = list(
        KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31))).split(stack.y[0, 0])
    )
    weight = np.zeros((FOLDS, len(grid), stack.n))
    for fold, (train, _) in enumerate(folds):
        weight[fold, :, train] = 1.0
    thresholds = np.tile(grid, FOLDS)
    tau, nu = (thresholds, math.inf) if method == "RGD" else (math.inf, thresholds)
    lanes = lanes_at([[theta] * len(thresholds)], tau, nu)
    lanes = replace(lanes, weight=weight.reshape(1, -1, stack.n))
    end = descend(stack, lanes, data.truth.full(), step=STEP, b=b, n_iter=ITERATIONS)
    loss = Loss.get("logistic" if stack.logistic else "squared")
    entries = loss.score if loss.residual else loss.value
    tensors, y = end.lanes.full()[0], stack.y[0, 0]
    errors = np.empty((FOLDS, len(grid)))
    for m in range(len(thresholds)):
        fold, k = divmod(m, len(grid))
        eta = np.broadcast_to(_predictors(stack, tensors[m : m + 1])[0], y.shape)
        test = folds[fold][1]
        errors[fold, k] = prediction_error(loss, entries(eta[test], y[test]))
    errors = np.where(end.diverged[0].reshape(errors.shape), math.inf, errors)
    return int(np.argmin(errors.mean(axis=0)))


def problem_of(model: str, data: Simulated, robust: Robustifier | None = None) -> Problem:
    """The estimation problem, without an intercept as in the paper."""
    design = Direct() if model == "IV" else Covariate()
    loss = Loss.get("logistic" if model == "III" else "squared")
    return Problem(Rows(data.X, data.y), loss, design, robust or Robustifier())


def converge(
    experiment: Experiment,
    cell: Cell,
    data: Simulated,
    settings: Settings,
    rng: np.random.Generator,
) -> Outcomes:
    """The paper's methods at convergence, by the library's own solvers."""
    problem, b = problem_of(cell.model, data), _scale(data.truth)
    theta = data.truth
    if experiment.start == "data":
        theta = start(STARTS["converged"][cell.model], problem, theta.rank, rng)
    solver = choose(problem, theta).set_params(n_iter=100, tol=1e-6)
    outcomes = {}
    for method in (m for m in experiment.chosen(settings) if m != OURS):
        robust = _robust(method, cell, problem, theta, solver, b, rng)
        trial = replace(problem, robust=robust).calibrate(theta)
        result = solver.run(trial, theta)
        error = frobenius_error(result.theta, data.truth, squared=True)
        diverged = result.reason.startswith("diverged")
        outcomes[method] = Outcome(error, result.converged, diverged)
    return outcomes


def _robust(
    method: str,
    cell: Cell,
    problem: Problem,
    theta: Tucker,
    solver: Solver,
    b: float,
    rng: np.random.Generator,
) -> Robustifier:
    """The method's robust gradient, its threshold given or by cross-validation."""
    if method == "VGD":
        return Robustifier()
    if cell.tau is not None:
        return _truncate(cell.tau, theta.order, b)
    pilot = problem.pilot(theta)
    if method == "HUB":
        sizes = np.abs(pilot.scores()).ravel()
        candidates: list[Robustifier] = [Huber(nu) for nu in _candidates(sizes)]
    else:
        balanced = problem.pilot(theta.balance(b))
        sizes = np.abs(np.concatenate([g.ravel() for g in balanced.gradients()]))
        candidates = [_truncate(tau, theta.order, b) for tau in _candidates(sizes)]
    rough = clone(solver).set_params(n_iter=15, tol=1e-3)  # thresholds need no more
    errors = cross_validate(problem, theta, rough, candidates, rng=rng)
    return candidates[int(np.argmin(errors.mean(axis=0)))]


def _candidates(sizes: np.ndarray) -> list[float]:
    """Gentlest first, as :func:`tauten.select.cross_validate` wants them."""
    return [math.inf, *(float(q) for q in np.quantile(sizes, GRID)[::-1])]


def _truncate(tau: float, order: int, b: float) -> Truncate:
    """One τ for all blocks where factors have norm b, said for the solvers' orthonormal factors.

    A factor b times as long has a gradient as many times smaller, and the core the other way.
    """
    return Truncate([tau / b**order, *([tau * b] * order)])


def ours(model: str, data: Simulated, rng: np.random.Generator) -> Outcome:
    """The library's default, as it comes."""
    seed = int(rng.integers(2**31))
    estimator: Any = {"III": TensorClassifier, "IV": TensorPCA}.get(model, TensorRegressor)
    options = {"replicates": True} if model == "IV" else {}
    estimator = estimator(1, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is recorded instead
        fitted = estimator.fit(data.y) if model == "IV" else estimator.fit(data.X, data.y)
    error = frobenius_error(fitted.tucker_, data.truth, squared=True)
    return Outcome(error, bool(fitted.result_.converged))
