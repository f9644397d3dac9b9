"""Standard errors against textbook formulas, finite differences, the bootstrap and simulation."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tauten as tt
from tauten.data import Rows
from tauten.designs import Covariate
from tauten.inference import intervals
from tauten.inference.base import leverage
from tauten.inference.bootstrap import bootstrap
from tauten.inference.jacobians import (
    entry_jacobian,
    entry_variances,
    linear_at_origin,
    linear_jacobian,
)
from tauten.losses import Loss
from tauten.problem import Problem
from tauten.robust import Huber
from tauten.tucker import Affine, Tucker

PARTS = ("estimate", "stderr", "lower", "upper")


def point(rng, shape, rank, linear=None):
    core = rng.normal(size=rank)
    factors = [rng.normal(size=s) for s in zip(shape, rank, strict=True)]
    return (
        Tucker(core, factors) if linear is None else Affine(core, factors, rng.normal(size=linear))
    )


def flat(theta):
    return np.concatenate([b.ravel() for b in theta.blocks])


def unflat(theta, vector):
    ends = np.cumsum([b.size for b in theta.blocks])[:-1]
    parts = zip(np.split(vector, ends), theta.blocks, strict=True)
    return theta.with_blocks([v.reshape(b.shape) for v, b in parts])


def numerical_jacobian(fn, theta, h=1e-6):
    x = flat(theta)
    columns = []
    for e in np.eye(x.size):
        up, down = (fn(unflat(theta, x + s * h * e)).ravel() for s in (1, -1))
        columns.append((up - down) / (2 * h))
    return np.array(columns).T


def heteroscedastic(rng, n=80, p=4):
    X = rng.normal(size=(n, p)) + 1.0
    y = X @ rng.normal(size=p) + 2.0 + (0.2 + np.abs(X[:, 0])) * rng.normal(size=n)
    return X, y


def textbook(X, bread_weight, residual):
    """``(XᵀWX)⁻¹ Xᵀ diag(e²) X (XᵀWX)⁻¹ n / (n - p)``."""
    bread = np.linalg.inv(X.T @ (bread_weight[:, None] * X))
    n, p = X.shape
    return bread @ (X.T @ (residual[:, None] ** 2 * X)) @ bread * n / (n - p)


@pytest.fixture(scope="module")
def clean():
    """A clean sample of a tensor regression and its fit."""
    rng = np.random.default_rng(3)
    truth = tt.datasets.truth((4, 3, 2), (2, 2, 2), reading="random", rng=rng)
    data = tt.datasets.simulate(truth, 300, covariate_order=3, rng=rng)
    model = tt.TensorRegressor(rank=(2, 2, 2), robust="none").fit(data.X, data.y)
    return data, model


# ---------------------------------------------------------------------------------- the formula


def test_linear_regression_equals_hc1():
    X, y = heteroscedastic(np.random.default_rng(0))
    model = tt.TensorRegressor(robust="none", solver="newton:tol=1e-12").fit(X, y)
    found = model.confidence_intervals(X, y)
    design = np.column_stack([np.ones(len(X)), X])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    expected = np.sqrt(np.diag(textbook(design, np.ones(len(X)), y - design @ beta)))
    np.testing.assert_allclose(found.intercept.stderr, expected[0], rtol=1e-6)
    np.testing.assert_allclose(found.stderr, expected[1:], rtol=1e-6)
    np.testing.assert_allclose(found.estimate, beta[1:], rtol=1e-6)


def test_vector_covariates_and_weights_equal_weighted_hc1():
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


def test_huber_equals_the_textbook_sandwich():
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


# ------------------------------------------------------------------------------------- geometry


@pytest.mark.parametrize(
    ("shape", "rank"), [((4,), (1,)), ((3, 4), (2, 2)), ((3, 2, 4), (2, 1, 2))]
)
def test_jacobian_equals_finite_differences(shape, rank):
    theta = point(np.random.default_rng(0), shape, rank)
    expected = numerical_jacobian(lambda t: t.full(), theta)
    columns, values = entry_jacobian(theta, np.arange(math.prod(shape)))
    dense = np.zeros_like(expected)
    np.put_along_axis(dense, columns, values, axis=1)
    np.testing.assert_allclose(dense, expected, atol=1e-8)


@pytest.mark.parametrize("center", [False, True])
def test_linear_jacobian_equals_finite_differences(center):
    rng = np.random.default_rng(1)
    theta = point(rng, (3, 4, 2), (2, 2, 2), linear=(3, 2))
    middle = rng.normal(size=(3, 4)) if center else None
    expected = numerical_jacobian(lambda t: linear_at_origin(t, middle), theta)
    np.testing.assert_allclose(linear_jacobian(theta, middle), expected, atol=1e-8)


def test_variances_do_not_depend_on_the_chunks(monkeypatch):
    rng = np.random.default_rng(2)
    theta = point(rng, (3, 5, 4), (2, 2, 2))
    root = rng.normal(size=(flat(theta).size,) * 2)
    whole = entry_variances(theta, root @ root.T)
    jacobian = numerical_jacobian(lambda t: t.full(), theta)
    expected = np.sum((jacobian @ root) ** 2, axis=1).reshape(theta.shape)
    np.testing.assert_allclose(whole, expected, rtol=1e-6)
    monkeypatch.setattr("tauten.inference.jacobians.CHUNK_SIZE", 1500)
    np.testing.assert_allclose(entry_variances(theta, root @ root.T), whole, rtol=1e-12)


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


@pytest.mark.parametrize("scale", [1e-3, 1e4])
@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_errors_scale_with_the_responses(scale, method):
    data = tt.datasets.make_model("I", 120, shape=(4, 3, 2), noise="t:2", rng=8)
    options = {"method": method, "n_boot": 10, "random_state": 0}
    found = []
    for y in (data.y, scale * data.y):
        model = tt.TensorRegressor(solver="newton:tol=1e-9").fit(data.X, y)
        found.append(model.confidence_intervals(data.X, y, **options))
    for name in PARTS:
        small, large = (getattr(f, name) for f in found)
        np.testing.assert_allclose(large, scale * small, rtol=1e-3, atol=1e-6 * scale)


def test_what_the_data_do_not_tell_has_an_infinite_error():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 4))
    X[:, 2] = 0.0
    y = X @ [1.0, -1.0, 0.0, 0.5] + rng.normal(size=60)
    model = tt.TensorRegressor(robust="none").fit(X, y)
    found = model.confidence_intervals(X, y)
    np.testing.assert_array_equal(np.isinf(found.stderr), [False, False, True, False])
    assert np.isfinite(found.intercept.stderr)


# ------------------------------------------------------------------------------------ bootstrap


def test_bootstrap_agrees_with_the_sandwich(clean):
    data, model = clean
    plain = model.confidence_intervals(data.X, data.y)
    options = {"method": "bootstrap", "n_boot": 100, "random_state": 0}
    boot = model.confidence_intervals(data.X, data.y, **options)
    ratio = boot.stderr / plain.stderr
    assert abs(np.median(ratio) - 1) < 0.1
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4
    assert 0.8 < boot.intercept.stderr / plain.intercept.stderr < 1.2


def test_percentiles_are_quantiles_of_the_replicates(clean, monkeypatch):
    data, model = clean
    options = {"n_boot": 30, "random_state": 1, "level": 0.8}
    monkeypatch.setattr("tauten.inference.jacobians.CHUNK_SIZE", 100)
    found = model.confidence_intervals(data.X, data.y, method="percentile", **options)
    problem = model._problem(data.X, data.y, model.loss_, None, None)
    points = bootstrap(problem, model._point(problem), n_boot=30, rng=1)
    draws = np.stack([p.full() for p in points])
    np.testing.assert_allclose(found.stderr, draws.std(axis=0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(found.lower, np.quantile(draws, 0.1, axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.upper, np.quantile(draws, 0.9, axis=0), rtol=1e-6)


def test_bootstrap_repeats_with_its_seed(clean):
    data, model = clean
    options = {"method": "bootstrap", "n_boot": 3}
    first, again, other = (
        model.confidence_intervals(data.X, data.y, random_state=seed, **options).stderr
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_median_of_means_is_left_to_the_bootstrap():
    data = tt.datasets.make_model("I", 120, shape=(3, 2, 2), rng=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tt.TensorRegressor(robust="mom").fit(data.X, data.y)
        with pytest.raises(ValueError, match="method='bootstrap'"):
            model.confidence_intervals(data.X, data.y)
        options = {"method": "bootstrap", "n_boot": 5, "random_state": 0}
        found = model.confidence_intervals(data.X, data.y, **options)
    assert (found.stderr > 0).all()


# ------------------------------------------------------------------------------- the estimators


def test_intervals_are_of_the_model(clean):
    data, model = clean
    found = model.confidence_intervals(data.X, data.y, level=0.9)
    np.testing.assert_allclose(found.estimate, model.coef_)
    np.testing.assert_allclose(found.intercept.estimate, model.intercept_)
    assert found.covariate_coef is None
    assert (found.level, found.method) == (0.9, "sandwich")
    narrow = model.confidence_intervals(data.X, data.y, level=0.5)
    assert (found.upper - found.lower > narrow.upper - narrow.lower).all()


def test_centre_does_not_matter(clean):
    """The intercept is at X = 0, wherever the fit was centred."""
    data, model = clean
    problem = model._problem(data.X, data.y, model.loss_, None, None)
    found = []
    for center in (problem.design.center, problem.design.center + 1.0):
        moved = replace(problem, design=Covariate(center))
        found.append(intervals(moved, model._point(moved)))
    np.testing.assert_allclose(found[0].stderr, found[1].stderr, rtol=1e-4)
    pair = [f.intercept.stderr for f in found]
    np.testing.assert_allclose(*pair, rtol=1e-4)


def test_single_precision_agrees_with_double(clean):
    data, model = clean
    X, y = data.X.astype(np.float32), data.y.astype(np.float32)
    single = tt.TensorRegressor(rank=(2, 2, 2), robust="none").fit(X, y)
    found = single.confidence_intervals(X, y)
    expected = model.confidence_intervals(data.X, data.y)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-3)


def test_tensor_responses_and_covariates_have_parts_of_their_shapes():
    rng = np.random.default_rng(10)
    data = tt.datasets.make_model("II", 100, shape=(4, 3, 5), rng=rng)
    Z = rng.normal(size=(100, 2))
    model = tt.TensorRegressor().fit(data.X, data.y, covariates=Z)
    for method in ("sandwich", "percentile"):
        found = model.confidence_intervals(
            data.X, data.y, covariates=Z, method=method, n_boot=5, random_state=0
        )
        parts = (found, found.intercept, found.covariate_coef)
        for part, shape in zip(parts, [(4, 3, 5), (5,), (2, 5)], strict=True):
            assert {getattr(part, name).shape for name in PARTS} == {shape}


def test_missing_entries_widen_the_intervals():
    data = tt.datasets.make_model("IV", 40, shape=(4, 3, 3), rng=11)
    Y = data.y.copy()
    Y[np.random.default_rng(0).random(Y.shape) < 0.4] = np.nan
    full, part = (tt.TensorPCA(replicates=True).fit(y).confidence_intervals(y) for y in (data.y, Y))
    assert 1.1 < np.median(part.stderr / full.stderr) < 1.6


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"level": 1.0}, ValueError, "level must be"),
        ({"level": 0}, ValueError, "level must be"),
        ({"level": "high"}, ValueError, "level must be"),
        ({"method": "magic"}, ValueError, "method must be one of sandwich"),
        ({"n_boot": 1}, ValueError, "n_boot must be at least 2"),
        ({"n_boot": 2.5}, TypeError, "n_boot must be an integer"),
        ({"covariates": np.ones((300, 1))}, ValueError, "covariates must have as many columns"),
        ({"sample_weight": np.ones(5)}, ValueError, "sample_weight"),
    ],
)
def test_bad_options(clean, options, error, match):
    data, model = clean
    with pytest.raises(error, match=match):
        model.confidence_intervals(data.X, data.y, **options)


def test_bad_data(clean):
    data, model = clean
    with pytest.raises(ValueError, match="X must have samples of shape"):
        model.confidence_intervals(data.X[:, :3], data.y)
    with pytest.raises(ValueError, match="same number of samples"):
        model.confidence_intervals(data.X, data.y[:-1])
    with pytest.raises(ValueError, match="data that the model was fitted to"):
        model.confidence_intervals(data.X[:-1], data.y[:-1])
    with pytest.raises(ValueError, match="data that the model was fitted to"):
        model.confidence_intervals(data.X, np.column_stack([data.y, data.y]))


def test_other_data_of_the_same_shape_are_noticed(clean):
    data, model = clean
    with pytest.warns(ConvergenceWarning, match="gradient is not zero"):
        model.confidence_intervals(data.X, data.y[::-1])


def test_unknown_labels():
    data = tt.datasets.make_model("III", 100, shape=(3, 2, 2), rng=0)
    model = tt.TensorClassifier().fit(data.X, data.y)
    with pytest.raises(ValueError, match="classes of fit"):
        model.confidence_intervals(data.X, data.y + 1)


def test_a_fit_comes_first():
    X, y = heteroscedastic(np.random.default_rng(0))
    for model in (tt.TensorRegressor(), tt.TensorClassifier()):
        with pytest.raises(NotFittedError):
            model.confidence_intervals(X, y)
    with pytest.raises(NotFittedError):
        tt.TensorPCA(replicates=True).confidence_intervals(X)


def test_one_tensor_tells_no_error():
    Y = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(ValueError, match="replicates=True"):
        tt.TensorPCA().fit(Y).confidence_intervals(Y)


def test_too_few_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 6)), rng.normal(size=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tt.TensorRegressor(robust="none").fit(X, y)
    with pytest.raises(ValueError, match="more observations than free parameters"):
        model.confidence_intervals(X, y)


# ------------------------------------------------------------------------------------- coverage


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
@pytest.mark.parametrize("model", ["I", "II"])
def test_coverage(model, noise, record_property):
    """Share of the entries of A* inside their 95% intervals, over 100 samples of 500."""
    shares = []
    for seed in range(100):
        data = tt.datasets.make_model(model, 500, noise=noise, rng=seed)
        fit = tt.TensorRegressor(rank=1).fit(data.X, data.y)
        found, truth = fit.confidence_intervals(data.X, data.y), data.truth.full()
        shares.append(np.mean((found.lower < truth) & (truth < found.upper)))
    coverage, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(len(shares))
    record_property("coverage", f"{coverage:.3f} ± {error:.3f}")
    print(f"Model {model}, {noise}: coverage {coverage:.3f}, standard error {error:.3f}")
    assert 0.92 <= coverage <= 0.97


def test_loadings_of_a_direction_have_the_errors_of_the_delta_method(rng):
    """Of ``u = a / ‖a‖`` they are those of ``(I - u uᵀ) a / ‖a‖``, for a by least squares (HC1)."""
    X, y = heteroscedastic(rng)
    model = tt.TensorRegressor(rank=1, robust="none").fit(X, y)
    (found,) = model.loading_intervals(X, y)
    design = np.column_stack([np.ones(len(y)), X])
    a, *_ = np.linalg.lstsq(design, y)
    bread, residuals = np.linalg.inv(design.T @ design), y - design @ a
    n, k = design.shape
    meat = (design * residuals[:, None] ** 2).T @ design * n / (n - k)
    norm = np.linalg.norm(a[1:])
    across = (np.eye(k - 1) - np.outer(a[1:], a[1:]) / norm**2) / norm
    wanted = np.sqrt(np.diag(across @ (bread @ meat @ bread)[1:, 1:] @ across))
    np.testing.assert_allclose(found.stderr[:, 0], wanted, rtol=1e-6)
    np.testing.assert_allclose(np.abs(found.estimate[:, 0]), np.abs(a[1:]) / norm, rtol=1e-5)


def test_loadings_vary_as_rotated_refits_do(rng):
    X = rng.normal(size=(300, 4, 3))
    A = np.outer([3.0, 2, 1, 0], [1.0, 1, 0]) + np.outer([0, 0, 2.0, -2], [0, 1.0, -1])
    y = np.tensordot(X, A, axes=2) + rng.standard_t(3, size=300)
    model = tt.TensorRegressor(rank=2).fit(X, y)
    problem, theta = model._at_fit(X, y)
    found = model.loading_intervals(X, y)
    refits = bootstrap(problem, theta, n_boot=120, solver="newton:tol=1e-4", rng=1)
    for k, part in enumerate(found):
        factors = [p.orthonormal().factors[k] for p in refits]
        rotated = [u @ orthogonal_procrustes(u, part.estimate)[0] for u in factors]
        ratio = part.stderr / np.std(rotated, axis=0)
        assert 0.85 < np.median(ratio) < 1.18
        assert 0.6 < ratio.min() < ratio.max() < 1.6


def test_loadings_of_classes_are_centred_and_finite(rng):
    X = rng.normal(size=(400, 3, 4))
    labels = np.argmax(X[:, 0] + rng.normal(size=(400, 4)), axis=1)
    solver = "newton:n_iter=300"
    model = tt.TensorClassifier(rank=(1, 2, 2), robust="none", solver=solver).fit(X, labels)
    found = model.loading_intervals(X, labels)
    np.testing.assert_allclose(found[-1].estimate.sum(axis=0), 0, atol=1e-12)
    assert all(np.isfinite(part.stderr).all() for part in found)
    assert all((part.stderr > 1e-3).all() for part in found)


def test_loadings_of_all_contrasts_leave_nothing_but_rotations(rng):
    X = rng.normal(size=(400, 4, 3))
    labels = np.argmax(X[:, 0] + rng.normal(size=(400, 3)), axis=1)
    model = tt.TensorClassifier(rank=(1, 2, 2), robust="none").fit(X, labels)
    np.testing.assert_allclose(model.loading_intervals(X, labels)[-1].stderr, 0, atol=1e-6)


def test_loadings_of_replicates(rng):
    truth = np.outer([2.0, 1, 0], [1.0, -1, 1, 0])
    Y = truth + rng.standard_t(3, size=(50, 3, 4))
    model = tt.TensorPCA(rank=1, replicates=True).fit(Y)
    found = model.loading_intervals(Y)
    for part, column in zip(found, (truth[:, 0], truth[0]), strict=True):
        direction = column / np.linalg.norm(column) * np.sign(part.estimate[0, 0])
        assert (np.abs(part.estimate[:, 0] - direction) < 4 * part.stderr[:, 0]).all()
