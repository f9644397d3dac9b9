"""Intervals of the factors against the delta method and rotated refits."""

import numpy as np
from scipy.linalg import orthogonal_procrustes

import tauten as tt
from tauten.inference.bootstrap import bootstrap


def test_loadings_of_a_direction_have_the_errors_of_the_delta_method(rng, heteroscedastic):
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
