"""The weighted bootstrap against the sandwich, and against its own replicates."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tauten as tt
from tauten.inference.bootstrap import bootstrap


def test_bootstrap_agrees_with_the_sandwich(clean):
    data, model = clean
    plain = model.confidence_intervals(data.X, data.y)
    options = {"method": "bootstrap", "n_boot": 100, "random_state": 0}
    boot = model.confidence_intervals(data.X, data.y, **options)
    ratio = boot.stderr / plain.stderr
    assert abs(np.median(ratio) - 1) < 0.1
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4
    assert 0.8 < boot.intercept.stderr / plain.intercept.stderr < 1.2


def test_percentiles_are_quantiles_of_the_replicates(clean, monkeypatch):
    data, model = clean
    options = {"n_boot": 30, "random_state": 1, "level": 0.8}
    monkeypatch.setattr("tauten.inference.jacobians.CHUNK_SIZE", 100)
    found = model.confidence_intervals(data.X, data.y, method="percentile", **options)
    problem = model._problem(data.X, data.y, model.loss_, None, None)
    points = bootstrap(problem, model._point(problem), n_boot=30, rng=1)
    draws = np.stack([p.full() for p in points])
    np.testing.assert_allclose(found.stderr, draws.std(axis=0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(found.lower, np.quantile(draws, 0.1, axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.upper, np.quantile(draws, 0.9, axis=0), rtol=1e-6)


def test_bootstrap_repeats_with_its_seed(clean):
    data, model = clean
    options = {"method": "bootstrap", "n_boot": 3}
    first, again, other = (
        model.confidence_intervals(data.X, data.y, random_state=seed, **options).stderr
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_median_of_means_is_left_to_the_bootstrap():
    data = tt.datasets.make_model("I", 120, shape=(3, 2, 2), rng=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tt.TensorRegressor(robust="mom").fit(data.X, data.y)
        with pytest.raises(ValueError, match="method='bootstrap'"):
            model.confidence_intervals(data.X, data.y)
        options = {"method": "bootstrap", "n_boot": 5, "random_state": 0}
        found = model.confidence_intervals(data.X, data.y, **options)
    assert (found.stderr > 0).all()
