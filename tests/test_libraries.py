"""Estimators on arrays of other libraries: results stay in the user's."""

import numpy as np
import pytest

import tauten as tt
from tauten.robust import Truncate

pytestmark = pytest.mark.parametrize("make", ["torch", "strict"], indirect=True)


def is_like(found, given):
    return type(found) is type(given) and found.dtype == given.dtype


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 200, shape=(5, 4, 3), noise="t:2", rng=0)


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 1},
        {"rank": 1, "robust": "truncate", "fit_intercept": False},
        pytest.param(
            {"rank": 1, "robust": Truncate(tau="cv"), "solver": "newton:n_iter=60"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"rank": "auto", "robust": "huber"}, marks=pytest.mark.slow),
        {"rank": 2, "init": "spectral", "solver": "gd:n_iter=5"},
        {"rank": 1, "solver": "anderson"},
        {"rank": 1, "init": "nuclear"},
        {"rank": 2, "init": "projected"},
    ],
)
def test_regression(options, make, data):
    X, y = make(data.X), make(data.y)
    there = tt.TensorRegressor(**options).fit(X, y)
    here = tt.TensorRegressor(**options).fit(data.X, data.y)
    for name in ("coef_", "intercept_", "covariate_coef_"):
        assert is_like(getattr(there, name), X), name
    np.testing.assert_allclose(np.asarray(there.coef_), here.coef_, atol=1e-7)
    predicted = there.predict(X)
    assert is_like(predicted, X)
    np.testing.assert_allclose(np.asarray(predicted), here.predict(data.X), atol=1e-6)
    assert there.score(X, y) == pytest.approx(here.score(data.X, data.y), abs=1e-6)


def test_where_x_is_large(make, data, monkeypatch):
    """Tensors of Newton steps come with the sweep."""
    monkeypatch.setattr("tauten.data.base.LARGE", 0)
    test_regression({"rank": 2, "init": "iht"}, make, data)


def test_covariates_and_weights(make, data, rng):
    Z, w = rng.normal(size=(200, 2)), rng.uniform(size=200)
    there = tt.TensorRegressor(rank=1).fit(
        make(data.X), data.y, covariates=make(Z), sample_weight=make(w)
    )
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y, covariates=Z, sample_weight=w)
    assert is_like(there.covariate_coef_, make(Z))
    np.testing.assert_allclose(np.asarray(there.covariate_coef_), here.covariate_coef_, atol=1e-7)


def test_a_model_predicts_in_any_library(make, data):
    model = tt.TensorRegressor(rank=1).fit(make(data.X), make(data.y))
    assert isinstance(model.predict(data.X), np.ndarray)
    other = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    assert is_like(other.predict(make(data.X)), make(data.X))


def test_classes(make):
    data = tt.datasets.make_model("III", 200, shape=(5, 4, 3), rng=0)
    there = tt.TensorClassifier(rank=1).fit(make(data.X), make(data.y))
    here = tt.TensorClassifier(rank=1).fit(data.X, data.y)
    assert is_like(there.coef_, make(data.X))
    np.testing.assert_allclose(np.asarray(there.coef_), here.coef_, atol=1e-6)
    assert is_like(there.predict_proba(make(data.X)), make(data.X))
    np.testing.assert_array_equal(there.predict(make(data.X)), here.predict(data.X))


def test_replicates(make):
    Y = tt.datasets.make_model("IV", 30, shape=(5, 4, 3), noise="t:2", rng=0).y
    there = tt.TensorPCA(rank=1, replicates=True).fit(make(Y))
    here = tt.TensorPCA(rank=1, replicates=True).fit(Y)
    assert is_like(there.low_rank_, make(Y))
    np.testing.assert_allclose(np.asarray(there.low_rank_), here.low_rank_, atol=1e-7)
    assert is_like(there.transform(make(Y)), make(Y))


@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_intervals_are_numpy(method, make, data):
    options = {"method": method, "n_boot": 3, "random_state": 0}
    there = tt.TensorRegressor(rank=1).fit(make(data.X), make(data.y))
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    mine = there.confidence_intervals(make(data.X), make(data.y), **options)
    theirs = here.confidence_intervals(data.X, data.y, **options)
    np.testing.assert_allclose(mine.stderr, theirs.stderr, rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(bad, make, data):
    data.X[3, 0, 0, 0] = bad
    with pytest.raises(ValueError, match="X must be an array of numbers: it contains NaN or inf"):
        tt.TensorRegressor(rank=1).fit(make(data.X), make(data.y))


def test_complex_numbers_are_refused(make, data):
    with pytest.raises(ValueError, match="X must be an array of numbers; got dtype"):
        tt.TensorRegressor(rank=1).fit(make(data.X + 0j), make(data.y))
