"""Classes against scikit-learn and the naive likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from fits import NO_CONVERGENCE, TIGHT, close, flat, naive_full
from tauten import TensorClassifier
from tauten.datasets import make_model, simulate, truth
from tauten.metrics import relative_error


def labels(n=300, p=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = X @ rng.normal(size=(p, classes)) * 0.7 + 0.3 * np.arange(classes)
    return X, np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)


LIKELIHOOD = {"robust": "none", "solver": TIGHT, "reduce_bias": False}


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_binary_is_logistic_regression(fit_intercept):
    X, y = labels()
    mine = TensorClassifier(1, fit_intercept=fit_intercept, **LIKELIHOOD).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)
    theirs.fit(X, y)
    close(mine.coef_, theirs.coef_[0], 1e-5)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_[0], atol=1e-5)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.score(X, y), theirs.score(X, y))


@pytest.mark.parametrize("classes", [3, 4])
def test_multinomial_is_logistic_regression(classes):
    X, y = labels(200, p=3, classes=classes)
    mine = TensorClassifier(99, robust="none", reduce_bias=False).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


def test_multinomial_of_two_classes_is_binary():
    X, y = labels()
    two = TensorClassifier(99, loss="multinomial", robust="none").fit(X, y)
    one = TensorClassifier(1, robust="none").fit(X, y)
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-4)


def test_weighted_classes():
    X, y = labels()
    weight = np.random.default_rng(1).uniform(0.5, 3, size=len(y))
    mine = TensorClassifier(1, **LIKELIHOOD).fit(X, y, sample_weight=weight)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    theirs.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("class_weight", "weighted_samples"),
    [("balanced", False), ({"a": 1.0, "b": 5.0}, False), ({"a": 1.0, "b": 5.0}, True)],
    ids=str,
)
def test_class_weights(class_weight, weighted_samples):
    X, y = labels(seed=3)
    y = np.where(y > 0, "b", "a")
    weight = np.random.default_rng(1).uniform(0.5, 3, size=len(y)) if weighted_samples else None
    mine = TensorClassifier(1, class_weight=class_weight, **LIKELIHOOD)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, class_weight=class_weight)
    for model in (mine, theirs):
        model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_classifier_with_covariates():
    X, y = labels()
    mine = TensorClassifier(1, **LIKELIHOOD).fit(X[:, :2], y, covariates=X[:, 2:])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    probabilities = mine.predict_proba(X[:, :2], X[:, 2:])
    np.testing.assert_allclose(probabilities, theirs.predict_proba(X), atol=1e-6)


def test_low_rank_logistic_is_the_naive_minimum():
    point = truth((4, 3), 1, norm=2.0)
    data = simulate(point, 300, covariate_order=2, loss="logistic", rng=7)

    def deviance(vector):
        eta = data.X.reshape(300, -1) @ naive_full(vector[:-1], (4, 3), (1, 1)).ravel() + vector[-1]
        return np.mean(np.log1p(np.exp(eta)) - data.y * eta)

    theirs = minimize(deviance, np.append(flat(point), 0.0), method="BFGS", options={"gtol": 1e-7})
    mine = TensorClassifier(1, **LIKELIHOOD).fit(data.X, data.y)
    close(mine.coef_, naive_full(theirs.x[:-1], (4, 3), (1, 1)), 1e-4)
    np.testing.assert_allclose(mine.intercept_, theirs.x[-1], atol=1e-4)


@pytest.mark.parametrize(
    "names",
    [["yes", "no"], [True, False], [3, -1], ["b", "a", "c"], [2.0, 0.0, 1.0]],
    ids=str,
)
def test_labels_of_any_kind(names):
    X, y = labels(classes=len(names))
    names = np.array(names)
    model = TensorClassifier(len(names), robust="none").fit(X, names[y])
    assert model.classes_.tolist() == sorted(names.tolist())
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert set(predicted) <= set(names)
    plain = TensorClassifier(len(names), robust="none").fit(X, np.argsort(np.argsort(names))[y])
    np.testing.assert_array_equal(predicted, model.classes_[plain.predict(X)])
    best = np.unique(y, return_counts=True)[1].max() / len(y)
    assert model.score(X, names[y]) > best


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize("classes", [2, 3])
def test_shapes_of_class_predictions(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3, 2))
    y = (np.arange(120) + (X[:, 0, 0] > 0.5)) % classes
    model = TensorClassifier(1, robust="none").fit(X, y)
    probabilities, decision = model.predict_proba(X), model.decision_function(X)
    assert probabilities.shape == (120, classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert (probabilities >= 0).all()
    if classes == 2:
        assert decision.shape == (120,)
        np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    else:
        assert decision.shape == (120, 3)
        assert model.coef_.shape == (3, 2, 3)
        np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])


@pytest.mark.parametrize("seed", range(3))
def test_robust_classifier_on_clean_data_is_not_much_worse_than_likelihood(seed):
    data = make_model("III", 500, shape=(5, 4), rng=seed)
    errors = {
        robust: relative_error(
            TensorClassifier(1, robust=robust).fit(data.X, data.y).coef_, data.truth
        )
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 1.5 * errors["none"], errors


@pytest.mark.parametrize("seed", range(3))
def test_robust_classifier_under_contamination(seed):
    """Flipped labels on large covariates: the direction of A must survive, least squares' not."""
    data = make_model("III", 500, shape=(5, 4), contamination=0.05, rng=seed)
    target = data.truth.full() / data.truth.norm()
    cosines = {}
    for robust in ("auto", "none"):
        coef = TensorClassifier(1, robust=robust).fit(data.X, data.y).coef_
        cosines[robust] = float(np.sum(coef * target) / np.linalg.norm(coef))
    assert cosines["auto"] > 0.9, cosines
    assert cosines["auto"] > cosines["none"], cosines


def test_decision_function_of_a_softmax_of_two_classes_is_their_log_odds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3, 2))
    y = (X[:, 0, 0] + 0.5 * rng.normal(size=80) > 0).astype(int)
    model = TensorClassifier(1, loss="multinomial").fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(proba[:, 1] / proba[:, 0]))
