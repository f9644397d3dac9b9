"""The ridge against its definition, and against scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tauten import TensorClassifier
from tauten.ridge import ridge_coordinates, ridge_curvature, ridge_gradient
from tauten.tucker import Affine

TIGHT = "newton:tol=1e-11,n_iter=300"


def point(make_theta, shape, rank):
    """A point in no gauge in particular, with vector coefficients."""
    theta = make_theta(shape, rank)
    return Affine(theta.core, theta.factors, np.ones((2, 3)))


def jacobian(theta):
    """Derivative of A in every coefficient, by its definition."""
    columns, flat = [], np.concatenate([block.ravel() for block in theta.blocks])
    for unit in np.eye(flat.size):
        ahead, back = (theta.with_blocks(theta.split(flat + h * unit)) for h in (1e-6, -1e-6))
        columns.append((ahead.full() - back.full()).ravel() / 2e-6)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(
    ("shape", "rank"), [((4,), (1,)), ((4, 3), (2, 2)), ((4, 3, 2), (2, 2, 1))]
)
def test_derivatives_of_the_penalty(make_theta, shape, rank):
    theta = point(make_theta, shape, rank)
    J = jacobian(theta)
    gradient = np.concatenate([block.ravel() for block in ridge_gradient(theta).blocks])
    np.testing.assert_allclose(gradient, J.T @ theta.full().ravel(), atol=1e-7)
    P = theta.horizontal(np.eye(len(gradient)))
    np.testing.assert_allclose(P @ ridge_curvature(theta) @ P, P @ J.T @ J @ P, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "rank"), [((4,), (1,)), ((4, 3), (2, 2)), ((4, 3, 2), (2, 2, 1))]
)
def test_coordinates_in_which_its_matrix_is_the_identity(make_theta, rng, shape, rank):
    """Inner products of rows are those with the inverse of the matrix, along steps that move A."""
    theta = point(make_theta, shape, rank)
    rows = rng.normal(size=(5, theta.flat().size))
    white, loose = ridge_coordinates(theta, rows)
    np.testing.assert_array_equal(loose, rows[:, -6:])
    J = jacobian(theta)[:, :-6]
    P = theta.horizontal(np.eye(theta.flat().size))[:-6, :-6]
    inverse = np.linalg.pinv(P @ J.T @ J @ P, rcond=1e-8)
    np.testing.assert_allclose(white @ white.T, rows[:, :-6] @ inverse @ rows[:, :-6].T, rtol=1e-5)


def test_coordinates_of_an_excessive_rank_are_finite(make_theta, rng):
    """Columns of a factor that move nothing, whose derivatives are zero but for rounding."""
    theta = make_theta((6, 5), (2, 2))
    theta.core[1, :] = 0.0
    theta.core[:, 1] = 0.0
    rows = theta.split(rng.normal(size=(5, theta.d_eff)))
    rows[1][:, :, 1] = rows[2][:, :, 1] = 1e-16
    white, _ = ridge_coordinates(theta, np.hstack([b.reshape(5, -1) for b in rows]))
    np.testing.assert_allclose(white[:, 5:16:2], 0.0, atol=1e-10)
    assert np.abs(white).max() < 100


def labelled(classes, n=60, p=4):
    rng = np.random.default_rng(0)
    X = rng.normal(0.5, 1.5, size=(n, p))
    noise = rng.gumbel(size=(n, classes))
    return X, np.argmax(X @ rng.normal(size=(p, classes)) + noise, axis=1)


@pytest.mark.parametrize("solver", [TIGHT, "scaled:tol=1e-10,n_iter=5000"])
@pytest.mark.parametrize("ridge", [0.01, 0.3])
@pytest.mark.parametrize("classes", [2, 3])
def test_vectors_are_fitted_as_by_scikit_learn(classes, ridge, solver):
    X, y = labelled(classes)
    model = TensorClassifier(9, robust="none", reduce_bias=False, ridge=ridge, solver=solver)
    model.fit(X, y)
    theirs = LogisticRegression(C=1 / (ridge * len(y)), tol=1e-12, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    expected = theirs.coef_[0] if classes == 2 else theirs.coef_.T
    np.testing.assert_allclose(model.coef_, expected, atol=1e-4)
    assert model.ridge_ == ridge


def test_newton_and_descent_agree_on_tensors(rng):
    X = rng.normal(size=(40, 5, 4))
    y = (X[:, 0, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
    options = {"robust": "none", "ridge": 0.05}
    fits = [
        TensorClassifier(2, solver=solver, **options).fit(X, y)
        for solver in (TIGHT, "scaled:tol=1e-9,n_iter=5000")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-5)


def test_bias_reduction_fades_as_the_ridge_takes_over(rng):
    """Jeffreys' prior has nothing to add where the penalty leaves no freedom."""
    X, y = labelled(2)
    gaps = []
    for ridge in (0.0, 10.0):
        firth, plain = (
            TensorClassifier(9, robust="none", ridge=ridge, reduce_bias=b, fit_intercept=False)
            .fit(X, y)
            .coef_
            for b in (True, False)
        )
        gaps.append(np.linalg.norm(firth - plain) / np.linalg.norm(plain))
    assert gaps[0] > 0.05
    assert gaps[1] < gaps[0] / 5


def test_intervals_see_the_ridge(rng):
    """The gradient is zero at the fit, and a penalised fit varies less."""
    X, y = labelled(2)
    wide, narrow = (
        TensorClassifier(9, robust="none", ridge=ridge, reduce_bias=False, solver=TIGHT)
        .fit(X, y)
        .confidence_intervals(X, y)
        .stderr
        for ridge in (0.0, 1.0)
    )
    assert np.all(narrow < wide)


@pytest.mark.parametrize("ridge", [-1.0, "large", np.inf, np.nan])
def test_bad_ridges_are_refused(ridge):
    with pytest.raises(ValueError, match="ridge must"):
        TensorClassifier(1, ridge=ridge).fit(*labelled(2))
