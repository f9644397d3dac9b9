"""Starting points: of the right kind, close to the truth, and right about tangent spaces."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from tauten import Tucker, init
from tauten.data import Rows
from tauten.datasets import make_model, sample, simulate, truth
from tauten.designs import Covariate, Direct
from tauten.init.thresholding import tangent
from tauten.losses import Loss, Squared
from tauten.metrics import relative_error
from tauten.problem import Problem
from tauten.tucker import Affine

REGRESSION, PCA = sorted(init.STARTS[Covariate]), sorted(init.STARTS[Direct])


def regression(data, *, intercept=False, loss="squared", weight=None):
    """Pose a regression as the estimators do; X of these data is centred already."""
    ones = np.ones((len(data.y), 1)) if intercept else None
    return Problem(Rows(data.X, data.y, ones, weight), Loss.get(loss), Covariate())


def pca(Y):
    return Problem(Rows(None, Y), Squared(), Direct(), missing=bool(np.isnan(Y).any()))


def rng(seed=0):
    return np.random.default_rng(seed)


# ------------------------------------------------- shape and kind


@pytest.mark.parametrize("name", [*REGRESSION, "auto"])
@pytest.mark.parametrize(
    ("shape", "rank", "order", "intercept"),
    [
        ((5,), (1,), 1, True),
        ((5, 4), (2, 2), 2, False),
        ((5, 4), (2, 2), 1, True),
        ((4, 3, 2), (2, 2, 1), 3, True),
        ((4, 3, 2), (1, 2, 2), 1, False),
        ((2, 2, 2, 2, 2), (1, 2, 2, 1, 1), 3, True),
    ],
)
def test_regression_starts_have_the_shape_and_rank(name, shape, rank, order, intercept):
    data = simulate(truth(shape), 60, covariate_order=order, rng=0)
    theta = init.start(name, regression(data, intercept=intercept), rank, rng())
    assert isinstance(theta, Affine) == intercept
    assert theta.shape == shape
    assert theta.rank == rank
    assert all(np.isfinite(block).all() for block in theta.blocks)
    assert theta.norm() > 0
    if intercept:
        assert theta.linear.shape == (1, *shape[order:])


@pytest.mark.parametrize("name", [*PCA, "auto"])
@pytest.mark.parametrize("copies", [1, 2, 7])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    ("shape", "rank"), [((5,), (1,)), ((5, 4), (2, 2)), ((4, 3, 3), (2, 1, 2))]
)
def test_pca_starts_have_the_shape_and_rank(name, copies, missing, shape, rank):
    Y = truth(shape).full() + rng().normal(size=(copies, *shape))
    Y[rng(1).random(Y.shape) < missing] = np.nan
    theta = init.start(name, pca(Y), rank, rng())
    assert type(theta) is Tucker
    assert theta.shape == shape
    assert theta.rank == rank
    assert all(np.isfinite(block).all() for block in theta.blocks)


@pytest.mark.parametrize("name", REGRESSION)
def test_starts_keep_single_precision(name):
    data = make_model("II", 50, shape=(4, 3, 2), rng=0)
    Z = np.ones((50, 1), np.float32)
    rows = Rows(data.X.astype(np.float32), data.y.astype(np.float32), Z)
    theta = init.start(name, Problem(rows, Squared(), Covariate()), (1, 1, 1), rng())
    assert {block.dtype for block in theta.blocks} == {np.dtype(np.float32)}


@pytest.mark.parametrize("loss", ["poisson", "gamma", "logistic", "multinomial", "huber"])
def test_starts_of_every_loss(loss):
    order = 1 if loss == "multinomial" else 2
    contrast = np.array([[1.0], [-1.0], [0.0]])  # classes have no common level to find
    point = Tucker(np.full((1, 1), 0.4), [np.ones((5, 1)), contrast])
    data = simulate(point, 400, covariate_order=order, loss=loss, rng=0)
    theta = init.start("auto", regression(data, intercept=True, loss=loss), (1, 1), rng())
    cosine = np.sum(theta.full() * point.full()) / theta.norm() / point.norm()
    assert cosine > 0.8
    assert 0.3 < theta.norm() / point.norm() < 3


# ------------------------------------------------- closeness


@pytest.mark.parametrize("model", ["I", "II"])
@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
@pytest.mark.parametrize("seed", range(3))
def test_iht_is_close_under_any_noise(model, noise, seed):
    data = make_model(model, 500, noise=noise, rng=seed)
    theta = init.iht(regression(data, intercept=True), (1, 1, 1))
    assert relative_error(Tucker(theta.core, theta.factors), data.truth) < 0.35


@pytest.mark.parametrize("seed", range(3))
def test_iht_is_close_for_higher_ranks_and_wild_covariates(seed):
    point = truth((6, 5, 4), 2, reading="random", rng=seed)
    data = simulate(point, 500, covariate_order=3, covariates="t:2.1", noise="t:1.5", rng=seed)
    assert relative_error(init.iht(regression(data), (2, 2, 2)), point) < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_iht_withstands_bad_leverage(seed):
    data = simulate(truth((5, 4)), 300, covariate_order=2, contamination=0.1, rng=seed)
    assert relative_error(init.iht(regression(data), (1, 1)), data.truth) < 0.15


def test_spectral_has_the_right_length():
    data = make_model("I", 4000, shape=(5, 4), rng=0)
    assert 0.7 < init.spectral(regression(data), (1, 1)).norm() / data.truth.norm() < 1.5


def test_iht_without_noise_finds_the_tensor():
    point = truth((5, 4, 3), 2, reading="random", rng=0)
    X = sample("normal", (400, 5, 4, 3), rng=0)
    y = np.tensordot(X, point.full(), axes=3)
    theta = init.iht(Problem(Rows(X, y), Squared(), Covariate()), (2, 2, 2), n_iter=200, tol=1e-9)
    assert relative_error(theta, point) < 1e-6


def test_iht_finds_the_intercept():
    """Of covariates off centre, where it is not the location of y."""
    data = make_model("II", 400, shape=(5, 4, 3), rng=0)
    data.X[...] += 0.5
    data.y[...] = np.tensordot(data.X, data.truth.full(), axes=2) + np.array([10.0, -20.0, 30.0])
    theta = init.iht(regression(data, intercept=True), (1, 1, 1))
    np.testing.assert_allclose(theta.linear, [[10.0, -20.0, 30.0]], atol=1.0)
    assert (np.median(data.y, axis=0) - [10.0, -20.0, 30.0]).min() > 2


def test_iht_weighs_the_samples():
    """Two populations; the one with weight counts."""
    one, two = (make_model("I", 300, shape=(5, 4), rng=seed) for seed in (0, 1))
    X, y = np.concatenate([one.X, two.X]), np.concatenate([one.y, -two.y])
    weight = np.repeat([1.0, 0.0], 300)
    theta = init.iht(Problem(Rows(X, y, None, weight), Squared(), Covariate()), (1, 1))
    assert relative_error(theta, one.truth) < 0.2


def test_iht_improves_on_spectral():
    errors = []
    for seed in range(4):
        problem_data = make_model("I", 400, shape=(6, 5, 4), noise="t:1.5", rng=seed)
        problem = regression(problem_data)
        errors.append(
            [
                relative_error(start(problem, (1, 1, 1)), problem_data.truth)
                for start in (init.spectral, init.iht)
            ]
        )
    spectral, iht = np.mean(errors, axis=0)
    assert spectral < 0.8  # far better than zero, which has error one
    assert iht < 0.5 * spectral


# ------------------------------------------------- random and given starts


def test_random_depends_on_the_generator_only():
    data = make_model("I", 60, shape=(5, 4), rng=0)
    problem = regression(data)
    one, same, other = (init.random(problem, (2, 2), rng(seed)) for seed in (3, 3, 4))
    for a, b in zip(one.blocks, same.blocks, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.distance(other) > 0.1 * one.norm()
    assert not np.allclose(one.core, other.core)
    np.testing.assert_allclose(one.norm(), init.iht(problem, (2, 2)).norm(), rtol=1e-10)
    for u in one.factors:
        np.testing.assert_allclose(u.T @ u, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("name", ["iht", "spectral"])
def test_the_others_use_no_randomness(name):
    problem = regression(make_model("I", 60, shape=(5, 4), rng=0))
    one, two = (init.start(name, problem, (1, 1), rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(one.full(), two.full())


def test_given_start_is_completed_not_changed():
    data = make_model("I", 60, shape=(5, 4), rng=0)
    data.y[...] += 7
    theta = init.start(data.truth, regression(data, intercept=True), (1, 1), rng())
    assert isinstance(theta, Affine)
    np.testing.assert_array_equal(theta.full(), data.truth.full())
    np.testing.assert_allclose(theta.linear, [np.median(data.y)])


def test_given_start_takes_the_precision_of_the_data():
    data = make_model("I", 60, shape=(5, 4), rng=0)
    rows = Rows(data.X.astype(np.float32), data.y.astype(np.float32))
    theta = init.start(data.truth, Problem(rows, Squared(), Covariate()), (1, 1), rng())
    assert {block.dtype for block in theta.blocks} == {np.dtype(np.float32)}


@pytest.mark.parametrize("shape", [(4, 5), (5, 4, 1), (5,)])
def test_given_start_of_another_shape(shape):
    problem = regression(make_model("I", 60, shape=(5, 4), rng=0))
    with pytest.raises(ValueError, match=r"init must have the shape \(5, 4\)"):
        init.start(truth(shape), problem, (1, 1), rng())


def test_given_start_that_is_not_finite():
    problem = regression(make_model("I", 60, shape=(5, 4), rng=0))
    bad = Tucker(np.full((1, 1), np.nan), [np.ones((5, 1)), np.ones((4, 1))])
    with pytest.raises(ValueError, match="init must be finite"):
        init.start(bad, problem, (1, 1), rng())


@pytest.mark.parametrize("name", ["decompose", "nuclea", "", None, 3, ["iht"], np.ones((5, 4))])
def test_unknown_starts(name):
    problem = regression(make_model("I", 60, shape=(5, 4), rng=0))
    with pytest.raises((ValueError, TypeError), match=r"init must be .*iht, nuclear, .*spectral"):
        init.start(name, problem, (1, 1), rng())


def test_regression_starts_are_not_for_pca():
    with pytest.raises(ValueError, match=r"init must be .*decompose, pseudo-huber, random"):
        init.start("iht", pca(np.ones((1, 3, 2))), (1, 1), rng())


@pytest.mark.parametrize("loss", ["poisson", "logistic", "multinomial"])
def test_intercept_of_a_class_or_count_that_never_occurs(loss):
    """The link of its share is infinite; the start must not be."""
    X = rng().normal(size=(40, 3))
    y = np.zeros((40, 3)) if loss == "multinomial" else np.zeros(40)
    if loss == "multinomial":
        y[:, 0] = 1.0
    problem = Problem(Rows(X, y, np.ones((40, 1))), Loss.get(loss), Covariate())
    point = Tucker(np.ones((1,) * y.ndim), [np.ones((3, 1))] * y.ndim)
    theta = init.with_linear(problem, point)
    assert np.isfinite(theta.linear).all()
    mean = problem.loss.mean(theta.linear)
    np.testing.assert_allclose(mean, y[:1], atol=0.05)


# ------------------------------------------------- PCA


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("seed", range(3))
def test_decompose_is_close_without_a_third_of_the_entries(copies, seed):
    point = truth((10, 9, 8), 1, norm=30.0)
    Y = point.full() + rng(seed).normal(size=(copies, 10, 9, 8))
    Y[rng(seed + 9).random(Y.shape) < 0.3] = np.nan
    assert relative_error(init.decompose(pca(Y), (1, 1, 1)), point) < 0.45


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize("seed", range(3))
def test_decompose_is_close_under_heavy_tails(copies, seed):
    point = truth((10, 9, 8), 1, norm=40.0 if copies == 1 else 4.0)
    Y = point.full() + rng(seed).standard_t(1.2, size=(copies, 10, 9, 8))
    plain = relative_error(Tucker(Y.mean(axis=0), [np.eye(p) for p in (10, 9, 8)]), point)
    assert relative_error(init.decompose(pca(Y), (1, 1, 1)), point) < min(0.7, plain / 2)


def test_decompose_of_replicates_without_noise():
    point = truth((5, 4, 3), 2, reading="random", rng=0)
    Y = np.repeat(point.full()[None], 4, axis=0)
    np.testing.assert_allclose(init.decompose(pca(Y), (2, 2, 2)).full(), point.full(), atol=1e-10)


def test_decompose_where_an_entry_is_never_seen():
    point = truth((6, 5), 1, norm=10.0)
    Y = np.repeat(point.full()[None], 4, axis=0)
    Y[:, 0, 0] = np.nan
    assert relative_error(init.decompose(pca(Y), (1, 1)), point) < 0.1


# ------------------------------------------------- the tangent space


def projected(theta, tensor):
    """The tangent part of a tensor, from what it makes of each block."""
    blocks = oracle.Point(theta.blocks).partial_gradients(tensor)
    return tangent(theta, theta.with_blocks(blocks))


@pytest.mark.parametrize(
    ("shape", "rank"),
    [
        ((5,), (1,)),
        ((5, 4), (1, 1)),
        ((5, 4), (2, 2)),
        ((5, 4, 3), (2, 2, 2)),
        ((5, 4, 3), (1, 2, 2)),
        ((4, 3, 3, 2), (2, 1, 2, 2)),
        ((3, 2, 2, 2, 2), (2, 2, 1, 2, 2)),
        ((4, 3), (3, 3)),
    ],
)
def test_tangent_is_the_projection_on_all_derivatives(shape, rank, make_theta):
    theta = make_theta(shape, rank).orthonormal()
    tensor = rng(1).normal(size=shape)
    found = projected(theta, tensor)
    np.testing.assert_allclose(
        found, oracle.tangent(theta.blocks, theta.order, tensor), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(projected(theta, theta.full()), theta.full(), atol=1e-9)


def test_tangent_at_a_point_of_lower_rank():
    """A core that is not of full rank has a smaller tangent space, and no infinite step."""
    theta = Tucker(np.diag([1.0, 0.0]), [np.eye(4, 2), np.eye(3, 2)])
    tensor = rng(1).normal(size=(4, 3))
    found = projected(theta, tensor)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(projected(theta, found), found, atol=1e-9)
