"""Standard errors of the sandwich against textbook formulas, and what they do not depend on."""

import numpy as np

import tauten as tt
from tauten.data import Rows
from tauten.designs import Covariate
from tauten.inference import intervals
from tauten.inference.base import leverage
from tauten.losses import Loss
from tauten.problem import Problem
from tauten.robust import Huber
from tauten.tucker import Tucker


def textbook(X, bread_weight, residual):
    """``(XᵀWX)⁻¹ Xᵀ diag(e²) X (XᵀWX)⁻¹ n / (n - p)``."""
    bread = np.linalg.inv(X.T @ (bread_weight[:, None] * X))
    n, p = X.shape
    return bread @ (X.T @ (residual[:, None] ** 2 * X)) @ bread * n / (n - p)


def test_linear_regression_equals_hc1(heteroscedastic):
    X, y = heteroscedastic(np.random.default_rng(0))
    model = tt.TensorRegressor(robust="none", solver="newton:tol=1e-12").fit(X, y)
    found = model.confidence_intervals(X, y)
    design = np.column_stack([np.ones(len(X)), X])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    expected = np.sqrt(np.diag(textbook(design, np.ones(len(X)), y - design @ beta)))
    np.testing.assert_allclose(found.intercept.stderr, expected[0], rtol=1e-6)
    np.testing.assert_allclose(found.stderr, expected[1:], rtol=1e-6)
    np.testing.assert_allclose(found.estimate, beta[1:], rtol=1e-6)


def test_vector_covariates_and_weights_equal_weighted_hc1(heteroscedastic):
    rng = np.random.default_rng(1)
    X, y = heteroscedastic(rng)
    Z, w = 1000 * rng.normal(size=(len(X), 2)), rng.uniform(0.5, 2, size=len(X))
    model = tt.TensorRegressor(robust="none", solver="newton:tol=1e-12")
    data = {"covariates": Z, "sample_weight": w}
    found = model.fit(X, y, **data).confidence_intervals(X, y, **data)
    design = np.column_stack([np.ones(len(X)), X, Z])
    root = np.sqrt(w)
    beta = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
    expected = np.sqrt(np.diag(textbook(design, w, w * (y - design @ beta))))
    np.testing.assert_allclose(found.intercept.stderr, expected[0], rtol=1e-6)
    np.testing.assert_allclose(found.stderr, expected[1:5], rtol=1e-6)
    np.testing.assert_allclose(found.covariate_coef.stderr, expected[5:], rtol=1e-6)


def test_logistic_regression_equals_the_textbook_sandwich():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = (rng.random(200) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.0] - 0.3))).astype(int)
    options = {"robust": "none", "solver": "newton:tol=1e-12", "reduce_bias": False}
    model = tt.TensorClassifier(**options).fit(X, y)
    found = model.confidence_intervals(X, y)
    design = np.column_stack([np.ones(len(X)), X])
    p = 1 / (1 + np.exp(-X @ model.coef_ - model.intercept_))
    expected = np.sqrt(np.diag(textbook(design, p * (1 - p), y - p)))
    np.testing.assert_allclose(found.stderr, expected[1:], rtol=1e-5)
    np.testing.assert_allclose(found.intercept.stderr, expected[0], rtol=1e-5)


def test_multinomial_contrasts_equal_the_textbook_sandwich():
    """Against the classes' contrasts with the first, whose information matrix is regular."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    eta = X @ rng.normal(size=(3, 3))
    labels = tt.losses.Multinomial().draw(eta, rng).argmax(axis=1)
    rank, solver = (3, 3), "newton:tol=1e-11,n_iter=500"
    options = {"robust": "none", "solver": solver, "reduce_bias": False}
    model = tt.TensorClassifier(rank, fit_intercept=False, **options)
    found = model.fit(X, labels).confidence_intervals(X, labels)
    p = model.predict_proba(X)
    rows = np.einsum("ij,ic->icj", X, (p - np.eye(3)[labels])).reshape(400, 9)
    hessians = np.einsum("ic,cd->icd", p, np.eye(3)) - p[:, :, None] * p[:, None, :]
    hessian = np.einsum("icd,ij,ik->cjdk", hessians, X, X).reshape(9, 9)
    bread = np.linalg.pinv(hessian, rcond=1e-10)
    centring = np.kron(np.eye(3) - 1 / 3, np.eye(3))
    covariance = centring @ bread @ rows.T @ rows @ bread @ centring
    _, share = leverage(
        Problem(Rows(X, np.eye(3)[labels]), Loss.get("multinomial"), Covariate()), model.tucker_
    )
    expected = np.sqrt(np.diag(covariance) / (1 - share)).reshape(3, 3).T
    np.testing.assert_allclose(found.stderr, expected, rtol=1e-4)
    np.testing.assert_allclose(found.estimate.sum(axis=1), 0, atol=1e-10)


def test_huber_equals_the_textbook_sandwich(heteroscedastic):
    """Scores bent at ν weigh in with ψ' in the bread and ψ² in the middle."""
    X, y = heteroscedastic(np.random.default_rng(5))
    model = tt.TensorRegressor(
        robust=Huber(nu=0.8), solver="newton:tol=1e-12,n_iter=500", fit_intercept=False
    ).fit(X, y)
    residual = y - X @ model.coef_
    inside = (np.abs(residual) < 0.8).astype(float)
    expected = np.sqrt(np.diag(textbook(X, inside, np.clip(residual, -0.8, 0.8))))
    np.testing.assert_allclose(model.confidence_intervals(X, y).stderr, expected, rtol=1e-4)


def test_replicates_of_a_full_rank_tensor_have_the_error_of_a_mean():
    Y = np.random.default_rng(6).normal(size=(12, 3, 2))
    model = tt.TensorPCA(rank=(2, 2), replicates=True, robust="none").fit(Y[:, :2])
    expected = Y[:, :2].std(axis=0, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(model.confidence_intervals(Y[:, :2]).stderr, expected, rtol=1e-6)


def test_gauge_does_not_matter(clean):
    data, model = clean
    problem = Problem(Rows(data.X, data.y), model.loss_, Covariate())
    rng, theta = np.random.default_rng(7), model.tucker_
    mixing = [rng.normal(size=(r, r)) + 2 * np.eye(r) for r in theta.rank]
    core = tt.tucker.multi_mode_dot(theta.core, [np.linalg.inv(m) for m in mixing])
    other = Tucker(core, [u @ m for u, m in zip(theta.factors, mixing, strict=True)])
    np.testing.assert_allclose(other.full(), theta.full(), atol=1e-12)
    first, second = (intervals(problem, t).stderr for t in (theta, other))
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_what_the_data_do_not_tell_has_an_infinite_error():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 4))
    X[:, 2] = 0.0
    y = X @ [1.0, -1.0, 0.0, 0.5] + rng.normal(size=60)
    model = tt.TensorRegressor(robust="none").fit(X, y)
    found = model.confidence_intervals(X, y)
    np.testing.assert_array_equal(np.isinf(found.stderr), [False, False, True, False])
    assert np.isfinite(found.intercept.stderr)
