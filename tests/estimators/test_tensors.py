"""Tensors: full rank is linear, low rank the minimum of the naive formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fits import TIGHT, close, flat, naive_fit, naive_full, vectors
from tauten import TensorRegressor
from tauten.datasets import make_model, simulate, truth
from tauten.robust import Huber


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2)])
def test_full_rank_is_linear_regression_on_the_entries(shape):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, *shape))
    y = X.reshape(150, -1) @ rng.normal(size=math.prod(shape)) + 3 + rng.normal(size=150)
    mine = TensorRegressor(99, robust="none", solver=TIGHT).fit(X, y)
    theirs = LinearRegression().fit(X.reshape(150, -1), y)
    close(mine.coef_, theirs.coef_.reshape(shape))
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize(
    ("x_shape", "y_shape"), [((4,), (3,)), ((4,), (2, 3)), ((3, 2), (2,)), ((3, 2), (2, 3))]
)
def test_full_rank_tensor_responses(x_shape, y_shape):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(150, *x_shape)), 5 + rng.normal(size=(150, *y_shape))
    mine = TensorRegressor(99, robust="none", solver=TIGHT).fit(X, y)
    theirs = LinearRegression().fit(X.reshape(150, -1), y.reshape(150, -1))
    assert mine.predict(X).shape == y.shape
    close(mine.coef_, theirs.coef_.T.reshape(*x_shape, *y_shape))
    close(mine.intercept_, theirs.intercept_.reshape(y_shape))
    close(mine.predict(X), theirs.predict(X.reshape(150, -1)).reshape(y.shape))
    np.testing.assert_allclose(
        mine.score(X, y), r2_score(y.reshape(150, -1), mine.predict(X).reshape(150, -1))
    )


@pytest.mark.parametrize("rank", [1, 2])
def test_vectors_to_vectors_is_reduced_rank_regression(rank):
    """Closed form: project the least-squares fit on the leading directions of fitted values."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 6))
    y = X @ rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5)) + 7 + rng.normal(size=(200, 5))
    mine = TensorRegressor(rank, robust="none", solver=TIGHT).fit(X, y)
    ols = LinearRegression().fit(X, y)
    _, _, vt = np.linalg.svd((X - X.mean(axis=0)) @ ols.coef_.T)
    theirs = ols.coef_.T @ vt[:rank].T @ vt[:rank]
    close(mine.coef_, theirs)
    close(mine.intercept_, y.mean(axis=0) - X.mean(axis=0) @ theirs)


def test_column_response_keeps_its_axis():
    X, eta, rng = vectors()
    y = (eta + rng.normal(size=len(X)))[:, None]
    mine = TensorRegressor(1, robust="none").fit(X, y)
    theirs = LinearRegression().fit(X, y)
    assert mine.coef_.shape == (5, 1)
    assert mine.intercept_.shape == (1,)
    close(mine.coef_, theirs.coef_.T)
    close(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("shape", "rank", "order", "nu"),
    [
        ((5, 4), (1, 1), 2, np.inf),
        ((5, 4), (2, 2), 2, 1.0),
        ((4, 3, 2), (2, 2, 1), 3, np.inf),
        ((4, 3, 2), (2, 1, 2), 2, 1.0),
        ((3, 2, 2, 2), (1, 2, 1, 2), 4, np.inf),
        ((2, 2, 2, 2, 2), (1, 1, 1, 1, 1), 5, 1.0),
        ((2, 2, 2, 2, 2), (1, 1, 1, 1, 1), 3, np.inf),
    ],
)
def test_low_rank_fit_is_the_naive_minimum(shape, rank, order, nu):
    point = truth(shape, rank, reading="random", norm=4.0, rng=5)
    data = simulate(point, 150, covariate_order=order, noise="t:3", rng=6)
    mine = TensorRegressor(rank, robust=Huber(nu), solver=TIGHT).fit(data.X, data.y)
    coef, intercept = naive_fit(data.X, data.y, point, nu=nu)
    assert mine.rank_ == mine.tucker_.rank == rank
    close(mine.coef_, coef, 1e-5)
    np.testing.assert_allclose(mine.intercept_, intercept, atol=1e-4)


def test_low_rank_poisson_is_the_naive_minimum():
    point = truth((4, 3), 1, norm=0.8)
    data = simulate(point, 300, covariate_order=2, loss="poisson", rng=7)

    def deviance(vector):
        eta = data.X.reshape(300, -1) @ naive_full(vector[:-1], (4, 3), (1, 1)).ravel() + vector[-1]
        return np.mean(np.exp(eta) - data.y * eta)

    theirs = minimize(deviance, np.append(flat(point), 0.0), method="BFGS", options={"gtol": 1e-7})
    mine = TensorRegressor(1, loss="poisson", robust="none", solver=TIGHT).fit(data.X, data.y)
    close(mine.coef_, naive_full(theirs.x[:-1], (4, 3), (1, 1)), 1e-4)
    np.testing.assert_allclose(mine.intercept_, theirs.x[-1], atol=1e-4)


@pytest.mark.parametrize(
    ("rank", "expected"), [(1, (1, 1, 1)), (2, (2, 2, 2)), ((1, 2, 2), (1, 2, 2)), (9, (4, 3, 2))]
)
def test_rank_one_for_all_or_one_per_mode(rank, expected):
    data = make_model("I", 100, shape=(4, 3, 2), rng=0)
    model = TensorRegressor(rank, robust="none").fit(data.X, data.y)
    assert model.rank_ == expected
    for k, r in enumerate(expected):  # the tensor itself has these ranks
        unfolded = np.moveaxis(model.coef_, k, 0).reshape(data.X.shape[k + 1], -1)
        assert np.linalg.matrix_rank(unfolded, tol=1e-8) == r
