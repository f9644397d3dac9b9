"""How good the estimates are, over many data sets: the promises of the default robustifier."""

from __future__ import annotations

import numpy as np
import pytest

from tauten import TensorClassifier, TensorPCA, TensorRegressor
from tauten.datasets import make_model
from tauten.metrics import frobenius_error

# Least squares under very heavy tails need not settle; its estimate is compared all the same.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SEEDS = range(20)
SMALL = {"shape": (6, 5, 4), "n": 300}


def squared_errors(model, estimator, robust, *, n=500, **options):
    """Draw one data set per seed; return ``‖Â - A*‖²`` for each."""
    errors = []
    for seed in SEEDS:
        data = make_model(model, n, rng=seed, **options)
        fitted = estimator(rank=1, robust=robust)
        if model == "IV":
            fitted.set_params(replicates=True).fit(data.y)
        else:
            fitted.fit(data.X, data.y)
        errors.append(frobenius_error(fitted.coef_, data.truth, squared=True))
    return np.array(errors)


def compare(model, estimator=TensorRegressor, **options):
    """Return how many times larger plain errors are in the geometric mean, and a sentence."""
    auto, none = (squared_errors(model, estimator, r, **options) for r in ("auto", "none"))
    gain = float(np.exp(np.mean(np.log(none) - np.log(auto))))
    low, high = np.quantile(none / auto, [0.05, 0.95])
    sentence = (
        f"none / auto: geometric mean {gain:.3g}, 5% to 95% of the seeds {low:.3g} to {high:.3g}; "
        f"auto {np.exp(np.mean(np.log(auto))):.3g} ({auto.min():.3g} to {auto.max():.3g}), "
        f"none {np.exp(np.mean(np.log(none))):.3g} ({none.min():.3g} to {none.max():.3g})"
    )
    return gain, sentence


@pytest.mark.parametrize("model", ["I", "II"])
def test_heavy_tailed_noise(model):
    gain, sentence = compare(model, noise="t:1.2")
    assert gain > 20, sentence


@pytest.mark.parametrize("model", ["I", "II"])
def test_gaussian_noise(model):
    gain, sentence = compare(model, noise="normal")
    assert gain > 1 / 1.25, sentence


@pytest.mark.parametrize("model", ["I", "II"])
def test_bad_leverage(model):
    gain, sentence = compare(model, contamination=0.05, **SMALL)
    assert gain > 20, sentence


@pytest.mark.parametrize("model", ["I", "II"])
def test_heavy_tailed_covariates(model):
    """True responses at large covariates are good news: little may be lost."""
    gain, sentence = compare(model, covariates="t:2.1", **SMALL)
    assert gain > 1 / 1.5, sentence


def test_classes():
    gain, sentence = compare("III", TensorClassifier, **SMALL)
    assert gain > 1 / 1.5, sentence


def test_pca_under_heavy_tails():
    gain, sentence = compare("IV", TensorPCA, noise="t:1.2", **SMALL)
    assert gain > 20, sentence


def test_pca_under_gaussian_noise():
    gain, sentence = compare("IV", TensorPCA, noise="normal", **SMALL)
    assert gain > 1 / 1.25, sentence
