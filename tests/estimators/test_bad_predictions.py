"""Predictions before a fit, or of other data, are refused in words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from broken import BAD_DATA, LABELS, MODELS, NOISE, WRONG, N, X, Y, fit
from tauten import TensorClassifier, TensorPCA, TensorRegressor


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (TensorRegressor(1), "predict"),
        (TensorRegressor(1), "score"),
        (TensorClassifier(1), "predict"),
        (TensorClassifier(1), "predict_proba"),
        (TensorClassifier(1), "decision_function"),
        (TensorClassifier(1), "score"),
        (TensorPCA(1), "transform"),
        (TensorPCA(1), "inverse_transform"),
    ],
    ids=str,
)
def test_not_fitted(model, method):
    arguments = (X, Y) if method == "score" else (X,)
    with pytest.raises(NotFittedError, match=f"{type(model).__name__} instance is not fitted"):
        getattr(model, method)(*arguments)


@pytest.fixture(scope="module")
def fitted():
    """Fit one of each."""
    return {model: fit(model, X[0] if model == "pca" else X) for model in MODELS}


@pytest.mark.parametrize("model", ["regressor", "classifier"])
@pytest.mark.parametrize(
    "data",
    [X[:, :3], X[:, 0], X[0], X.transpose(0, 2, 1), X.reshape(N, -1), X[..., None]],
    ids=lambda a: str(a.shape),
)
def test_predicting_samples_of_another_shape(fitted, model, data):
    words = (
        rf"^X must have samples of shape \(4, 3\), as in fit; got {re.escape(str(data.shape[1:]))}"
    )
    methods = ["predict"] if model == "regressor" else ["predict", "predict_proba"]
    for method in methods:
        with pytest.raises(ValueError, match=words):
            getattr(fitted[model], method)(data)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
@pytest.mark.parametrize("kind", BAD_DATA)
def test_predicting_from_bad_data(fitted, model, kind):
    data, message = BAD_DATA[kind]
    with pytest.raises(WRONG, match=rf"(?s)^X must .*({message})"):
        fitted[model].predict(data)


def test_predicting_nothing(fitted):
    with pytest.raises(ValueError, match=r"^X must hold at least one sample"):
        fitted["regressor"].predict(X[:0])


@pytest.mark.parametrize("model", [TensorRegressor(1), TensorClassifier(1, robust="none")], ids=str)
def test_predicting_with_other_covariates(model):
    Z = NOISE[[0, 2]].T
    model.fit(X, Y if isinstance(model, TensorRegressor) else LABELS, covariates=Z)
    with pytest.raises(ValueError, match=r"^covariates must be given: .*fitted with them"):
        model.predict(X)
    with pytest.raises(
        ValueError, match=r"^covariates must have as many columns as in fit, 2; got 3"
    ):
        model.predict(X, np.ones((N, 3)))
    with pytest.raises(ValueError, match=r"^X and covariates must have the same number"):
        model.predict(X, Z[:50])
    with pytest.raises(ValueError, match=r"^covariates must .*NaN"):
        model.predict(X, Z * np.nan)
    assert model.predict(X, Z).shape == (N,)


def test_covariates_that_the_fit_did_not_have(fitted):
    with pytest.raises(ValueError, match=r"^covariates must have .* 0; got 2"):
        fitted["regressor"].predict(X, np.ones((N, 2)))


def test_scores_of_other_responses(fitted):
    with pytest.raises(ValueError, match="X and y must have the same number"):
        fitted["regressor"].score(X, Y[:50])
    with pytest.raises(ValueError, match="y"):
        fitted["regressor"].score(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="y must be an array of numbers; got None"):
        fitted["regressor"].score(X, None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[0].T, r"Y must have shape \(4, 3\), or \(n, 4, 3\); got \(3, 4\)"),
        (X[0, 0], r"Y must have shape \(4, 3\)"),
        (X[None], r"Y must have shape \(4, 3\)"),
        (X[:0], "Y must hold at least one sample"),
        (X * np.inf, "Y must .*infinity"),
        (None, "Y must .*None"),
    ],
    ids=["turned", "vector", "too many axes", "empty", "inf", "none"],
)
def test_transforming_other_tensors(fitted, data, message):
    with pytest.raises(ValueError, match=f"(?s)^{message}"):
        fitted["pca"].transform(data)


def test_inverse_transforming_other_scores(fitted):
    with pytest.raises(ValueError, match=r"^scores must have shape \(1, 1\), or \(n, 1, 1\)"):
        fitted["pca"].inverse_transform(np.ones((2, 2)))
