"""Sample weights against repeated and dropped rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from fits import TIGHT, close, vectors
from tauten import TensorRegressor
from tauten.data import Rows
from tauten.estimators.glm import _center, _median
from tauten.robust import Catoni, Huber, NormClip, Truncate


def weighted(seed=0):
    X, eta, rng = vectors(120, seed=seed)
    y = eta + rng.standard_t(3, size=len(X))
    return X, y, rng.integers(0, 4, size=len(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weighted_least_squares(fit_intercept):
    X, y, weight = weighted()
    weight = weight + 0.37
    mine = TensorRegressor(1, robust="none", fit_intercept=fit_intercept)
    mine.fit(X, y, sample_weight=weight)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(
        mine.score(X, y, sample_weight=weight), theirs.score(X, y, sample_weight=weight), rtol=1e-8
    )


FIXED = ["none", Huber(1.0), Truncate(1.5), NormClip(2.0), Catoni(3.0)]  # thresholds as given


@pytest.mark.parametrize(
    ("robust", "fit_intercept"), [*((r, True) for r in FIXED), (Truncate(1.5), False)], ids=str
)
def test_integer_weights_are_repeated_rows(robust, fit_intercept):
    X, y, weight = weighted()
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept, solver=TIGHT)
    mine = clone(model).fit(X, y, sample_weight=weight)
    theirs = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("robust", [*FIXED, "auto", "huber", "truncate"], ids=str)
def test_zero_weights_are_dropped_rows(robust):
    X, y, weight = weighted()
    kept = weight > 0
    X[~kept] *= 50  # would matter a lot
    y[~kept] -= 1000
    model = TensorRegressor(1, robust=robust, solver=TIGHT)
    mine = clone(model).fit(X, y, sample_weight=kept.astype(float))
    theirs = clone(model).fit(X[kept], y[kept])
    tol = 1e-6 if robust in FIXED else 1e-3  # chosen thresholds depend a little on the start
    close(mine.coef_, theirs.coef_, tol)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=tol)


def test_uneven_weights_do_not_break_the_start():
    """Where large weights and large covariates meet, a start that ignored one would explode."""
    X, eta, rng = vectors(300)
    scale = np.exp(rng.normal(size=300) * 2)
    X, y = X * scale[:, None], (eta - 2) * scale + rng.normal(size=300)
    mine = TensorRegressor(1, robust="none").fit(X, y, sample_weight=scale**2)
    close(mine.coef_, LinearRegression().fit(X, y, sample_weight=scale**2).coef_)


@pytest.mark.parametrize(("shape", "size"), [((4, 3), 255), ((120, 100), 175), ((250, 200), 63)])
def test_the_center_comes_of_fewer_samples_the_larger_they_are(shape, size, rng):
    """Of two million numbers, about, but of 63 samples at least; evenly spread."""
    X = rng.normal(size=(300, *shape))
    some = X[np.linspace(0, 299, size).astype(int)]
    np.testing.assert_array_equal(_center(Rows(X, X[:, 0, 0])), np.median(some, axis=0))


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_the_center_is_the_median(n, rng):
    rows = rng.normal(size=(n, 3))
    np.testing.assert_array_equal(_median(rows, None), np.median(rows, axis=0))
    np.testing.assert_array_equal(_median(rows, np.ones(n)), np.median(rows, axis=0))
