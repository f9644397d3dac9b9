"""Arrays of all kinds."""

from __future__ import annotations

import numpy as np
import pytest

from fits import NAMES, NO_CONVERGENCE, close
from tauten import TensorClassifier, TensorPCA, TensorRegressor
from tauten.datasets import make_model


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize(
    ("robust", "fit_intercept"),
    [*((name, True) for name in NAMES), ("none", False), ("auto", False)],
)
def test_single_precision_stays(robust, fit_intercept):
    data = make_model("II", 150, shape=(4, 3, 2), rng=0)
    X, y = data.X.astype(np.float32), data.y.astype(np.float32)
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(X, y)
    arrays = [model.coef_, model.intercept_, model.covariate_coef_, model.predict(X)]
    assert {a.dtype for a in [*arrays, *model.tucker_.blocks]} == {np.dtype(np.float32)}
    double = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(data.X, data.y)
    assert double.coef_.dtype == np.float64
    close(model.coef_, double.coef_, 0.02 if robust in {"mom", "rank"} else 1e-3)


def test_single_precision_with_double_extras():
    """X sets the precision; y, covariates, weights and start follow."""
    data = make_model("I", 100, shape=(4, 3), rng=0)
    X, Z = data.X.astype(np.float32), np.random.default_rng(0).normal(size=(100, 2))
    model = TensorRegressor(1, init=data.truth)
    model.fit(X, data.y, covariates=Z, sample_weight=np.ones(100))
    arrays = [model.coef_, model.intercept_, model.covariate_coef_, model.predict(X, Z)]
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}


def test_integers_and_lists():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-5, 6, size=(80, 3, 2)), rng.integers(-9, 9, size=80)
    expected = TensorRegressor(1).fit(X.astype(float), y.astype(float))
    for a, b in [(X, y), (X.tolist(), y.tolist()), (X.astype(np.int8), y.astype(object))]:
        model = TensorRegressor(1).fit(a, b)
        assert model.coef_.dtype == np.float64
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    "arrange",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[::-1].copy()[::-1],
        lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    ],
    ids=["fortran", "strided", "reversed", "samples last"],
)
def test_memory_layout_and_read_only(arrange):
    data = make_model("II", 100, shape=(4, 3, 2), rng=0)
    expected = TensorRegressor(1).fit(data.X, data.y)
    X, y = arrange(data.X), arrange(data.y)
    X.flags.writeable = y.flags.writeable = False
    model = TensorRegressor(1).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), expected.predict(data.X), rtol=1e-9)


def test_fit_leaves_its_input_alone():
    data = make_model("I", 100, shape=(4, 3), noise="t:2", rng=0)
    X, y = data.X.copy(), data.y.copy()
    Z, weight = np.ones((100, 1)), np.full(100, 2.0)
    TensorRegressor(1).fit(X, y, covariates=Z, sample_weight=weight).predict(X, Z)
    TensorClassifier(1, robust="none").fit(X, y > 0)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    assert (Z == 1).all()
    assert (weight == 2).all()
    Y = make_model("IV", 5, shape=(4, 3), rng=0).y
    Y[0, 0, 0] = np.nan
    before = Y.copy()
    TensorPCA(1, replicates=True).fit(Y)
    np.testing.assert_array_equal(Y, before)
