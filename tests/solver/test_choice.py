"""When steps are enough: against the standard error, by hand, and within forty passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tauten as tt
from tauten._checks import check_tensor
from tauten.data import Rows, gather
from tauten.designs import Covariate, Direct
from tauten.losses import Logistic, Squared
from tauten.problem import Problem
from tauten.solver import Anderson, Iteration, Newton, Result
from tauten.solver.choice import choose, settled, worth_keeping
from tauten.solver.result import DIVERGED, INTERRUPTED
from tauten.tucker import Tucker


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(80, 3))
    return Problem(Rows(X, X @ [1.0, 2.0, -1.0] + rng.normal(size=80)), Squared(), Covariate())


def least_squares(problem):
    """A vector's least squares, and by hand the standard error of all of it (White, 1980)."""
    X, y = problem.data.X, problem.data.y
    beta = np.linalg.lstsq(X, y)[0]
    inverse = np.linalg.inv(X.T @ X)
    covariance = inverse @ (X.T * (y - X @ beta) ** 2 @ X) @ inverse
    theta = Tucker(np.array([np.linalg.norm(beta)]), [beta[:, None] / np.linalg.norm(beta)])
    return theta, float(np.sqrt(np.trace(covariance)))


def stopped(theta, moved, reason="not converged in 1 iterations"):
    """The end of a run that ran out of steps, its last one of a given length."""
    last = Iteration(1, 1.0, moved / theta.norm(), (0.0, 0.0))
    return Result(theta, 1, False, reason, [last])


def test_a_last_step_far_below_the_standard_error_is_enough(problem):
    theta, error = least_squares(problem)
    enough = settled(problem, stopped(theta, 0.0199 * error))
    assert enough.converged
    assert enough.reason.startswith("the last step was 2.0% of the standard error of A")
    longer = stopped(theta, 0.0201 * error)
    assert settled(problem, longer) is longer


@pytest.mark.parametrize(("size", "enough"), [(4, True), (3, False)])
def test_no_standard_error_of_more_coefficients_than_a_matrix_may_have(
    size, enough, problem, monkeypatch
):
    monkeypatch.setattr("tauten.solver.choice.ONCE", size)
    theta, error = least_squares(problem)
    assert settled(problem, stopped(theta, 0.001 * error)).converged == enough


@pytest.mark.parametrize("reason", [f"{DIVERGED} at iteration 1", f"{INTERRUPTED} after 1"])
def test_other_ends_stay_what_they_are(problem, reason):
    theta, error = least_squares(problem)
    result = stopped(theta, 0.0001 * error, reason)
    assert settled(problem, result) is result


def test_a_run_without_steps_or_standard_error_is_left_alone(problem, rng):
    theta, _ = least_squares(problem)
    nothing = replace(stopped(theta, 0.0), history=[])
    assert settled(problem, nothing) is nothing
    pca = Problem(Rows(None, rng.normal(size=(5, 3))), Squared(), Direct())
    still = stopped(theta, 0.0)
    assert settled(pca, still) is still


@pytest.mark.parametrize(
    ("error", "expected"), [(np.nan, 1e-5), (0.0, 1e-5), (0.02, 4e-5), (9.0, 1e-4), (np.inf, 1e-4)]
)
def test_steps_end_where_a_share_of_the_standard_error_is_left(
    error, expected, problem, monkeypatch
):
    """A five-hundredth of it, relative to A; never less than 1e-5, nor more than 1e-4."""
    vars(problem)["error"] = error
    theta = Tucker(np.array([1.0]), [np.eye(3, 1)])
    assert choose(problem, theta).tol == pytest.approx(expected)
    counts = replace(problem, loss=Logistic())
    vars(counts)["error"] = error
    assert choose(counts, theta).tol == pytest.approx(expected)
    monkeypatch.setattr("tauten.solver.choice.LARGEST", 0)
    assert isinstance(choose(problem, theta), Anderson)
    assert choose(problem, theta).tol == pytest.approx(expected)
    assert choose(problem, Tucker(np.array([0.0]), [np.eye(3, 1)])).tol in {1e-5, 1e-4}


def test_an_automatic_fit_ends_within_a_hundredth_of_the_standard_error_of_its_end(rng):
    """And a fit that is told how exact to be, there."""
    X = rng.normal(size=(400, 6, 5))
    y = X[:, 0, 0] + X[:, 1, 2] + rng.normal(size=400)
    model = tt.TensorRegressor(2).fit(X, y)
    problem, theta = model._at_fit(X, y)
    end = Newton(tol=1e-13).run(problem, theta).theta
    error = np.sqrt(problem.pilot(end.canonical()).risks([problem.robust])[0])
    assert 0 < theta.distance(end) < 0.01 * error
    assert "tol=0.0001" in model.result_.reason
    exact = tt.TensorRegressor(2, solver="newton:tol=1e-12", robust=model.robust_).fit(X, y)
    assert exact.tucker_.distance(end) < 1e-9 * end.norm()
    assert "below tol=1e-12" in exact.result_.reason


@pytest.mark.parametrize(("noise", "expected"), [(1.0, 5e-3), (1e-6, 1e-3)])
def test_a_fit_that_thresholds_are_chosen_from_is_as_exact_as_they_need(
    noise, expected, rng, monkeypatch
):
    X, tols = rng.normal(size=(400, 6, 5)), []
    rougher = Newton.rougher

    def watched(solver, tol, n_iter):
        tols.append(tol)
        return rougher(solver, tol, n_iter)

    monkeypatch.setattr(Newton, "rougher", watched)
    tt.TensorRegressor(1).fit(X, X[:, 0, 0] + noise * rng.normal(size=400))
    assert tols == [expected]


@pytest.mark.parametrize("larger", [None, "size", "work"])
def test_newton_while_its_matrix_is_small_and_quickly_formed(larger, rng, monkeypatch):
    """Four response rows, and in each two columns that add a square to the matrix."""
    theta = Tucker(np.ones((1, 2, 2)), [np.ones((7, 1)), np.ones((4, 2)), np.ones((2, 2))])
    size, work = theta.d_eff, 4 * 2 * theta.d_eff**2
    monkeypatch.setattr("tauten.solver.choice.LARGEST", size - (larger == "size"))
    monkeypatch.setattr("tauten.solver.choice.WORK", work - (larger == "work"))
    problem = Problem(Rows(np.ones((5, 7)), np.ones((5, 4, 2))), Squared(), Covariate())
    assert isinstance(choose(problem, theta), Anderson if larger else Newton)


def test_steps_are_counted_where_there_are_residuals(problem):
    theta, _ = least_squares(problem)
    assert choose(problem, theta).n_iter == 22
    assert choose(replace(problem, loss=Logistic()), theta).n_iter == Newton().n_iter > 22


@pytest.mark.parametrize(
    ("options", "seed"),
    [
        ({"noise": "t:1.2"}, 0),  # creeps: all the steps allowed are taken
        ({"noise": "t:1.2"}, 2),
        ({"noise": "t:1.2", "covariates": "t:2.1"}, 0),
        ({"contamination": 0.04}, 4),  # and here
    ],
)
def test_an_automatic_fit_reads_the_data_forty_times_at_most(options, seed):
    truth = {"shape": (6, 5, 4), "rank": 2, "reading": "random", "norm": 2.0}
    data = tt.datasets.make_model("I", 150, rng=seed, **truth, **options)
    result = tt.TensorRegressor(2).fit(data.X, data.y).result_
    assert result.n_passes <= 40
    assert result.converged


def test_tensors_are_kept_where_they_are_dear(tmp_path):
    """Where X is large and in memory: from a file they come with the read of a pass."""
    large, less = (np.broadcast_to(np.ones(()), (n, 128, 128)) for n in (512, 511))
    for X, kept in ((large, True), (less, False)):
        assert worth_keeping(Problem(Rows(X, np.ones(len(X))), Squared(), Covariate())) is kept
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", float, large.shape)
    data = gather(check_tensor("X", stored, anywhere=True), np.ones(512), memory="20MB")
    assert not worth_keeping(Problem(data, Squared(), Covariate()))
    assert not worth_keeping(Problem(Rows(None, large), Squared(), Direct()))
