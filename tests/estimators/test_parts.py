"""Robustifiers, solvers and starts in an estimator."""

from __future__ import annotations

import numpy as np
import pytest

from fits import INSTANCES, NAMES, NO_CONVERGENCE, TIGHT, close, vectors
from tauten import TensorRegressor, Tucker
from tauten.datasets import make_model
from tauten.metrics import relative_error
from tauten.robust import Adaptive, Huber, Robustifier, Truncate
from tauten.solver import GradientDescent


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize(
    ("robust", "fit_intercept"),
    [*((name, True) for name in [*NAMES, "truncate:tau=3"]), *((r, False) for r in INSTANCES)],
    ids=str,
)
def test_every_robustifier_finds_the_truth(robust, fit_intercept):
    data = make_model("I", 400, shape=(5, 4), noise="t:3", rng=0)
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(data.X, data.y)
    assert relative_error(model.coef_, data.truth) < 0.15
    assert model.robust_ is not robust
    assert isinstance(model.robust_, Robustifier)
    assert np.ndim(model.intercept_) == 0
    assert (model.intercept_ == 0) == (not fit_intercept)


@pytest.mark.parametrize(
    ("robust", "fit_intercept"), [("none", True), ("none", False), (Huber(1.0), True)], ids=str
)
def test_gradient_descent_and_newton_agree(robust, fit_intercept):
    data = make_model("I", 300, shape=(4, 3), noise="t:3", rng=0)
    options = {"robust": robust, "fit_intercept": fit_intercept}
    newton = TensorRegressor(1, solver="newton", **options).fit(data.X, data.y)
    slow = TensorRegressor(1, solver=GradientDescent(0.05, n_iter=200), **options)
    slow.fit(data.X, data.y)
    assert slow.n_iter_ == 200
    close(slow.coef_, newton.coef_, 1e-3)
    np.testing.assert_allclose(slow.intercept_, newton.intercept_, atol=1e-3)


def test_gradient_descent_by_name():
    data = make_model("I", 100, shape=(4, 3), rng=0)
    model = TensorRegressor(1, solver="gd:step_size=0.01,n_iter=7").fit(data.X, data.y)
    assert model.n_iter_ == len(model.result_.history) == 7
    assert model.result_.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scaled_descent_solves_regressions_too(fit_intercept):
    data = make_model("I", 300, shape=(4, 3), rng=0)
    options = {"robust": "none", "fit_intercept": fit_intercept}
    newton = TensorRegressor(1, solver=TIGHT, **options).fit(data.X, data.y)
    scaled = TensorRegressor(1, solver="scaled", **options).fit(data.X, data.y)
    close(scaled.coef_, newton.coef_, 1e-4)


@pytest.mark.parametrize("init", ["auto", "iht", "spectral", "random"])
def test_every_start_leads_to_the_same_fit(init):
    data = make_model("I", 300, shape=(5, 4), rng=0)
    best = TensorRegressor(1, robust="none", init=data.truth, solver=TIGHT).fit(data.X, data.y)
    model = TensorRegressor(1, robust="none", init=init, random_state=0, solver=TIGHT)
    close(model.fit(data.X, data.y).coef_, best.coef_)


def test_given_start_is_where_the_fit_starts():
    data = make_model("I", 300, shape=(5, 4), rng=0)
    start = Tucker(np.ones((1, 1)), [np.ones((5, 1)), np.ones((4, 1))])
    before = [block.copy() for block in start.blocks]
    first = TensorRegressor(1, robust="none", init=start, solver="gd:step_size=1e-12,n_iter=1")
    np.testing.assert_allclose(first.fit(data.X, data.y).coef_, np.ones((5, 4)), rtol=1e-6)
    assert all((a == b).all() for a, b in zip(before, start.blocks, strict=True))


@pytest.mark.parametrize("tau", [0.5, 2.0, [1.0, 0.3]], ids=str)
def test_truncated_gradients_vanish_at_the_fit(tau):
    """A vector is a length c times a direction u; both of its truncated mean gradients are zero."""
    X, eta, rng = vectors()
    y = eta - 2 + rng.standard_t(3, size=len(X))
    model = TensorRegressor(1, robust=Truncate(tau), solver=TIGHT, fit_intercept=False).fit(X, y)
    c = np.linalg.norm(model.coef_)
    u, residuals = model.coef_ / c, X @ model.coef_ - y
    first, second = tau if isinstance(tau, list) else (tau, tau)
    along = np.clip(residuals * (X @ u), -first, first).mean()
    across = np.clip(residuals[:, None] * X * c, -second, second).mean(axis=0)
    assert abs(along) < 1e-8
    np.testing.assert_allclose(across - u * (u @ across), 0, atol=1e-8)


@pytest.mark.parametrize("tau", [2.0, [1.0, 2.0, 3.0, 4.0]], ids=str)
def test_default_with_its_other_steps_off_is_truncation(tau):
    data = make_model("I", 200, shape=(4, 3), noise="t:3", rng=0)
    mine = TensorRegressor(1, robust=Adaptive(np.inf, np.inf, tau), solver=TIGHT)
    theirs = TensorRegressor(1, robust=Truncate(tau), solver=TIGHT)
    close(mine.fit(data.X, data.y).coef_, theirs.fit(data.X, data.y).coef_, 1e-9)


@pytest.mark.parametrize("robust", ["auto", "huber", "truncate", "normclip", "catoni"])
def test_one_response_may_be_of_any_size(robust):
    data = make_model("I", 200, shape=(4, 3), noise="t:3", rng=0)
    coefs = []
    for wild in (1e6, 1e15):
        data.y[0] = wild
        coefs.append(TensorRegressor(1, robust=robust).fit(data.X, data.y).coef_)
    close(coefs[1], coefs[0], 1e-3)
    assert relative_error(coefs[1], data.truth) < 0.15


def test_huber_start_and_fit_under_very_heavy_tails_beat_least_squares():
    data = make_model("I", 400, shape=(6, 5), noise="t:1.2", rng=1)
    errors = {
        robust: relative_error(
            TensorRegressor(1, robust=robust).fit(data.X, data.y).coef_, data.truth
        )
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 0.1
    assert errors["auto"] < errors["none"] / 2
