"""Intervals as the estimators give them, and how often they cover."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tauten as tt
from tauten.designs import Covariate
from tauten.inference import intervals

PARTS = ("estimate", "stderr", "lower", "upper")


@pytest.mark.parametrize("scale", [1e-3, 1e4])
@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_errors_scale_with_the_responses(scale, method):
    data = tt.datasets.make_model("I", 120, shape=(4, 3, 2), noise="t:2", rng=8)
    options = {"method": method, "n_boot": 10, "random_state": 0}
    found = []
    for y in (data.y, scale * data.y):
        model = tt.TensorRegressor(solver="newton:tol=1e-9").fit(data.X, y)
        found.append(model.confidence_intervals(data.X, y, **options))
    for name in PARTS:
        small, large = (getattr(f, name) for f in found)
        np.testing.assert_allclose(large, scale * small, rtol=1e-3, atol=1e-6 * scale)


def test_intervals_are_of_the_model(clean):
    data, model = clean
    found = model.confidence_intervals(data.X, data.y, level=0.9)
    np.testing.assert_allclose(found.estimate, model.coef_)
    np.testing.assert_allclose(found.intercept.estimate, model.intercept_)
    assert found.covariate_coef is None
    assert (found.level, found.method) == (0.9, "sandwich")
    narrow = model.confidence_intervals(data.X, data.y, level=0.5)
    assert (found.upper - found.lower > narrow.upper - narrow.lower).all()


def test_centre_does_not_matter(clean):
    """The intercept is at X = 0, wherever the fit was centred."""
    data, model = clean
    problem = model._problem(data.X, data.y, model.loss_, None, None)
    found = []
    for center in (problem.design.center, problem.design.center + 1.0):
        moved = replace(problem, design=Covariate(center))
        found.append(intervals(moved, model._point(moved)))
    np.testing.assert_allclose(found[0].stderr, found[1].stderr, rtol=1e-4)
    pair = [f.intercept.stderr for f in found]
    np.testing.assert_allclose(*pair, rtol=1e-4)


def test_single_precision_agrees_with_double(clean):
    data, model = clean
    X, y = data.X.astype(np.float32), data.y.astype(np.float32)
    single = tt.TensorRegressor(rank=(2, 2, 2), robust="none").fit(X, y)
    found = single.confidence_intervals(X, y)
    expected = model.confidence_intervals(data.X, data.y)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-3)


def test_tensor_responses_and_covariates_have_parts_of_their_shapes():
    rng = np.random.default_rng(10)
    data = tt.datasets.make_model("II", 100, shape=(4, 3, 5), rng=rng)
    Z = rng.normal(size=(100, 2))
    model = tt.TensorRegressor().fit(data.X, data.y, covariates=Z)
    for method in ("sandwich", "percentile"):
        found = model.confidence_intervals(
            data.X, data.y, covariates=Z, method=method, n_boot=5, random_state=0
        )
        parts = (found, found.intercept, found.covariate_coef)
        for part, shape in zip(parts, [(4, 3, 5), (5,), (2, 5)], strict=True):
            assert {getattr(part, name).shape for name in PARTS} == {shape}


def test_missing_entries_widen_the_intervals():
    data = tt.datasets.make_model("IV", 40, shape=(4, 3, 3), rng=11)
    Y = data.y.copy()
    Y[np.random.default_rng(0).random(Y.shape) < 0.4] = np.nan
    full, part = (tt.TensorPCA(replicates=True).fit(y).confidence_intervals(y) for y in (data.y, Y))
    assert 1.1 < np.median(part.stderr / full.stderr) < 1.6


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"level": 1.0}, ValueError, "level must be"),
        ({"level": 0}, ValueError, "level must be"),
        ({"level": "high"}, ValueError, "level must be"),
        ({"method": "magic"}, ValueError, "method must be one of sandwich"),
        ({"n_boot": 1}, ValueError, "n_boot must be at least 2"),
        ({"n_boot": 2.5}, TypeError, "n_boot must be an integer"),
        ({"covariates": np.ones((300, 1))}, ValueError, "covariates must have as many columns"),
        ({"sample_weight": np.ones(5)}, ValueError, "sample_weight"),
    ],
)
def test_bad_options(clean, options, error, match):
    data, model = clean
    with pytest.raises(error, match=match):
        model.confidence_intervals(data.X, data.y, **options)


def test_bad_data(clean):
    data, model = clean
    with pytest.raises(ValueError, match="X must have samples of shape"):
        model.confidence_intervals(data.X[:, :3], data.y)
    with pytest.raises(ValueError, match="same number of samples"):
        model.confidence_intervals(data.X, data.y[:-1])
    with pytest.raises(ValueError, match="data that the model was fitted to"):
        model.confidence_intervals(data.X[:-1], data.y[:-1])
    with pytest.raises(ValueError, match="data that the model was fitted to"):
        model.confidence_intervals(data.X, np.column_stack([data.y, data.y]))


def test_other_data_of_the_same_shape_are_noticed(clean):
    data, model = clean
    with pytest.warns(ConvergenceWarning, match="gradient is not zero"):
        model.confidence_intervals(data.X, data.y[::-1])


def test_unknown_labels():
    data = tt.datasets.make_model("III", 100, shape=(3, 2, 2), rng=0)
    model = tt.TensorClassifier().fit(data.X, data.y)
    with pytest.raises(ValueError, match="classes of fit"):
        model.confidence_intervals(data.X, data.y + 1)


def test_a_fit_comes_first(heteroscedastic):
    X, y = heteroscedastic(np.random.default_rng(0))
    for model in (tt.TensorRegressor(), tt.TensorClassifier()):
        with pytest.raises(NotFittedError):
            model.confidence_intervals(X, y)
    with pytest.raises(NotFittedError):
        tt.TensorPCA(replicates=True).confidence_intervals(X)


def test_one_tensor_tells_no_error():
    Y = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(ValueError, match="replicates=True"):
        tt.TensorPCA().fit(Y).confidence_intervals(Y)


def test_too_few_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 6)), rng.normal(size=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tt.TensorRegressor(robust="none").fit(X, y)
    with pytest.raises(ValueError, match="more observations than free parameters"):
        model.confidence_intervals(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
@pytest.mark.parametrize("model", ["I", "II"])
def test_coverage(model, noise, record_property):
    """Share of the entries of A* inside their 95% intervals, over 100 samples of 500."""
    shares = []
    for seed in range(100):
        data = tt.datasets.make_model(model, 500, noise=noise, rng=seed)
        fit = tt.TensorRegressor(rank=1).fit(data.X, data.y)
        found, truth = fit.confidence_intervals(data.X, data.y), data.truth.full()
        shares.append(np.mean((found.lower < truth) & (truth < found.upper)))
    coverage, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(len(shares))
    record_property("coverage", f"{coverage:.3f} ± {error:.3f}")
    print(f"Model {model}, {noise}: coverage {coverage:.3f}, standard error {error:.3f}")
    assert 0.92 <= coverage <= 0.97
