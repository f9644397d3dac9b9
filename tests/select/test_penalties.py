"""Ridges by cross-validation: when they are chosen, from what, and what they are for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from tauten import TensorClassifier
from tauten.data import Rows
from tauten.datasets import make_model, simulate, truth
from tauten.designs import Covariate
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.select import penalties, select_ridge
from tauten.tucker import Tucker

OPTIONS = {"rank": 2, "robust": "none", "random_state": 0}


def images(n, seed=0):
    """Smooth images of 12 × 12: more coefficients than the samples can tell."""
    rng = np.random.default_rng(seed)
    target = truth((12, 12), 2, reading="random", norm=1.5, rng=0)
    smooth = np.exp(-np.abs(np.subtract.outer(np.arange(12), np.arange(12))) / 4)
    root = np.linalg.cholesky(smooth)
    X = np.einsum("ij,njk,lk->nil", root, rng.normal(size=(n, 12, 12)), root)
    return simulate(target, n, covariate_order=2, loss="logistic", covariates=X, rng=rng)


@pytest.fixture(scope="module")
def few():
    return images(90)


@pytest.fixture(scope="module")
def model(few):
    return TensorClassifier(**OPTIONS).fit(few.X, few.y)


def deviance(model, data):
    return float(np.mean(np.logaddexp(0, (1 - 2 * data.y) * model.decision_function(data.X))))


def test_a_ridge_is_chosen_where_samples_are_few(few, model):
    """Of 44 coefficients and 90 samples the plain fit separates the classes, to no use."""
    plain = TensorClassifier(**OPTIONS, ridge=0.0).fit(few.X, few.y)
    assert plain.score(few.X, few.y) == 1.0
    assert model.ridge_ > 0
    fresh = images(1000, seed=1)
    assert deviance(model, fresh) < np.log(2) < deviance(plain, fresh)


def test_the_best_ridge_is_taken_and_the_path_is_kept(model):
    path = model.ridge_path_
    assert len(path.ridges) == len(path.error) == len(path.stderr) == 10
    assert np.all(np.diff(path.ridges) < 0)
    assert path.ridges[-1] == 0
    assert model.ridge_ == path.ridge == path.ridges[np.argmin(path.error)]


@pytest.mark.parametrize("candidate", [1, 4])
def test_errors_are_those_of_refits(few, model, candidate):
    """The same folds, fitted by an estimator that sees the training samples only."""
    path = model.ridge_path_
    seed = int(np.random.default_rng(0).integers(2**31))
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(few.X):
        part = TensorClassifier(**OPTIONS, ridge=float(path.ridges[candidate]))
        part.fit(few.X[train], few.y[train])
        eta = part.decision_function(few.X[test])
        errors.append(np.mean(np.logaddexp(0, eta) - few.y[test] * eta))
    assert path.error[candidate] == pytest.approx(np.mean(errors), rel=0.02)
    assert path.stderr[candidate] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(5), rel=0.1)


def test_units_do_not_matter(few, model):
    scaled = TensorClassifier(**OPTIONS).fit(7 * few.X, few.y)
    assert scaled.ridge_ == pytest.approx(49 * model.ridge_, rel=1e-3)
    np.testing.assert_allclose(7 * scaled.coef_, model.coef_, atol=1e-3 * np.abs(model.coef_).max())


def test_no_ridge_where_samples_are_many():
    data = make_model("III", 200, shape=(4, 3), rng=0)
    model = TensorClassifier(1).fit(data.X, data.y)
    assert model.ridge_ == 0
    assert not hasattr(model, "ridge_path_")


def test_none_unless_a_ridge_is_clearly_better():
    """Classes that a few coefficients tell apart: here a ridge has nothing to gain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7))
    y = (rng.random(60) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    model = TensorClassifier(9, robust="none", random_state=0).fit(X, y)
    path = model.ridge_path_
    best = np.argmin(path.error)
    assert path.ridges[best] > 0
    assert path.error[-1] - path.error[best] < path.stderr.max()
    assert model.ridge_ == 0


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ((0.3, 0.1, 0.2, 0.1, 0.3), 4),  # 0.2 with a standard error of 0.045
        ((1.0, -0.9, 0.8, -0.9, 0.9), 9),  # 0.18 with one of 0.44
        ((0.0, 0.0, 0.0, 0.0, 0.0), 9),  # no better: none
    ],
)
def test_a_ridge_must_gain_a_standard_error(gains, chosen, rng, monkeypatch):
    X = rng.normal(size=(40, 3))
    problem = Problem(Rows(X, X[:, 0] + rng.normal(size=40)), Squared(), Covariate())
    none = np.array([5.0, 9.0, 7.0, 6.0, 8.0])
    errors = np.tile(none[:, None], 10) + 1.0
    errors[:, 4], errors[:, 9] = none - gains, none
    tried = []

    def held_out(trials, theta, solver, **options):
        tried.extend(trial.ridge for trial in trials)
        return errors

    monkeypatch.setattr(penalties, "held_out", held_out)
    path = select_ridge(problem, Tucker(np.ones(1), [np.eye(3, 1)]), rng=rng)
    assert tried == list(path.ridges)
    largest = np.linalg.eigvalsh(X.T @ X / 40)[-1]
    assert largest <= path.ridges[0] <= 1.1 * largest * (1 + 1e-12)
    np.testing.assert_allclose(path.ridges[:-1], path.ridges[0] * 10 ** np.linspace(0, -4, 9))
    assert path.ridge == path.ridges[chosen]
    np.testing.assert_allclose(path.error, errors.mean(axis=0))
    np.testing.assert_allclose(path.stderr, errors.std(axis=0, ddof=1) / np.sqrt(5))


def test_errors_are_mean_losses_of_samples():
    entries = np.array([[1.0, 2.0], [0.5, 0.5], [3.0, 0.5]])
    assert penalties._mean_loss(Squared(), entries) == 2.5
