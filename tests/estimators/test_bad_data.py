"""Bad data are refused in words that say what to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning

from broken import BAD_DATA, LABELS, MODELS, NAMES, WRONG, N, X, Y, changed, fit
from tauten import TensorClassifier, TensorRegressor


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", BAD_DATA)
def test_data(model, kind):
    data, message = BAD_DATA[kind]
    if model == "pca" and kind in {"nan", "nones"}:
        pytest.skip("nan is a missing entry here")
    with pytest.raises(WRONG, match=rf"(?s)^{NAMES[model]} must .*({message})"):
        fit(model, data)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}])
def test_one_entry_of_a_sample_that_no_centre_is_taken_from(value, options):
    """X is looked at as its norms are taken, around a centre of some of the samples."""
    many = np.tile(X, (20, 1, 1))
    many[-2, 1, 1] = value
    with pytest.raises(ValueError, match=r"^X must be an array of numbers: .*(NaN|infinity)"):
        TensorRegressor(1, **options).fit(many, np.tile(Y, 20))


def test_infinities_of_both_signs_in_the_middle_of_a_column():
    """Their median is no number, which is no reason for a warning."""
    halves = X[:40].copy()
    halves[:20, 1, 1], halves[20:, 1, 1] = np.inf, -np.inf
    with pytest.raises(ValueError, match=r"^X must be an array of numbers: .*infinity"):
        TensorRegressor(1).fit(halves, Y[:40])


def test_covariates_in_memory_with_responses_on_disk(tmp_path):
    """Their norms are not taken beforehand, and there is no file to look into."""
    y = np.tile(Y, (3, 1)).T.copy()
    np.save(tmp_path / "y.npy", y)
    stored = np.load(tmp_path / "y.npy", mmap_mode="r")
    model = TensorRegressor(1, memory=2000)
    with pytest.raises(ValueError, match=r"^X must be an array of numbers: .*NaN"):
        model.fit(changed(X, np.nan), stored)
    assert model.fit(X, stored).coef_.shape == (*X.shape[1:], 3)


def test_huge_entries_whose_squares_are_not_numbers_are_no_error():
    wild = X.copy()
    wild[7, 0, 0] = 1e200
    assert np.isfinite(TensorRegressor(1).fit(wild, Y).coef_).all()


@pytest.mark.parametrize("model", ["regressor", "classifier"])
def test_no_samples(model):
    y = (Y if model == "regressor" else LABELS)[:0]
    with pytest.raises(ValueError, match=r"^[Xy] must hold at least one sample"):
        fit(model, X[:0], y)
    with pytest.raises(ValueError, match=r"^Y must hold at least one sample"):
        fit("pca", X[:0])
    with pytest.raises(ValueError, match=r"^Y must hold at least one sample"):
        fit("pca", X[:0], replicates=True)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
def test_samples_must_have_an_axis(model):
    with pytest.raises(ValueError, match=r"^X must have at least 2 axes; got shape \(60,\)"):
        fit(model, X[:, 0, 0])
    with pytest.raises(ValueError, match=r"^Y must have at least 2 axes; got shape \(60,\)"):
        fit("pca", X[:, 0, 0], replicates=True)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
def test_lengths_must_agree(model):
    with pytest.raises(ValueError, match=r"^X and y must have the same number .* 50 and 60"):
        fit(model, X[:50])


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("nan", changed(Y, np.nan), "NaN"),
        ("inf", changed(Y, np.inf), "infinity"),
        ("none", None, "None"),
        ("complex", Y + 1j, "[Cc]omplex"),
        ("words", np.full(N, "a"), "numbers"),
        ("objects", np.full(N, object()), "numbers"),
        ("sparse", scipy.sparse.csr_array(Y[:, None]), "[Ss]parse"),
        ("a number", 1.0, r"axes; got shape \(\)"),
        ("no entries", np.zeros((N, 0)), "one entry per sample"),
    ],
)
def test_responses(kind, y, message):
    with pytest.raises(WRONG, match=rf"(?s)^y must .*({message})"):
        TensorRegressor(1).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("nan", changed(LABELS, np.nan), "y.*NaN"),
        ("inf", changed(LABELS, np.inf), "y.*infinity"),
        ("none", None, "y .*1d"),
        ("complex", LABELS + 1j, "[Cc]omplex"),
        ("objects", np.full(N, object()), "label type"),
        ("mixed", np.array(["a", 1] * (N // 2), dtype=object), "y must hold labels of one kind"),
        ("sparse", scipy.sparse.csr_array(LABELS[:, None]), "y"),
        ("two columns", np.column_stack([LABELS, LABELS]), r"y .*1d.*\(60, 2\)"),
        ("numbers", Y, "label type: continuous"),
        ("one class", np.ones(N), r"y must hold at least two classes; got one class, 1"),
        ("one word", np.full(N, "cat"), r"y must hold at least two classes; got one class, 'cat'"),
    ],
)
def test_labels(kind, y, message):
    with pytest.raises(WRONG, match=rf"(?s){message}"):
        TensorClassifier(1, robust="none").fit(X, y)


def test_column_of_labels_is_warned_of():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        TensorClassifier(1, robust="none").fit(X, LABELS[:, None])


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        ("poisson", Y, "counts, or any numbers ≥ 0 for the 'poisson' loss; got -"),
        ("gamma", np.abs(np.round(Y)), "numbers > 0 for the 'gamma' loss; got 0"),
        ("gamma", Y, "numbers > 0 for the 'gamma' loss; got -"),
        ("poisson", np.column_stack([LABELS, -1.0 - LABELS]), "counts, or any numbers ≥ 0"),
    ],
)
def test_responses_outside_the_domain_of_the_loss(loss, y, words):
    with pytest.raises(ValueError, match=f"^y must hold {words}"):
        TensorRegressor(1, loss=loss).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        TensorRegressor(1),
        TensorClassifier(1, robust="none"),
        TensorClassifier(1, robust="none", class_weight="balanced"),
    ],
    ids=["regressor", "classifier", "balanced"],
)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(N), "sample_weight"),
        (np.r_[-1.0, np.ones(N - 1)], "sample_weight"),
        (np.zeros(N), "[Ss]ample.weight.*non-zero"),
        (np.ones(N - 1), "sample_weight"),
        (np.ones((N, 2)), "[Ss]ample.weight"),
        (changed(np.ones(N), np.nan), "sample_weight.*NaN"),
        (changed(np.ones(N), np.inf), "sample_weight.*infinity"),
    ],
    ids=["negative", "one negative", "zero", "short", "matrix", "nan", "inf"],
)
def test_sample_weights(model, weight, message):
    y = Y if isinstance(model, TensorRegressor) else LABELS
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("class_weight", ["even", 3, {0: -1.0, 1: 1.0}], ids=str)
def test_class_weights(class_weight):
    with pytest.raises(WRONG, match=r"class_weight|[Nn]egative"):
        TensorClassifier(1, robust="none", class_weight=class_weight).fit(X, LABELS)


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (np.ones((50, 2)), "X and covariates must have the same number of samples .* 60 and 50"),
        (np.ones(N), "covariates must have at least 2 axes"),
        (np.ones((N, 2, 2)), r"covariates must have shape \(n, c\).*\(60, 2, 2\)"),
        (np.zeros((N, 0)), "covariates must hold at least one"),
        (np.full((N, 1), np.nan), "covariates must .*NaN"),
        ("a", "covariates must be an array of numbers"),
        (scipy.sparse.csr_array(np.ones((N, 1))), "covariates must .*[Ss]parse"),
    ],
    ids=["short", "vector", "tensor", "no columns", "nan", "word", "sparse"],
)
def test_covariates(covariates, message):
    for model, y in ((TensorRegressor(1), Y), (TensorClassifier(1, robust="none"), LABELS)):
        with pytest.raises(WRONG, match=f"(?s)^{message}"):
            model.fit(X, y, covariates=covariates)


@pytest.mark.parametrize("value", [0.0, 1.0, 7.0])
def test_constant_covariates_only_share_the_intercept(value):
    plain = TensorRegressor(1, robust="none").fit(X, Y)
    Z = np.full((N, 2), value)
    fitted = TensorRegressor(1, robust="none").fit(X, Y, covariates=Z)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(fitted.predict(X, Z), plain.predict(X), atol=1e-4)
