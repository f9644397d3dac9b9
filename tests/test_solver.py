"""Solvers against reference answers of other libraries, and how they end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares
from sklearn.datasets import load_digits
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)

import oracle
from tauten import TensorClassifier
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Loss, Squared
from tauten.problem import Problem
from tauten.robust import Huber, Robustifier, Truncate
from tauten.solver import GradientDescent, Newton, ScaledDescent, Solver
from tauten.solver.loop import relative_change, run_together
from tauten.tucker import Affine, Tucker, hooi, hosvd

REFERENCES = {
    "squared": LinearRegression(),
    "logistic": LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky"),
    "poisson": PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky"),
    "gamma": GammaRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky"),
}


@pytest.fixture
def vectors(rng):
    """Make a problem of order one with an intercept, and a start of full rank."""

    def make(loss, n=120, p=4):
        X = rng.normal(0.3, size=(n, p))
        y = Loss.get(loss).draw(0.3 + X @ rng.normal(scale=0.5, size=p), rng)
        problem = Problem(Rows(X, y, np.ones((n, 1))), Loss.get(loss), Covariate())
        return problem, Affine(0.1 * np.ones(p), [np.eye(p)], np.zeros(1))

    return make


def coefficients(theta):
    return np.append(theta.full(), theta.linear)


@pytest.mark.parametrize("loss", REFERENCES)
def test_newton_of_a_vector_is_scikit_learns_fit(loss, vectors):
    problem, theta = vectors(loss)
    reference = REFERENCES[loss].fit(problem.data.X, problem.data.y)
    expected = np.append(reference.coef_, reference.intercept_)
    result = Newton(tol=1e-11).run(problem, theta)
    assert result.converged, result.reason
    np.testing.assert_allclose(coefficients(result.theta), expected, atol=1e-7)
    assert result.n_iter < 30  # to 1e-11; steps with half a bound converge linearly


@pytest.mark.parametrize("loss", REFERENCES)
def test_gradient_descent_gets_there_too(loss, vectors):
    problem, theta = vectors(loss)
    expected = coefficients(Newton(tol=1e-11).run(problem, theta).theta)
    step_size = 0.4 if loss == "logistic" else 0.1
    result = GradientDescent(step_size, n_iter=5000, tol=1e-9).run(problem, theta)
    assert result.converged
    assert result.reason.startswith("relative change ")
    assert result.reason.endswith("below tol=1e-09")
    np.testing.assert_allclose(coefficients(result.theta), expected, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_newton_of_classes_is_scikit_learns_fit(classes, rng):
    X = rng.normal(size=(200, 3))
    label = (X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(200, classes))).argmax(axis=1)
    reference = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(X, label)
    data = Rows(X, np.eye(classes)[label], np.ones((200, 1)))
    problem = Problem(data, Loss.get("multinomial"), Covariate())
    rank = min(3, classes)
    factors = [np.eye(3, rank), np.eye(classes, rank)]
    start = Affine(0.1 * np.eye(rank), factors, np.zeros((1, classes)))
    result = Newton(n_iter=500, tol=1e-9).run(problem, start)
    assert result.converged, result.reason
    mine = problem.loss.mean(problem.predictors(result.theta))
    np.testing.assert_allclose(mine, reference.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("nu", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("how", ["robustifier", "loss"])
def test_huber_is_scipys_fit(nu, how, rng):
    X = rng.normal(size=(80, 3))
    y = 1 + X @ [1.0, -2.0, 0.5] + rng.standard_t(1.5, size=80)
    design = np.column_stack([X, np.ones(80)])
    best = least_squares(
        lambda w: design @ w - y, np.zeros(4), loss="huber", f_scale=nu, xtol=1e-15, ftol=1e-15,
        gtol=1e-13,
    )  # fmt: skip
    if how == "loss":
        loss, robust = Loss.get(f"huber:nu={nu}"), Robustifier()
    else:
        loss, robust = Squared(), Huber(nu).calibrate()
    problem = Problem(Rows(X, y, np.ones((80, 1))), loss, Covariate(), robust)
    start = Affine(np.ones(3), [np.eye(3)], np.zeros(1))
    result = Newton(n_iter=300, tol=1e-10).run(problem, start)
    assert result.converged, result.reason
    np.testing.assert_allclose(coefficients(result.theta), best.x, atol=1e-6)


def noisy_low_rank(rng, n=1):
    shape, rank = (6, 5, 4), (2, 3, 2)
    factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    truth = Tucker(rng.normal(size=rank), factors)
    return truth, truth.full() + 0.3 * rng.normal(size=(n, *shape))


@pytest.mark.parametrize("n", [1, 5])
def test_scaled_descent_of_pca_is_tensorlys_tucker(n, rng):
    from tensorly.decomposition import tucker as tensorly_tucker

    truth, Y = noisy_low_rank(rng, n)
    core, factors = tensorly_tucker(Y.mean(axis=0), truth.rank, n_iter_max=500, tol=1e-14)
    problem = Problem(Rows(None, Y), Squared(), Direct())
    start = hosvd(Y[0], truth.rank)
    result = ScaledDescent(n_iter=500, tol=1e-10).run(problem, start)
    assert result.converged, result.reason
    np.testing.assert_allclose(result.theta.full(), oracle.full(core, factors), atol=1e-5)
    best = hooi(Y.mean(axis=0), truth.rank, n_iter=500, tol=1e-15)
    np.testing.assert_allclose(result.theta.full(), best.full(), atol=1e-5)


def test_scaled_descent_fills_in_missing_entries(rng):
    truth, _ = noisy_low_rank(rng)
    Y = truth.full()[None].copy()
    Y[rng.random(Y.shape) < 0.2] = np.nan
    problem = Problem(Rows(None, Y), Squared(), Direct(), missing=True)
    start = hosvd(np.nan_to_num(Y[0]), truth.rank)
    result = ScaledDescent(n_iter=2000, tol=1e-9).run(problem, start)
    assert result.converged, result.reason
    assert result.theta.distance(truth) < 1e-5 * truth.norm()


@pytest.mark.parametrize("solver", [Newton(tol=1e-9), ScaledDescent(n_iter=3000, tol=1e-9)])
@pytest.mark.parametrize("d0", [1, 2, 3])
def test_regression_recovers_what_made_the_data(solver, d0, rng):
    shape, rank = (4, 3, 5), (2, 2, 2)
    factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    truth = Tucker(rng.normal(size=rank), factors)
    X = rng.normal(size=(150, *shape[:d0]))
    y = np.tensordot(X, truth.full(), axes=d0)
    start = truth.map(lambda block: block + 0.1 * rng.normal(size=block.shape))
    problem = Problem(Rows(X, y), Squared(), Covariate())
    result = solver.run(problem, start)
    assert result.converged, result.reason
    assert result.theta.distance(truth) < 1e-6 * truth.norm()
    for u in result.theta.factors:
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-10)


def test_newton_ends_where_the_robust_gradient_vanishes(rng):
    """Up to directions that only rotate factors, which it does not move in."""
    truth, _ = noisy_low_rank(rng)
    X = rng.normal(size=(200, *truth.shape))
    y = np.tensordot(X, truth.full(), axes=3) + rng.standard_t(2, size=200)
    problem = Problem(Rows(X, y), Squared(), Covariate(), Truncate(tau=30.0).calibrate())
    result = Newton(n_iter=200, tol=1e-10).run(problem, truth)
    assert result.converged, result.reason
    assert max(result.history[-1].truncated) > 0
    gradient = problem.gradient(result.theta).blocks
    np.testing.assert_allclose(gradient.core, 0, atol=1e-6)
    for u, g in zip(result.theta.factors, gradient.factors, strict=True):
        np.testing.assert_allclose(g - u @ (u.T @ g), 0, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_newton_takes_a_rank_that_is_too_large(scale, vectors):
    """A vector has rank one: the other columns of its factor have no curvature at all."""
    problem, theta = vectors("squared")
    data = problem.data
    problem = replace(problem, data=Rows(scale * data.X, data.y, data.Z))
    expected = coefficients(Newton(tol=1e-11).run(problem, theta).theta)
    excessive = Affine(np.ones(3) / scale, [np.eye(4, 3)], np.zeros(1))
    result = Newton(tol=1e-9).run(problem, excessive)
    assert result.converged, result.reason
    np.testing.assert_allclose(coefficients(result.theta), expected, rtol=1e-6)


@pytest.mark.parametrize("name", Solver.registry)
def test_every_solver_keeps_count(name, vectors):
    problem, theta = vectors("squared")
    seen = []
    solver = Solver.get(name).set_params(n_iter=4, tol=0.0)
    result = solver.run(problem, theta, lambda *args: seen.append(args))
    assert result.n_iter == len(result.history) == len(seen) == 4
    assert [record.t for record in result.history] == [1, 2, 3, 4]
    assert seen[-1][1] is result.theta
    assert (result.converged, result.reason) == (True, "took the 4 steps asked for")
    assert result.history[0].value == pytest.approx(problem.gradient(theta).value)


@pytest.mark.parametrize("name", Solver.registry)
def test_reasons(name, vectors):
    problem, theta = vectors("logistic")
    solver = Solver.get(name)
    few = solver.set_params(n_iter=1, tol=1e-12).run(problem, theta)
    assert not few.converged
    assert few.reason.startswith("not converged in 1 iterations: the last one changed A by ")
    assert f"solver='{name}:n_iter=5'" in few.reason
    stopped = solver.set_params(n_iter=9).run(problem, theta, lambda record, _: record.t == 2)
    assert (stopped.n_iter, stopped.converged) == (2, False)
    assert stopped.reason == "stopped by the callback at iteration 2"
    broken = replace(problem, data=Rows(problem.data.X * np.nan, problem.data.y, problem.data.Z))
    result = solver.run(broken, theta)
    assert (result.n_iter, result.converged, result.history) == (0, False, [])
    assert result.reason.startswith("diverged at iteration 1")
    np.testing.assert_allclose(result.theta.full(), theta.full())


def test_relative_change(rng, make_theta):
    old = make_theta((3, 4), (2, 2))
    new = make_theta((3, 4), (2, 2))
    gap, size = np.linalg.norm(new.full() - old.full()), np.linalg.norm(new.full())
    assert relative_change(new, old, gap) == pytest.approx(gap / size)
    assert relative_change(new, new, new.distance(new)) < 1e-14
    turned = new.rotate([np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2)])
    assert relative_change(turned, new, turned.distance(new)) < 1e-14


def test_relative_change_sees_the_vector_coefficients(make_theta):
    old = make_theta((3,), (2,), linear=(4,))
    new = replace(old, linear=old.linear + 5.0)
    size = np.linalg.norm(old.full()) + np.linalg.norm(new.linear)
    assert relative_change(new, old, 0.0) == pytest.approx(10.0 / size)


def test_relative_change_from_nothing_to_nothing():
    zero = Tucker(np.zeros(1), [np.ones((3, 1))])
    assert relative_change(zero, zero, 0.0) == 0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_whitened_descent_ends_where_newton_does(loss):
    """With covariates, an intercept, weights and rank two, from the same start."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(200, 5, 4)) * np.linspace(1, 1.5, 4), np.ones((200, 1))
    core = np.diag([1.0, 0.6])
    theta = Affine(core, [np.eye(5, 2), np.eye(4, 2)], np.zeros(1))
    eta = np.tensordot(X, theta.full(), axes=2)
    y = Loss.get(loss).draw(eta, rng)
    data = Rows(X, y, Z, rng.uniform(0.5, 2, size=200))
    problem = Problem(data, Loss.get(loss), Covariate())
    newton = Newton(tol=1e-10).run(problem, theta)
    scaled = ScaledDescent(n_iter=1000, tol=1e-8).run(problem, theta)
    assert newton.converged, newton.reason
    assert scaled.converged, scaled.reason
    np.testing.assert_allclose(scaled.theta.full(), newton.theta.full(), atol=1e-5)
    np.testing.assert_allclose(scaled.theta.linear, newton.theta.linear, atol=1e-5)


def test_curvature_along_a_direction_is_the_matrix_times_it():
    rng = np.random.default_rng(0)
    theta = Tucker(rng.normal(size=(2, 2)), [rng.normal(size=(4, 2)), rng.normal(size=(3, 2))])
    weight = rng.uniform(0.5, 2, size=30)
    data = Rows(rng.normal(size=(30, 4)), rng.normal(size=(30, 3)), weight=weight)
    problem = Problem(data, Loss.get("squared"), Covariate())
    direction = theta.map(lambda x: rng.normal(size=x.shape))
    mine, flat = (
        np.concatenate([np.ravel(block) for block in point.blocks])
        for point in (problem.curvature_map(theta)(direction), direction)
    )
    np.testing.assert_allclose(mine, problem.curvature(theta) @ flat, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("room", [1e7, 1])
def test_fits_together_are_the_fits_alone(room, rng, make_theta, monkeypatch):
    """Other weights, thresholds and starts: the same answers, in as many passes as the longest."""
    monkeypatch.setattr("tauten.solver.loop.MATRICES", room)
    X, theta = rng.normal(size=(90, 4, 3)), make_theta((4, 3), (1, 1))
    y = X.reshape(90, 12) @ theta.full().ravel() + 0.1 * rng.standard_t(3, size=90)
    problem = Problem(Rows(X, y, chunk=40), Squared(), Covariate())
    taus = [0.2, 0.5, np.inf]
    problems = [
        replace(
            problem,
            robust=Truncate(tau).calibrate(),
            data=problem.data.reweight(rng.integers(0, 3, size=90).astype(float)),
        )
        for tau in taus
    ]
    starts = [theta.map(lambda u: u + 0.1 * rng.normal(size=u.shape)) for _ in taus]
    alone = [
        Newton(n_iter=30).run(replace(p, data=Rows(X, y, None, p.data.weight)), start)
        for p, start in zip(problems, starts, strict=True)
    ]
    together = run_together(Newton(n_iter=30), problems, starts)
    for mine, theirs in zip(together, alone, strict=True):
        np.testing.assert_allclose(mine.theta.full(), theirs.theta.full(), rtol=1e-8, atol=1e-8)
        assert (mine.n_iter, mine.converged) == (theirs.n_iter, theirs.converged)
    steps = [result.n_iter for result in alone]
    assert problem.data.reads.passes == (max(steps) if room > 1 else sum(steps))


def test_newton_takes_no_step_that_multiplies_the_tensor():
    """Digits: pixels at the border that hardly ever vary, whose coefficients are hardly known."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.images[order] / 16, digits.target[order] % 2
    model = TensorClassifier(3, robust="none").fit(X[:1000], y[:1000])
    assert model.result_.converged
    assert model.score(X[1000:], y[1000:]) > 0.85
