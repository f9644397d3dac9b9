"""Vectors: scikit-learn and scipy have the answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor

from fits import TIGHT, close, vectors
from tauten import TensorRegressor
from tauten.robust import Huber


@pytest.mark.parametrize("rank", [1, 3, (5,)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_vector_least_squares_is_linear_regression(rank, fit_intercept):
    X, eta, rng = vectors()
    y = eta + rng.normal(size=len(X))
    mine = TensorRegressor(rank, robust="none", fit_intercept=fit_intercept).fit(X, y)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.score(X, y), theirs.score(X, y), rtol=1e-9)


def test_vector_poisson_is_poisson_regression():
    X, eta, rng = vectors()
    y = rng.poisson(np.exp(0.4 * eta)).astype(float)
    mine = TensorRegressor(1, loss="poisson", robust="none", solver=TIGHT).fit(X, y)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=5000).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))


def test_vector_gamma_is_gamma_regression():
    X, eta, rng = vectors()
    y = rng.exponential(np.exp(0.4 * eta))
    mine = TensorRegressor(1, loss="gamma", robust="none", solver=TIGHT).fit(X, y)
    theirs = GammaRegressor(alpha=0, tol=1e-10, max_iter=5000).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("nu", [0.3, 1.345, 20.0])
@pytest.mark.parametrize("how", ["robustifier", "loss"])
def test_vector_huber_is_scipy_least_squares(nu, how):
    X, eta, rng = vectors()
    y = eta + rng.standard_t(1.5, size=len(X))
    options = {"robust": Huber(nu)} if how == "robustifier" else {"robust": "none"}
    loss = "squared" if how == "robustifier" else f"huber:nu={nu}"
    mine = TensorRegressor(1, loss=loss, solver=TIGHT, **options).fit(X, y)
    theirs = least_squares(
        lambda b: X @ b[:-1] + b[-1] - y,
        np.zeros(X.shape[1] + 1),
        loss="huber",
        f_scale=nu,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    ).x
    close(mine.coef_, theirs[:-1])
    np.testing.assert_allclose(mine.intercept_, theirs[-1], atol=1e-6)


def test_vector_covariates_are_more_features():
    X, eta, rng = vectors()
    Z = rng.normal(size=(len(X), 3))
    y = eta + Z @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))
    mine = TensorRegressor(1, robust="none").fit(X, y, covariates=Z)
    theirs = LinearRegression().fit(np.hstack([X, Z]), y)
    close(mine.coef_, theirs.coef_[:5])
    close(mine.covariate_coef_, theirs.coef_[5:])
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X, Z), theirs.predict(np.hstack([X, Z])))
    np.testing.assert_allclose(
        mine.score(X, y, covariates=Z), theirs.score(np.hstack([X, Z]), y), rtol=1e-9
    )


def test_covariates_with_tensors_and_tensor_responses():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(150, 3, 2)), rng.normal(size=(150, 2))
    y = rng.normal(size=(150, 4))
    mine = TensorRegressor(6, robust="none").fit(X, y, covariates=Z)
    features = np.hstack([X.reshape(150, -1), Z])
    theirs = LinearRegression().fit(features, y)
    assert mine.covariate_coef_.shape == (2, 4)
    close(mine.predict(X, Z), theirs.predict(features))
    close(mine.covariate_coef_, theirs.coef_[:, 6:].T)
