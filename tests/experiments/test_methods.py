"""The paper's methods under both tunings, and ours."""

from dataclasses import replace

import numpy as np
import pytest

from tauten.experiments import EXPERIMENTS, Cell, Experiment, Settings
from tauten.experiments.converged import _truncate, converge
from tauten.experiments.descents import descend_from_data, descend_from_truth
from tauten.experiments.methods import fit_group
from tauten.experiments.outcomes import Trial
from tauten.experiments.store import Results
from tauten.robust import Truncate

CELL = Cell("II", 120, "Model II", 1.0, 1, noise="t:2", tau=4.0)


def trial(cell, settings, methods=("RGD",), from_truth=True):
    experiment = Experiment("t", "t", "t", (cell,), (), "error")
    data = experiment.draw([cell], settings, 0)[0]
    return Trial(cell, data, methods, from_truth, np.random.default_rng(0))


def test_one_threshold_means_the_same_in_the_solvers_gauge():
    """Truncated gradients for factors of norm b are those for orthonormal ones, rescaled."""
    one = trial(CELL, Settings(reading="ones"))
    theta, tau, b = one.data.truth.canonical(), 20.0, one.b
    problem = one.problem()
    balanced = replace(problem, robust=Truncate(tau)).calibrate(theta)
    scaled = replace(problem, robust=_truncate(tau, theta.order, b)).calibrate(theta)
    want = balanced.gradient(theta.balance(b)).blocks
    got = scaled.gradient(theta).blocks
    assert balanced.gradient(theta.balance(b)).truncated == scaled.gradient(theta).truncated
    np.testing.assert_allclose(got.core, want.core / b**3, rtol=1e-10)
    for mine, theirs in zip(got.factors, want.factors, strict=True):
        np.testing.assert_allclose(mine, theirs * b, rtol=1e-10, atol=1e-12)


def test_the_papers_steps_do_not_arrive():
    one = trial(CELL, Settings())
    short, long = (descend_from_truth([[one]], stable=s)[0][0]["RGD"].error for s in (False, True))
    assert abs(short - long) > 0.02 * long


@pytest.mark.parametrize("fit", [descend_from_data, converge])
def test_validated_thresholds_tame_heavy_tails(fit):
    cell = Cell("II", 100, "Model II", "", "t2.1/t1.2", covariates="t:2.1", noise="t:1.2")
    found = fit(trial(cell, Settings(), ("VGD", "RGD", "HUB"), from_truth=False))
    assert list(found) == ["VGD", "RGD", "HUB"]
    assert found["RGD"].error < found["VGD"].error / 2
    assert found["HUB"].error < found["VGD"].error / 2


def test_a_group_has_every_cell_replication_and_method():
    experiment = EXPERIMENTS["exp01"]
    settings = Settings(quick=True)
    cells = experiment.groups(settings)["Model II; t:4; n=20"]
    found = fit_group(experiment, cells, settings, [0, 7])
    assert list(found) == [cell.key for cell in cells]
    by_replication = found[cells[0].key]
    assert list(by_replication[0]) == ["RGD", "auto"]
    assert list(by_replication[7]) == ["RGD"]  # ours is a line for orientation there


def test_methods_left_out_are_not_run(tmp_path):
    experiment = EXPERIMENTS["exp04"]
    settings = Settings(methods=("RGD",))
    assert experiment.chosen(settings) == ("RGD", "auto")
    header = Results(tmp_path / "x", experiment, settings).journal.header
    assert header["methods"] == ["RGD", "auto"]
