"""Small samples to break, and what must come of a fit to them."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from tauten import TensorClassifier, TensorPCA, TensorRegressor

N, SHAPE = 60, (4, 3)
X = np.random.default_rng(0).normal(size=(N, *SHAPE))
NOISE = np.random.default_rng(1).normal(size=(3, N))
Y = X.sum(axis=(1, 2)) + 0.5 * NOISE[0]
LABELS = (Y + 3 * NOISE[1] > 0).astype(int)
MODELS = ["regressor", "classifier", "pca"]
NAMES = {"regressor": "X", "classifier": "X", "pca": "Y"}  # what their first argument is called
WRONG = (ValueError, TypeError)


def fit(model, data, y=None, **parameters):
    """Fit one of the three; y, where it has one, is cut to the length of the data."""
    if model == "pca":
        return TensorPCA(**{"rank": 1, **parameters}).fit(data)
    y = (Y if model == "regressor" else LABELS) if y is None else y
    if model == "regressor":
        return TensorRegressor(**{"rank": 1, "robust": "auto", **parameters}).fit(data, y)
    return TensorClassifier(**{"rank": 1, "robust": "none", **parameters}).fit(data, y)


def changed(array, value):
    array = np.array(array, dtype=float)
    array.flat[3] = value
    return array


def settled(fitted):
    """Say whether everything a fit leaves behind is finite."""
    arrays = [fitted.coef_, fitted.influence_, getattr(fitted, "intercept_", 0.0)]
    return all(np.isfinite(a).all() for a in arrays)


def finite_or_said(model, data, y=None, **parameters):
    """Fit; allow no warning but the library's own words on convergence, and finite numbers only."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = fit(model, data, y, **parameters)
    assert settled(fitted)
    return fitted


BAD_DATA = {
    "nan": (changed(X, np.nan), "NaN"),
    "inf": (changed(X, np.inf), "infinity"),
    "minus inf": (changed(X, -np.inf), "infinity"),
    "both infinities": (changed(changed(X, np.inf).T, -np.inf).T, "infinity"),
    "no features": (np.zeros((N, 0, 3)), r"at least one sample .* got 60 sample"),
    "complex": (X + 1j, "[Cc]omplex"),
    "words": (np.full((N, *SHAPE), "a", dtype=object), "numbers"),
    "objects": (np.full((N, *SHAPE), object(), dtype=object), "numbers"),
    "a word": ("hello", "numbers"),
    "none": (None, "None"),
    "nones": (np.full((N, *SHAPE), None), "NaN|numbers"),
    "ragged": ([[1.0, 2.0], [3.0]], "numbers"),
    "a dict": ({"a": 1}, "numbers"),
    "sparse": (scipy.sparse.csr_array(X.reshape(N, -1)), "[Ss]parse"),
    "sparse matrix": (scipy.sparse.csc_matrix(X.reshape(N, -1)), "[Ss]parse"),
    "a number": (3.0, r"axes; got shape \(\)"),
}
