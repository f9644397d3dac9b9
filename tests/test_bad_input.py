"""What users get wrong: each mistake is an error that names the argument, or the right answer."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from tauten import TensorClassifier, TensorPCA, TensorRegressor, Tucker
from tauten.losses import Huber as HuberLoss
from tauten.robust import Adaptive, Catoni, Huber, MedianOfMeans, NormClip, Shrink, Truncate
from tauten.solver import GradientDescent, Newton
from tauten.tucker import Affine

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


# ------------------------------------------------- the data

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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", BAD_DATA)
def test_data(model, kind):
    data, message = BAD_DATA[kind]
    if model == "pca" and kind in {"nan", "nones"}:
        pytest.skip("nan is a missing entry here")
    with pytest.raises(WRONG, match=rf"(?s)^{NAMES[model]} must .*({message})"):
        fit(model, data)


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


# ------------------------------------------------- ranks


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (0, "rank must be at least 1; got 0"),
        (-2, "rank must be at least 1; got -2"),
        ((5, 1), "rank of mode 1 must be .* from 1 to its dimension 4; got 5"),
        ((1, 4), "rank of mode 2 (must be .* dimension 3; got 4|is 4, larger)"),
        ((2, 1), "rank of mode 1 is 2, larger than the product 1 of the others"),
        ((1, 3), "rank of mode 2 is 3, larger than the product 1 of the others"),
        ((1,), r"rank must have one entry per mode .* \(4, 3\)"),
        ((1, 1, 1), r"rank must have one entry per mode .* \(4, 3\)"),
        ((), r"rank must have one entry per mode"),
        ((0, 1), "rank of mode 1 must be"),
        ((1, 0), "rank of mode [12] "),
        ((1, -1), "rank of mode [12] "),
        (1.0, "rank must be an int"),
        (1.5, "rank must be an int"),
        (np.nan, "rank must be an int"),
        ((1.5, 1), "rank must be an int or one int per mode"),
        ((np.nan, 1), "rank must be an int or one int per mode"),
        ((np.inf, 1), "rank must be an int or one int per mode"),
        ("2", "rank must be an int"),
        (("1", "1"), "rank must be an int or one int per mode"),
        ((None, 1), "rank must be an int or one int per mode"),
        ([[1, 1], [1, 1]], "rank must be an int or one int per mode"),
        (None, "rank must be an int"),
        (True, "rank must be an int"),
        ({1, 2}, "rank must be an int"),
    ],
    ids=str,
)
def test_rank(model, rank, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        fit(model, X[0] if model == "pca" else X, rank=rank)


def test_rank_counts_the_modes_of_the_responses():
    with pytest.raises(ValueError, match=r"one entry per mode .* \(4, 3, 2\) .*response modes"):
        TensorRegressor((1, 1)).fit(X, np.column_stack([Y, Y]))


# ------------------------------------------------- names and settings


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"robust": "trunkate"}, "robust.* 'trunkate'.*did you mean 'truncate'"),
        ({"robust": None}, "robust.* must be a name .*NoneType"),
        ({"robust": 3}, "robust.* must be a name .*int"),
        ({"robust": Truncate}, "robust.* must be a name .* or a Robustifier instance; got type"),
        ({"robust": "truncate:tou=1"}, "'tou=1' is not a parameter of 'truncate'.*tau"),
        ({"robust": "truncate:tau"}, "'tau' is not a parameter of 'truncate'.*key=value"),
        ({"init": "ihtt"}, "init must be .*'ihtt'"),
        ({"init": None}, "init must be .*None"),
        ({"init": ["iht"]}, "init must be"),
        ({"init": np.ones(SHAPE)}, "init must be"),
        ({"solver": "newtn"}, "solver 'newtn'.*did you mean 'newton'"),
        ({"solver": None}, "solver must be a name .*NoneType"),
        ({"solver": Newton}, "solver must be a name .* or a Solver instance; got type"),
    ],
    ids=str,
)
def test_unknown_names(model, parameters, message):
    with pytest.raises(WRONG, match=f"(?s){message}"):
        fit(model, X[0] if model == "pca" else X, **parameters)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
@pytest.mark.parametrize("loss", ["sqared", None, 3])
def test_unknown_losses(model, loss):
    with pytest.raises(WRONG, match=r"loss.*squared"):
        fit(model, X, loss=loss)


def test_losses_of_the_other_kind():
    with pytest.raises(ValueError, match="loss 'logistic' is for classes: use TensorClassifier"):
        TensorRegressor(1, loss="logistic").fit(X, LABELS)
    with pytest.raises(ValueError, match="loss 'logistic' takes two classes; y holds 3"):
        TensorClassifier(1, loss="logistic").fit(X, np.arange(N) % 3)
    for loss in ("squared", "poisson", "gamma", "huber"):
        with pytest.raises(ValueError, match=r"loss.*(class|TensorRegressor)"):
            TensorClassifier(1, loss=loss).fit(X, LABELS)


@pytest.mark.parametrize(
    ("robust", "message"),
    [
        (Truncate(-1.0), "tau must be positive .*got -1"),
        (Truncate(0), "tau must be positive .*got 0"),
        (Truncate(np.nan), "tau must be positive .*got nan"),
        (Truncate("small"), "tau must be .*'small'"),
        (Truncate(None), "tau must be a positive number.*None"),
        (Truncate([1.0, 2.0]), "tau must be .*one entry per block .*4 here; got 2"),
        (Truncate([1.0, 1.0, 1.0, -1.0]), "tau must be positive in every block; got -1"),
        ("truncate:tau=-1", "tau must be positive .*got -1"),
        (NormClip(-1.0), "tau must be positive"),
        (Catoni(0.0), "tau must be positive"),
        (Huber(-1.0), "nu must be positive .*got -1"),
        (Huber("x"), "nu must be a positive number"),
        (Shrink(0.0), "omega must be positive .*got 0"),
        (Adaptive(nu=-1.0), "nu must be positive"),
        (Adaptive(tau=-1.0), "tau must be positive"),
        (Adaptive(omega=-1.0), "omega must be positive"),
        (MedianOfMeans(0), "n_blocks must be .* from 1 to the number of samples, 60; got 0"),
        (MedianOfMeans(61), "n_blocks must be .* from 1 to the number of samples, 60; got 61"),
        (MedianOfMeans(2.5), "n_blocks must be a whole number .*2.5"),
        (MedianOfMeans("a"), "n_blocks must be a whole number"),
    ],
    ids=str,
)
def test_thresholds(robust, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        TensorRegressor(1, robust=robust).fit(X, Y)


def test_threshold_of_the_huber_loss():
    with pytest.raises(ValueError, match="nu must be positive"):
        TensorRegressor(1, loss=HuberLoss(-1.0), robust="none").fit(X, Y)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (Newton(n_iter=-1), "n_iter must"),
        (Newton(n_iter=2.5), "n_iter must"),
        (Newton(n_iter="many"), "n_iter must"),
        (Newton(tol=-1.0), "tol must"),
        (Newton(tol="tiny"), "tol must"),
        (GradientDescent(step_size=-1.0), "step_size must"),
        (GradientDescent(step_size=0.0), "step_size must"),
        (GradientDescent(b=0.0), "b must"),
        (GradientDescent(a=-1.0), "a must"),
    ],
    ids=str,
)
def test_solver_settings(solver, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        TensorRegressor(1, solver=solver).fit(X, Y)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 4), r"init must have the shape \(4, 3\) .*got \(3, 4\)"),
        ((4, 3, 2), r"init must have the shape \(4, 3\) .*got \(4, 3, 2\)"),
    ],
)
def test_start_of_another_shape(shape, message):
    start = Tucker(np.ones((1,) * len(shape)), [np.ones((p, 1)) for p in shape])
    for model in MODELS:
        with pytest.raises(ValueError, match=f"^{message}"):
            fit(model, X[0] if model == "pca" else X, init=start)


def test_start_with_nan_or_too_many_columns():
    nan = Tucker(np.full((1, 1), np.nan), [np.ones((4, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match="init must be finite"):
        TensorRegressor(1, init=nan).fit(X, Y)
    wide = Tucker(np.ones((5, 1)), [np.ones((4, 5)), np.ones((3, 1))])
    with pytest.raises(ValueError, match=r"init must have the ranks asked for, .*got .5, 1"):
        TensorRegressor(1, init=wide).fit(X, Y)


def test_start_at_zero_or_of_lower_rank_is_left():
    """Neither is a point to stay at, and neither may divide by zero."""
    expected = TensorRegressor(1, robust="none").fit(X, Y).coef_
    zero = Tucker(np.zeros((1, 1)), [np.ones((4, 1)), np.ones((3, 1))])
    fitted = TensorRegressor(1, robust="none", init=zero).fit(X, Y)
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-3)
    flat = Tucker(np.ones((2, 2)), [np.ones((4, 2)), np.ones((3, 2))])
    assert settled(TensorRegressor(2, robust="none", init=flat).fit(X, Y))


# ------------------------------------------------- weights and covariates


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


# ------------------------------------------------- predictions


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


# ------------------------------------------------- degenerate, but not wrong


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


@pytest.mark.parametrize(("intercept", "rows"), [(True, 3), (False, 1)])
def test_vector_coefficients_of_a_start_that_do_not_fit(intercept, rows):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4, 3)), rng.normal(size=30)
    start = Affine(np.ones((1, 1)), (np.ones((4, 1)), np.ones((3, 1))), np.zeros(rows))
    with pytest.raises(ValueError, match="init must have vector coefficients"):
        TensorRegressor(1, init=start, fit_intercept=intercept).fit(X, y)
