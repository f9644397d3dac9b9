"""What a cross-validation costs, and what it tells as it goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Logistic, Squared
from tauten.problem import Problem
from tauten.robust import Truncate
from tauten.select import cross_validate, prediction_error, select_rank, select_threshold
from tauten.select.folds import folds, held_out, validate
from tauten.solver import Newton, Solver
from tauten.tucker import Tucker


class Restless(Solver):
    """Each step is a twentieth of the way, so that no step is ever the last."""

    def step(self, problem, theta, gradient, progress):
        return theta.with_blocks([1.05 * theta.core, *theta.factors])


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(30, 4))
    y = X @ [1.0, 0.5, 0.0, 0.0] + rng.normal(size=30)
    return Problem(Rows(X, y), Squared(), Covariate(), Truncate())


@pytest.fixture
def theta():
    return Tucker(np.ones(1), [np.eye(4, 1)])


def test_errors_of_one_problem_by_hand(problem, theta):
    rows = np.array([3, 8, 9])
    (error,) = validate([problem], [theta], [rows])
    assert error == pytest.approx(np.mean(np.abs(problem.data.X[rows, 0] - problem.data.y[rows])))


def test_prediction_errors_by_hand(rng):
    """Absolute residuals, those that are there; or losses of samples without the largest tenth."""
    assert prediction_error(Squared(), np.array([[1.0, -3.0], [np.nan, 2.0]])) == 2.0
    losses = np.append(np.arange(18.0), [1e3, 1e4])
    parts = rng.permutation(losses)[:, None] * [0.25, 0.75]
    assert prediction_error(Logistic(), parts) == pytest.approx(np.mean(np.arange(18)))


@pytest.mark.parametrize(("n", "number"), [(30, 5), (3, 3), (2, 2)])
def test_there_are_five_folds_or_as_many_as_samples(n, number, problem, rng):
    few = replace(problem, data=Rows(problem.data.X[:n], problem.data.y[:n]))
    tests = [test for _, test in folds(few, rng)]
    assert len(tests) == number
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(n))


class Curved(Restless):
    curvature = True


@pytest.mark.parametrize(
    ("solver", "taken"),
    [
        (Curved(n_iter=50), 12 + 4 + 4),
        (Restless(n_iter=50), 12 + 8 + 8),
        (Curved(n_iter=3), 3 + 3 + 3),
    ],
)
def test_folds_take_few_steps_and_go_both_ways_at_once(problem, theta, rng, solver, taken):
    """All folds share a pass for each step, one for the pilot and one for the errors."""
    trials, before = [Truncate(tau) for tau in (1.0, 2.0, 3.0, 4.0)], problem.data.reads.passes
    cross_validate(problem, theta, solver, trials, rng=rng)
    assert problem.data.reads.passes - before == taken + 2


class Marked(Solver):
    """One step, that adds one and remembers the threshold and the number it was taken from."""

    def step(self, problem, theta, gradient, progress):
        self.seen.append((problem.robust.tau_, float(theta.core[0])))
        return theta.with_blocks([theta.core + 1, *theta.factors])


@pytest.mark.parametrize(
    ("first", "begun"),
    [
        (0, [(1.0, 1), (2.0, 2), (3.0, 3), (4.0, 4)]),
        (1, [(2.0, 1), (1.0, 2), (3.0, 2), (4.0, 3)]),
        (3, [(4.0, 1), (3.0, 2), (2.0, 3), (1.0, 4)]),
    ],
)
def test_fits_start_where_that_of_their_neighbour_ended(problem, theta, first, begun):
    """From the first to both ends; errors are in the order of the trials, whatever is first."""
    trials = [replace(problem, robust=Truncate(tau).calibrate()) for tau in (1.0, 2.0, 3.0, 4.0)]
    solver, Marked.seen = Marked(n_iter=1), []
    draws, again = (np.random.default_rng(7) for _ in range(2))
    found = held_out(trials, theta, solver, first=first, rng=draws)
    assert Marked.seen == [fit for fit in begun for _ in range(5)]
    tests = [test for _, test in folds(problem, again)]
    sizes = {tau: size + 1 for tau, size in begun}
    for trial, tau in enumerate(sorted(sizes)):
        residuals = np.abs(sizes[tau] * problem.data.X[:, 0] - problem.data.y)
        np.testing.assert_allclose(found[:, trial], [np.mean(residuals[test]) for test in tests])


@pytest.mark.parametrize(
    ("ridges", "first", "inherited"), [((0.0, 0.0), 0, 5), ((0.1, 0.0), 0, 0), ((0.0, 0.0), 1, 0)]
)
def test_gentler_trials_take_matrices_over_from_the_last_one_of_the_same_ridge(
    problem, theta, ridges, first, inherited
):
    """Nothing is cut here, so that the second trial may begin with the matrices of the first."""
    begun = []

    class Watched(Newton):
        def needs(self, progress):
            needed = super().needs(progress)
            if not progress.history:
                begun.append(needed.curvature)
            return needed

    plain = replace(problem, robust=Truncate(np.inf).calibrate())
    trials, rng = [replace(plain, ridge=ridge) for ridge in ridges], np.random.default_rng(0)
    held_out(trials, theta, Watched(), first=first, rng=rng)
    assert (len(begun), begun.count(False)) == (10, inherited)


def test_one_candidate_has_an_error_in_each_fold(problem, theta):
    robust = Truncate(1.0).calibrate()
    draws, again = (np.random.default_rng(7) for _ in range(2))
    found = cross_validate(problem, theta, Restless(n_iter=1), [robust], rng=draws)
    seed = int(again.integers(2**31))
    rows = [test for _, test in KFold(5, shuffle=True, random_state=seed).split(np.arange(30))]
    residuals = np.abs(1.05 * problem.data.X[:, 0] - problem.data.y)
    np.testing.assert_allclose(found, [[np.mean(residuals[test])] for test in rows])


def test_candidates_are_told_as_they_are_done(problem, theta, rng):
    told = []
    trials = [Truncate(tau) for tau in np.linspace(0.5, 5, 10)]
    cross_validate(
        problem, theta, Newton(n_iter=2), trials, rng=rng, report=lambda *done: told.append(done)
    )
    # The fourth first, then two at a time, and in the end those that are left on one side.
    assert told == [(done, 10) for done in (0, 1, 3, 5, 7, 8, 9, 10)]


def test_ranks_are_told_as_they_are_tried(rng):
    X = rng.normal(size=(60, 3, 3))
    told, problem = [], Problem(Rows(X, X[:, 0, 0]), Squared(), Covariate())
    path = select_rank(problem, rng=rng, largest=2, report=lambda *done: told.append(done))
    assert told == [(tried, None) for tried in range(1, len(path.ranks) + 1)]


def test_a_threshold_of_zero_is_no_candidate(rng):
    """Most samples are fitted exactly, so that most of their gradients are zero."""
    X, theta = rng.normal(size=(40, 4)), Tucker(np.ones(1), [np.eye(4, 1)])
    y = X[:, 0] + np.where(np.arange(40) < 30, 0.0, 1.0)
    problem = Problem(Rows(X, y), Squared(), Covariate(), Truncate())
    path = select_threshold(problem, theta, Newton(n_iter=2), rng=rng)
    assert len(path.taus) < 10
    assert np.all(path.taus > 0)
