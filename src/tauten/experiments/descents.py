"""The paper's methods by Algorithm 1, tuned as it says: thresholds given or by validation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from sklearn.model_selection import KFold

from ..init import start
from ..metrics import has_converged
from ..select import QUANTILES, prediction_error
from ..tucker import Tucker
from .base import ITERATIONS, LARGEST, STEP, WINDOW
from .lanes import Stack, gradients, lanes_at
from .outcomes import Outcome, Outcomes, Trial
from .stepping import Descent, descend

# Thresholds that cross-validation tries: these quantiles of what is truncated, and infinity. The
# paper does not say which; finer grids cost time and change little.
GRID = QUANTILES[::2]
FOLDS = 5
# At convergence, Experiments 1 and 5 still watch Algorithm 1's iterates: with the step of the proof
# of Theorem 1, η ∝ b^(-2d), small enough for t2.2 covariates, and time to arrive.
STABLE_STEP, MANY_ITERATIONS = 0.02, 3000
# The paper's data-driven starts, appendix E.
STARTS = {"I": "nuclear-literal", "II": "nuclear-literal", "III": "nuclear", "IV": "pseudo-huber"}


def descend_from_truth(trials: list[list[Trial]], *, stable: bool) -> list[list[Outcomes]]:
    """RGD from A*, all data sets (replication, cell) of a group together."""
    first = trials[0][0]
    truth = first.data.truth
    step, n_iter = STEP, ITERATIONS
    if stable:
        step, n_iter = STABLE_STEP * first.b ** (-2 * truth.order), MANY_ITERATIONS
    lanes = lanes_at(
        [[t.data.truth for t in row] for row in trials], [t.cell.tau for t in trials[0]]
    )
    end = descend(
        _stack(trials), lanes, truth.full(), step=step, b=first.b, n_iter=n_iter, window=WINDOW
    )
    return [
        [{"RGD": _outcome(end, i, m, first.cell.n)} for m in range(len(row))]
        for i, row in enumerate(trials)
    ]


def _stack(trials: list[list[Trial]]) -> Stack:
    cell = trials[0][0].cell
    X = None if cell.model == "IV" else np.stack([np.asarray(row[0].data.X) for row in trials])
    y = np.stack([np.stack([trial.data.y for trial in row]) for row in trials])
    return Stack(X, y, logistic=cell.model == "III")


def _outcome(end: Descent, dataset: int, lane: int, n: int) -> Outcome:
    errors, diverged = end.errors[:, dataset, lane], bool(end.diverged[dataset, lane])
    settled = not diverged and has_converged(errors, n=n, p_max=LARGEST, window=WINDOW)
    return Outcome(float(errors[-1]), settled, diverged)


def descend_from_data(trial: Trial) -> Outcomes:
    """VGD, RGD and HUB from the paper's start, their thresholds by five-fold cross-validation."""
    b, truth = trial.b, trial.data.truth
    theta = start(STARTS[trial.cell.model], trial.problem(), truth.rank, trial.rng).balance(b)
    stack, outcomes = _stack([[trial]]), {}
    for method in trial.methods:
        tau, nu = math.inf, math.inf
        if method == "RGD":
            tau = _validated(trial, stack, theta, method)
        elif method == "HUB":
            nu = _validated(trial, stack, theta, method)
        lanes = lanes_at([[theta]], tau, nu)
        end = descend(stack, lanes, truth.full(), step=STEP, b=b, n_iter=ITERATIONS, window=WINDOW)
        outcomes[method] = _outcome(end, 0, 0, trial.cell.n)
    return outcomes


def _validated(trial: Trial, stack: Stack, theta: Tucker, method: str) -> float:
    """The threshold of least prediction error; all folds and thresholds descend at once."""
    grid = _grid(stack, theta, method)
    seed = int(trial.rng.integers(2**31))
    folds = list(KFold(FOLDS, shuffle=True, random_state=seed).split(stack.y[0, 0]))
    weight = np.zeros((FOLDS, len(grid), stack.n))
    for fold, (train, _) in enumerate(folds):
        weight[fold][:, train] = 1.0
    many = np.tile(grid, FOLDS)
    tau, nu = (many, math.inf) if method == "RGD" else (math.inf, many)
    lanes = replace(
        lanes_at([[theta] * len(many)], tau, nu), weight=weight.reshape(1, len(many), stack.n)
    )
    truth = trial.data.truth.full()
    end = descend(stack, lanes, truth, step=STEP, b=trial.b, n_iter=ITERATIONS)
    tests = [test for _, test in folds for _ in grid]
    tensors = end.lanes.full()[0]
    found = [_test_error(trial, a, test) for a, test in zip(tensors, tests, strict=True)]
    errors = np.where(end.diverged[0], math.inf, found).reshape(FOLDS, len(grid))
    return float(grid[np.argmin(errors.mean(axis=0))])


def _grid(stack: Stack, theta: Tucker, method: str) -> np.ndarray:
    """Thresholds to try: of gradient entries for RGD, of residuals for HUB."""
    if method == "RGD":
        lanes = lanes_at([[theta]], math.inf)
        parts = [part.ravel() for _, blocks in gradients(stack, lanes) for part in blocks]
        sizes = np.abs(np.concatenate(parts))
    else:
        X = None if stack.X is None else stack.X[0]
        sizes = np.abs(_predictors(X, theta.full()) - stack.y[0, 0])
    return np.append(np.quantile(sizes, GRID), math.inf)


def _predictors(X: np.ndarray | None, tensor: np.ndarray) -> np.ndarray:
    """Linear predictors of a full tensor."""
    return tensor[None] if X is None else np.tensordot(X, tensor, axes=X.ndim - 1)


def _test_error(trial: Trial, tensor: np.ndarray, test: np.ndarray) -> float:
    """Prediction error of a tensor on the samples of a fold."""
    X, y, loss = trial.data.X, trial.data.y[test], trial.loss
    eta = np.broadcast_to(_predictors(None if X is None else X[test], tensor), y.shape)
    return prediction_error(loss, (loss.score if loss.residual else loss.value)(eta, y))
