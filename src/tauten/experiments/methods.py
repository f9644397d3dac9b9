"""The methods compared: the paper's, as it tunes them or at convergence, and ours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..datasets import Simulated
from ..estimators import TensorClassifier, TensorPCA, TensorRegressor
from ..metrics import frobenius_error
from .base import OURS, Cell, Experiment, Settings
from .converged import converge
from .descents import descend_from_data, descend_from_truth
from .outcomes import Outcome, Outcomes, Trial

LANE_BYTES = 2**22  # of the data sets that step together


def fit_group(
    experiment: Experiment, cells: list[Cell], settings: Settings, replications: Sequence[int]
) -> dict[str, dict[int, Outcomes]]:
    """Fit every method to every data set of a group of cells: by cell, then by replication."""
    found: dict[str, dict[int, Outcomes]] = {cell.key: {} for cell in cells}
    size = max(1, LANE_BYTES // (8 * cells[0].n * _entries(cells[0].model)))
    for low in range(0, len(replications), size):
        batch = replications[low : low + size]
        trials = [_trials(experiment, cells, settings, r) for r in batch]
        theirs = _paper(experiment, trials, settings)
        for r, row, outcomes in zip(batch, trials, theirs, strict=True):
            for trial, mine in zip(row, outcomes, strict=True):
                found[trial.cell.key][r] = mine
                if experiment.fits_ours(settings, r):
                    rng = experiment.rng(settings, r, f"{trial.cell.key}|{OURS}")
                    mine[OURS] = ours(trial.cell.model, trial.data, rng)
    return found


def _entries(model: str) -> int:
    """Entries of what is swept for each sample."""
    return 10 ** (2 if model == "II" else 3)


def _trials(
    experiment: Experiment, cells: list[Cell], settings: Settings, replication: int
) -> list[Trial]:
    methods = tuple(m for m in experiment.chosen(settings) if m != OURS)
    return [
        Trial(
            cell,
            data,
            methods,
            experiment.start == "truth",
            experiment.rng(settings, replication, f"{cell.key}|fit"),
        )
        for cell, data in zip(cells, experiment.draw(cells, settings, replication), strict=True)
    ]


def _paper(
    experiment: Experiment, trials: list[list[Trial]], settings: Settings
) -> list[list[Outcomes]]:
    """The paper's methods on each data set (replication, cell)."""
    watched = experiment.measure == "settled"  # then it is Algorithm 1 itself that is looked at
    if not trials[0][0].methods:
        return [[{} for _ in row] for row in trials]
    if experiment.start == "truth" and (settings.tuning == "paper" or watched):
        return descend_from_truth(trials, stable=settings.tuning == "converged")
    fit = descend_from_data if settings.tuning == "paper" else converge
    return [[fit(trial) for trial in row] for row in trials]


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
