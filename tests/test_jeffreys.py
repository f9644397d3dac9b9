"""Firth's bias reduction against its definition in a few lines of numpy, and its promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, root
from scipy.special import expit, log_softmax, softmax

from tauten import TensorClassifier
from tauten._array import to_numpy
from tauten.datasets import make_model
from tauten.designs import Pullback
from tauten.jeffreys import Jeffreys, penalised_spread
from tauten.losses import Logistic, Multinomial
from tauten.tucker import Tucker

TIGHT = "newton:tol=1e-11,n_iter=300"


def firth(design, y, weight):
    """Maximum of the penalised likelihood of Firth (1993), with his modified score."""

    def value(beta):
        eta = design @ beta
        W = weight * expit(eta) * expit(-eta)
        determinant = np.linalg.slogdet(design.T @ (W[:, None] * design))[1]
        return weight @ (np.logaddexp(0, eta) - y * eta) - 0.5 * determinant

    def slope(beta):
        p = expit(design @ beta)
        W = weight * p * (1 - p)
        inverse = np.linalg.inv(design.T @ (W[:, None] * design))
        hat = W * np.einsum("ij,jk,ik->i", design, inverse, design)
        return design.T @ (weight * (p - y) + hat * (p - 0.5))

    return minimize(value, np.zeros(design.shape[1]), jac=slope, options={"gtol": 1e-9}).x


def vectors(n=60, p=3, seed=0, separable=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 2.0, size=(n, p))
    eta = (X - 1.0) @ np.linspace(1.0, -0.5, p) + 0.3
    return X, (eta > 0 if separable else rng.random(n) < expit(eta)).astype(int)


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_of_vectors(separable, covariates, weighted):
    X, y = vectors(separable=separable)
    weight = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    tensor, Z = (X[:, :2], X[:, 2:]) if covariates else (X, None)
    model = TensorClassifier(1, robust="none", solver=TIGHT)
    model.fit(tensor, y, covariates=Z, sample_weight=weight)
    design = np.column_stack([np.ones(len(y)), X])
    expected = firth(design, y, np.ones(len(y)) if weight is None else weight)
    mine = np.concatenate([[model.intercept_], model.coef_, model.covariate_coef_])
    np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


def penalised_deviance(flat, X, labels, classes):
    """Minus log-likelihood minus half the log determinant of the information of the contrasts."""
    eta = X @ flat.reshape(X.shape[1], classes)
    p = softmax(eta, axis=1)
    contrast = np.linalg.svd(np.eye(classes) - 1 / classes)[0][:, : classes - 1]
    W = np.einsum("ic,cd->icd", p, np.eye(classes)) - p[:, :, None] * p[:, None, :]
    W = contrast.T @ W @ contrast
    size = X.shape[1] * (classes - 1)
    information = np.einsum("ij,iab,ik->jakb", X, W, X).reshape(size, size)
    loss = -log_softmax(eta, axis=1)[np.arange(len(X)), labels].sum()
    return loss - 0.5 * np.linalg.slogdet(information)[1]


@pytest.mark.parametrize("separable", [False, True])
def test_three_classes_of_vectors(separable):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    eta = 2 * X @ rng.normal(size=(2, 3))
    labels = (eta + (0 if separable else 1) * rng.gumbel(size=eta.shape)).argmax(axis=1)
    model = TensorClassifier((2, 2), robust="none", solver=TIGHT, fit_intercept=False)
    model.fit(X, labels)
    best = minimize(penalised_deviance, np.zeros(6), args=(X, labels, 3), options={"gtol": 1e-8})
    expected = softmax(X @ best.x.reshape(2, 3), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("robust", "classes"),
    [("none", 2), ("auto", 2), ("truncate", 2), ("shrink", 2), ("none", 3), ("auto", 3)],
)
def test_separable_classes_of_matrices_converge(robust, classes):
    """Warnings are errors here: nothing may say that it did not converge."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 5, 4))
    y = np.digitize(X[:, 0, 0], [-0.5, 0.5][: classes - 1])
    model = TensorClassifier(1, robust=robust).fit(X, y)
    assert model.result_.converged
    assert np.linalg.norm(model.coef_) < 100
    assert model.score(X, y) > 0.95


def test_more_parameters_than_samples():
    """Every sample is fitted as it likes, to one observation and half of one of each class."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 2
    model = TensorClassifier(1, robust="none", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], np.where(y, 0.75, 0.25), atol=1e-3)


def test_saturated_is_the_limit_of_the_other():
    """With as many parameters as samples every hat value is one."""
    rng = np.random.default_rng(7)
    eta = rng.normal(size=(5, 3))
    p = Multinomial().mean(eta)
    for mine, other in zip(
        Jeffreys(None).pseudo_observations(Multinomial(), eta, iter, None),
        Multinomial().pseudo_observations(eta, 1 / p - 1),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other)
    one, W = eta[:, 0], Logistic().curvature(eta[:, 0], eta[:, 0])
    for mine, other in zip(
        Jeffreys(None).pseudo_observations(Logistic(), one, iter, None),
        Logistic().pseudo_observations(one, 1 / W),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other)


def test_size_of_a_strong_signal():
    """The likelihood makes A too large; reduced, the mean over seeds is right to a tenth."""
    sizes = []
    for reduce_bias in (False, True):
        size = 0.0
        for seed in range(8):
            data = make_model("III", 150, shape=(5, 4, 3), norm=4.0, rng=seed)
            model = TensorClassifier(1, robust="none", reduce_bias=reduce_bias)
            coef = model.fit(data.X, data.y).coef_
            size += np.sum(coef * data.truth.full()) / 16 / 8  # along the truth
        sizes.append(size)
    assert sizes[0] > 1.15
    assert abs(sizes[1] - 1) < 0.1


def test_a_shrunk_sample_has_less_of_the_prior():
    """Else its pseudo-observations would pull as hard as its covariates are large."""
    rng = np.random.default_rng(8)
    eta, share, rows = rng.normal(size=5), rng.uniform(size=5), rng.normal(size=(5, 2))
    half = np.diag(np.sqrt([2.0, 3.0]))
    pullback = Pullback(Tucker(np.ones(1), [np.ones((1, 1))]), rows)
    mine = Jeffreys(half).pseudo_observations(Logistic(), eta, pullback, share)
    hat = share * expit(eta) * expit(-eta) * (rows**2 @ [2.0, 3.0])
    np.testing.assert_allclose(mine[1], hat)
    np.testing.assert_allclose(mine[0], hat * (expit(eta) - 0.5))


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_vectors_with_a_ridge_and_more_coefficients_than_samples(separable, weighted):
    """Firth's modified score, with the ridge in the information; the intercept has none."""
    X, y = vectors(n=25, p=40, separable=separable)
    weight = np.random.default_rng(1).integers(0, 4, 25) if weighted else np.ones(25)
    model = TensorClassifier(1, robust="none", solver=TIGHT, ridge=0.5)
    model.fit(X, y, sample_weight=weight if weighted else None)
    design = np.column_stack([np.ones(25), X])
    penalty = 0.5 * weight.sum() * np.diag([0.0, *np.ones(40)])

    def score(beta):
        p = expit(design @ beta)
        W = weight * p * (1 - p)
        inverse = np.linalg.inv(design.T @ (W[:, None] * design) + penalty)
        hat = W * np.einsum("ij,jk,ik->i", design, inverse, design)
        return design.T @ (weight * (p - y) + hat * (p - 0.5)) + penalty @ beta

    mine = np.array([model.intercept_, *model.coef_])
    expected = root(score, mine, tol=1e-13).x
    assert np.abs(score(np.zeros(41))).max() > 1
    np.testing.assert_allclose(mine, expected, atol=1e-7)


@pytest.mark.parametrize("loose", [0, 2])
@pytest.mark.parametrize("make", ["numpy", "torch", "strict"], indirect=True)
def test_variances_from_the_matrix_of_samples(make, loose, rng):
    """As from that of the coefficients, which is the definition."""
    rows, weight = rng.normal(size=(30, 70 + loose)), rng.uniform(size=30)
    weight[[3, 17]] = 0.0, 1e-12
    information = rows.T @ (weight[:, None] * rows) + np.diag([0.3] * 70 + [0.0] * loose)
    expected = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
    arrays = map(make, (rows[:, :70].copy(), rows[:, 70:].copy(), weight))
    found = to_numpy(penalised_spread(*arrays, 0.3))
    np.testing.assert_allclose(found[weight > 1e-9], expected[weight > 1e-9], rtol=1e-6)
    assert found[17] * weight[17] == pytest.approx(expected[17] * weight[17], abs=1e-12)
    assert found[3] == 0.0  # no weight, no say


def test_variances_where_coefficients_without_a_penalty_are_one(rng):
    """Of two equal columns, only their sum is known: they count as one."""
    white, one = rng.normal(size=(12, 20)), rng.normal(size=(12, 1))
    weight = rng.uniform(size=12)
    once = penalised_spread(white, one, weight, 0.5)
    twice = penalised_spread(white, np.hstack([one, one]), weight, 0.5)
    np.testing.assert_allclose(twice, once, rtol=1e-5)
