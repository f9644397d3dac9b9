"""Cross-validation near one fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from tauten import designs
from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Logistic, Squared
from tauten.problem import Gradient, Problem
from tauten.robust import Truncate
from tauten.select import nearby, select_threshold, thresholds
from tauten.solver import Anderson, Newton
from tauten.tucker import Affine, Tucker


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(60, 4))
    y = 2 + X @ [1.0, 0.5, 0.0, -1.0] + rng.normal(size=60)
    return Problem(Rows(X, y, np.ones((60, 1))), Squared(), Covariate(), Truncate(np.inf))


@pytest.fixture
def theta():
    """A vector has all directions in its tangent space."""
    return Affine(np.ones(1), [np.full((4, 1), 0.5)], np.array([1.0]))


def test_of_vectors_it_is_that_of_linear_regression(problem, theta, monkeypatch):
    monkeypatch.setattr(nearby, "TOL", 1e-12)
    monkeypatch.setattr(nearby, "STEPS", 200)
    trial = problem.calibrate(theta)
    errors = nearby.errors_near([trial], theta, rng=np.random.default_rng(3))
    X, y = problem.data.X, problem.data.y
    seed = int(np.random.default_rng(3).integers(2**31))
    splits = KFold(5, shuffle=True, random_state=seed)
    predicted = cross_val_predict(LinearRegression(), X, y, cv=splits)
    expected = [np.mean(np.abs(predicted - y)[test]) for _, test in splits.split(X)]
    np.testing.assert_allclose(errors[:, 0], expected, rtol=1e-9)


@pytest.fixture
def fit(problem):
    """Where least squares end."""
    model = LinearRegression().fit(problem.data.X, problem.data.y)
    size = np.linalg.norm(model.coef_)
    factor = model.coef_[:, None] / size
    return Affine(np.array([size]), [factor], np.array([model.intercept_]))


def test_a_cut_gradient_is_zero_where_a_fold_ends(problem, fit, monkeypatch):
    """Of each fold without its samples, along the steps that move A."""
    monkeypatch.setattr(nearby, "TOL", 1e-12)
    monkeypatch.setattr(nearby, "STEPS", 500)
    ends, scores_near = {}, nearby.scores_near

    def kept(problems, point, steps):
        ends.update(problems=problems, steps=steps)
        return scores_near(problems, point, steps)

    monkeypatch.setattr(nearby, "scores_near", kept)
    trials = [Problem(**vars(problem) | {"robust": Truncate(t).calibrate()}) for t in (0.7, 1.5)]
    nearby.errors_near(trials, fit, rng=np.random.default_rng(0))
    X, y, u = problem.data.X, problem.data.y, fit.factors[0]
    rows = np.hstack([X @ u, X * fit.core, np.ones((60, 1))])
    for fold, step in zip(ends["problems"], ends["steps"], strict=True):
        score, tau = X @ fit.full() + fit.linear + rows @ step - y, fold.robust.tau
        cut = fold.data.weight @ np.clip(score[:, None] * rows, -tau, tau)
        across = cut[1:5] - u @ (u.T @ cut[1:5])
        np.testing.assert_allclose([cut[0], *across, cut[5]], 0, atol=1e-8)
        assert np.any(np.abs(score[:, None] * rows) > tau)


def test_the_fit_near_another_one_is_that_of_all_samples(problem, theta, fit):
    found = nearby.fit_near(problem.calibrate(theta), theta)
    difference = found.full() - fit.full()
    moved = np.linalg.norm(theta.full() - fit.full())
    assert np.linalg.norm(difference) < moved**2  # to second order in what it moved by
    np.testing.assert_allclose(found.linear, fit.linear, atol=1e-8)


def test_however_many_candidates_samples_are_swept_once_a_pass(problem, theta, rng, monkeypatch):
    swept, derivatives = [], designs.derivatives

    def counted(X, *args, **options):
        swept.append(len(X))
        return derivatives(X, *args, **options)

    monkeypatch.setattr(designs, "derivatives", counted)
    trials = [problem.calibrate(theta) for _ in range(7)]
    swept.clear()
    before = problem.data.reads.passes
    nearby.errors_near(trials, theta, rng=rng)
    assert swept == [60] * int(problem.data.reads.passes - before)


def test_candidates_are_told_as_they_are_done(problem, fit, rng):
    told, taus = [], (0.3, 3.0, np.inf)
    trials = [Problem(**vars(problem) | {"robust": Truncate(t).calibrate()}) for t in taus]
    nearby.errors_near(trials, fit, rng=rng, report=lambda *now: told.append(now))
    assert told[0] == (0, 3)
    assert told[-1] == (3, 3)
    assert told == sorted(told)
    assert {done for done, _ in told} > {0, 3}


def walked(inverse, size=1.0):
    """Steps to where a linear gradient of slope one is zero, so far from the first point."""
    theta = Tucker(np.ones(1), [np.eye(2, 1)])
    moving = np.diag([1.0, 0.0, 1.0])  # a longer column of the factor is a larger core
    walk = nearby._walk(inverse * moving, np.ones(3), np.zeros(3))
    there, steps = size * np.array([0.6, 0.0, -0.8]), [next(walk)]
    while True:
        blocks = theta.with_blocks(theta.split(steps[-1] - there))
        try:
            steps.append(walk.send(Gradient(blocks, 0.0, ())))
        except StopIteration as end:
            return (end.value - there) / size, len(steps)


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_steps_end_when_they_are_short_beside_the_first(size):
    """Each is half as long as the one before: the seventh is the first below three per cent."""
    left, taken = walked(0.5, size)
    assert taken == 7
    np.testing.assert_allclose(np.abs(left), [0.6 / 2**7, 0, 0.8 / 2**7])


def test_steps_that_swing_become_shorter():
    """A matrix of half the slope would send them there and back for ever."""
    left, _ = walked(2.0)
    assert np.abs(left).max() < 0.03


def test_the_matrix_is_halfway_from_reweighting_to_the_slope(rng):
    x, y, tau = rng.normal(size=50), rng.normal(size=50), 0.5
    given = Problem(Rows(x[:, None], y), Squared(), Covariate(), Truncate(tau).calibrate())
    theta = Tucker(np.ones(1), [np.ones((1, 1))])
    (inverse,) = nearby._inverses([given], theta)
    entries = np.abs((x - y) * x)
    reweighted = np.mean(np.minimum(1, tau / entries) * x**2)
    slope = np.mean((entries < tau) * x**2)
    expected = 2 / (reweighted + slope)
    np.testing.assert_allclose(inverse, [[expected, 0], [0, 0]], rtol=1e-6, atol=1e-12)


def test_thresholds_are_chosen_near_one_fit_where_that_is_at_hand(rng, monkeypatch):
    """Responses that are numbers, five to a parameter, a loss of the residual, and a matrix."""
    used = []
    monkeypatch.setattr(
        thresholds, "errors_near", lambda trials, *_, **__: used.append("near") or np.eye(5, 10)
    )
    monkeypatch.setattr(
        thresholds, "cross_validate", lambda *_, **__: used.append("folds") or np.eye(5, 10)
    )
    X, theta = rng.normal(size=(50, 3)), Tucker(np.ones(1), [np.eye(3, 1)])
    several = Tucker(np.ones((1, 1)), [np.eye(3, 1), np.eye(2, 1)])
    y, labels = X[:, 0] + rng.normal(size=50), (X[:, 0] > 0).astype(float)
    for loss, response, point, solver in [
        (Squared(), y, theta, Newton()),
        (Squared(), y, theta, Anderson()),
        (Squared(), y[:14], theta, Newton()),
        (Logistic(), labels, theta, Newton()),
        (Squared(), np.stack([y, -y], axis=1), several, Newton()),
    ]:
        given = Problem(Rows(X[: len(response)], response), loss, Covariate(), Truncate("cv"))
        select_threshold(given, point, solver, rng=rng)
    assert used == ["near", "folds", "folds", "folds", "folds"]
