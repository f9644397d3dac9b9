"""Data that are degenerate, but not wrong: a finite fit, or a word."""

from __future__ import annotations

import numpy as np
import pytest

from broken import LABELS, MODELS, NOISE, SHAPE, N, X, Y, finite_or_said, fit
from tauten import TensorClassifier, TensorPCA, TensorRegressor


@pytest.mark.parametrize("robust", ["none", "auto", "truncate", "huber", "normclip", "shrink"])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_covariate_tensors(robust, rank, value):
    """Nothing to regress on: the intercept is all there is, at a centre of y."""
    fitted = finite_or_said("regressor", np.full((N, *SHAPE), value), robust=robust, rank=rank)
    predicted = fitted.predict(np.full((2, *SHAPE), value))
    assert Y.min() < predicted[0] < Y.max()
    np.testing.assert_allclose(predicted[0], np.mean(Y), atol=1.0)


@pytest.mark.parametrize("robust", ["none", "auto", "truncate"])
def test_constant_covariate_tensors_of_classes(robust):
    fitted = finite_or_said("classifier", np.ones((N, *SHAPE)), robust=robust)
    np.testing.assert_allclose(fitted.predict_proba(X[:1] * 0 + 1)[0, 1], LABELS.mean(), atol=0.1)


def test_mostly_zero_covariates():
    """More than half of the samples are nothing but zeros: no scale to be read off the median."""
    sparse = X * (np.arange(N) % 3 == 0)[:, None, None]
    y = sparse.sum(axis=(1, 2)) + 0.1 * NOISE[2]
    fitted = finite_or_said("regressor", sparse, y)
    np.testing.assert_allclose(fitted.coef_, np.ones(SHAPE), atol=0.2)


@pytest.mark.parametrize(
    "robust", ["none", "auto", "truncate", "huber", "normclip", "shrink", "mom"]
)
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_responses(robust, rank, value):
    fitted = finite_or_said("regressor", X, np.full(N, value), robust=robust, rank=rank)
    np.testing.assert_allclose(fitted.coef_, 0, atol=1e-6)
    np.testing.assert_allclose(fitted.predict(X), value, atol=1e-6)


def test_constant_counts():
    fitted = finite_or_said("regressor", X, np.full(N, 4.0), loss="poisson", robust="none")
    np.testing.assert_allclose(fitted.predict(X), 4.0, rtol=1e-3)
    fitted = finite_or_said("regressor", X, np.zeros(N), loss="poisson", robust="none")
    assert (fitted.predict(X) < 0.1).all()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("robust", ["none", "auto"])
def test_few_samples(n, robust):
    """Fewer samples than coefficients: words, or a fit that is no worse than zero."""
    fitted = finite_or_said("regressor", X[:n], Y[:n], robust=robust)
    assert (
        not fitted.result_.converged
        or np.sum((fitted.predict(X[:n]) - Y[:n]) ** 2) <= np.sum(Y[:n] ** 2) + 1e-6
    )


@pytest.mark.parametrize(
    ("model", "data", "y"),
    [
        ("regressor", X, np.ones(N)),
        ("regressor", np.ones((N, *SHAPE)), Y),
        ("regressor", X[:1], Y[:1]),
        ("classifier", np.ones((N, *SHAPE)), LABELS),
        ("pca", np.ones(SHAPE), None),
        ("pca", np.zeros(SHAPE), None),
    ],
    ids=["constant y", "constant X", "one sample", "constant X, classes", "ones", "zeros"],
)
def test_nothing_to_choose_a_rank_by(model, data, y):
    fitted = finite_or_said(model, data, y, rank="auto")
    assert fitted.rank_ == (1, 1)


def test_too_few_samples_for_blocks():
    with pytest.raises(ValueError, match=r"n_blocks must be .* number of samples, 3"):
        TensorRegressor(1, robust="mom").fit(X[:3], Y[:3])


def test_two_samples_of_two_classes():
    fitted = finite_or_said("classifier", X[:2], np.array([0, 1]))
    np.testing.assert_array_equal(fitted.predict(X[:2]), [0, 1])


@pytest.mark.parametrize("robust", ["none", "auto"])
def test_separable_classes_stop_in_words(robust):
    """The likelihood has no maximum: the fit must stop at finite numbers that separate."""
    y = (X[:, 0, 0] > 0).astype(int)
    fitted = finite_or_said("classifier", X, y, robust=robust, reduce_bias=False)
    assert fitted.score(X, y) > 0.9


def test_a_constant_entry_and_a_copied_entry():
    data = X.copy()
    data[:, 0, 0] = 5.0
    data[:, 1, 1] = data[:, 2, 2]
    fitted = finite_or_said("regressor", data, rank=2, robust="none")
    full = np.column_stack([data.reshape(N, -1), np.ones(N)])
    best = np.sum((full @ np.linalg.lstsq(full, Y, rcond=None)[0] - Y) ** 2)
    assert np.sum((fitted.predict(data) - Y) ** 2) < 1.5 * best + 1


def test_all_entries_missing():
    with pytest.raises(ValueError, match=r"^Y must hold at least one observed entry"):
        TensorPCA(1).fit(np.full(SHAPE, np.nan))
    with pytest.raises(ValueError, match=r"^Y must hold at least one observed entry"):
        TensorPCA(1, replicates=True).fit(np.full((5, *SHAPE), np.nan))


@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("replicates", [True, False])
@pytest.mark.parametrize("robust", ["none", "auto", "truncate"])
def test_constant_tensors(value, rank, replicates, robust):
    data = np.full((5, *SHAPE) if replicates else (5, 4, 3), value)
    fitted = finite_or_said("pca", data, rank=rank, replicates=replicates, robust=robust)
    np.testing.assert_allclose(fitted.low_rank_, value, atol=1e-8)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_few_replicates(copies):
    fitted = finite_or_said("pca", 10 + X[:copies], replicates=True)
    np.testing.assert_allclose(fitted.low_rank_, 10, atol=3)


def test_a_replicate_without_entries_is_as_good_as_gone():
    data = 10 + X[:8]
    with_hole = np.concatenate([data, np.full((1, *SHAPE), np.nan)])
    fitted = finite_or_said("pca", with_hole, replicates=True)
    expected = finite_or_said("pca", data, replicates=True)
    np.testing.assert_allclose(fitted.low_rank_, expected.low_rank_, rtol=1e-3)


@pytest.mark.parametrize("robust", ["none", "auto"])
def test_a_row_without_entries_does_not_spoil_the_others(robust):
    rng = np.random.default_rng(2)
    data = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0)) + 0.01 * rng.normal(size=(9, 6, 5))
    complete = finite_or_said("pca", data[:, 1:], replicates=True, robust=robust)
    data[:, 0] = np.nan
    fitted = finite_or_said("pca", data, replicates=True, robust=robust)
    np.testing.assert_allclose(fitted.low_rank_[1:], complete.low_rank_, rtol=0.01)


def test_one_entry_seen():
    data = np.full(SHAPE, np.nan)
    data[1, 2] = 3.0
    fitted = finite_or_said("pca", data, robust="none")
    np.testing.assert_allclose(fitted.low_rank_[1, 2], 3.0, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("model", MODELS)
def test_very_small_and_very_large_numbers(model, scale):
    """Squares of these still are numbers; the answer scales along."""
    if model == "pca":
        one, other = (fit(model, c * X[:6], replicates=True, robust="none") for c in (1, scale))
        np.testing.assert_allclose(other.low_rank_ / scale, one.low_rank_, rtol=1e-3, atol=1e-6)
        return
    one, other = (finite_or_said(model, c * X, robust="none") for c in (1, scale))
    np.testing.assert_allclose(other.coef_ * scale, one.coef_, rtol=1e-3, atol=1e-6)


def test_all_the_weight_on_one_sample_asks_for_no_folds(rng):
    """A ridge is chosen by leaving samples out: of one there is none to choose."""
    weight = np.array([0.0, 0.0, 1.0])
    model = TensorClassifier().fit(rng.normal(size=(3, 2)), [0, 1, 1], sample_weight=weight)
    assert model.ridge_ == 0
    assert np.isfinite(model.coef_).all()
