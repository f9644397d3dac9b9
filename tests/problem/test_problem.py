"""A problem with a ridge, a prior or weights, against formulas written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Loss, Squared
from tauten.problem import Problem, gradients, scores
from tauten.problem.samplewise import Kernel
from tauten.robust import Robustifier, Shrink, Truncate
from tauten.tucker import Tucker


@pytest.fixture
def theta(make_theta):
    return make_theta((4, 3), (2, 2))


@pytest.fixture
def make(rng):
    """Make a weighted problem of 30 samples with a loss."""

    def problem(loss="squared", **options):
        X, weight = rng.normal(size=(30, 4, 3)), rng.uniform(0.5, 2.0, size=30)
        y = Loss.get(loss).draw(X[:, 0, 0], rng)
        return Problem(Rows(X, y, None, weight), Loss.get(loss), Covariate(), **options)

    return problem


def joined(point):
    return np.concatenate([np.ravel(block) for block in point.blocks])


def moved(theta, step):
    parts = theta.split(joined(theta) + step)
    return theta.with_blocks(parts)


def test_the_full_gradient_is_with_the_ridge(make, theta):
    problem = make(ridge=0.7)
    X, weight = problem.data.X, problem.data.weight
    residual = np.tensordot(X, theta.full(), axes=2) - problem.data.y
    mean = np.einsum("n,n,nij->ij", weight, residual, X) / weight.sum()
    found = problem.gradient(theta, curvature=True).tensor
    np.testing.assert_allclose(found, mean + 0.7 * theta.full(), atol=1e-12)


def test_the_full_gradient_is_that_of_the_shrunk_samples(make, theta):
    problem = make(robust=Shrink(2.0).calibrate())
    X, y, weight = problem.data.X, problem.data.y, problem.data.weight
    factors = np.minimum(1, 2 / np.linalg.norm(X, axis=(1, 2)))
    assert 5 < np.count_nonzero(factors < 1) < 30
    residual = factors * (np.tensordot(X, theta.full(), axes=2) - y)
    mean = np.einsum("n,n,nij->ij", weight, factors * residual, X) / weight.sum()
    np.testing.assert_allclose(problem.gradient(theta, curvature=True).tensor, mean, atol=1e-12)


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_curvature_along_a_direction_with_a_prior(make, theta, rng, loss, prior):
    """The matrix times it: of the samples with their pseudo-observations."""
    problem = make(loss, reduce_bias=prior and loss == "logistic")
    direction = theta.map(lambda block: rng.normal(size=block.shape))
    expected = problem.curvature(theta) @ joined(direction)
    found = joined(problem.curvature_map(theta)(direction))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_curvature_along_a_direction_with_a_ridge(make, theta, rng):
    """What the ridge adds is the second derivative of ½ λ ‖A‖² along it."""
    plain = make()
    problem = replace(plain, ridge=0.7)
    direction = theta.map(lambda block: rng.normal(size=block.shape))
    added = joined(problem.curvature_map(theta)(direction)) - joined(
        plain.curvature_map(theta)(direction)
    )

    def penalty(point):
        return 0.35 * np.sum(point.full() ** 2)

    d, h = joined(direction), 1e-4
    for i in range(0, len(d), 3):
        e = np.eye(len(d))[i]
        corners = [penalty(moved(theta, h * (a * d + b * e))) for a in (1, -1) for b in (1, -1)]
        second = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h)
        assert added[i] == pytest.approx(second, abs=1e-4 * np.abs(added).max())


@pytest.mark.parametrize("robust", ["none", "huber:nu=0.4", "truncate:tau=0.3", "shrink:omega=3"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "poisson"])
def test_slope_is_the_derivative_of_the_bent_gradient(make_theta, make_y, rng, loss, robust):
    """In the core, as predictors are linear in it: then it is the whole derivative."""
    loss, theta = Loss.get(loss), make_theta((4, 3), (2, 2))
    X, y, weight = rng.normal(size=(9, 4)), make_y(loss, (9, 3)), rng.uniform(0.5, 2.0, size=9)
    robust = Robustifier.get(robust).calibrate()
    problem = Problem(Rows(X, y, None, weight), loss, Covariate(), robust)
    matrix, h = problem.curvature(theta, slope=True)[:4, :4], 1e-6
    for column, unit in zip(matrix.T, np.eye(4, len(joined(theta))), strict=True):
        ahead, back = (
            np.ravel(problem.gradient(moved(theta, t * unit)).blocks.core) for t in (h, -h)
        )
        np.testing.assert_allclose(column, (ahead - back) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_the_prior_is_as_many_samples_of_no_class_as_hat_values(ridge, rng):
    """Firth (1993), for a vector: the hat values of logistic regression, by hand."""
    X, beta = rng.normal(size=(30, 3)), np.array([1.0, -0.5, 0.8])
    y, weight = (rng.random(30) < 0.5).astype(float), rng.uniform(0.5, 2.0, size=30)
    theta = Tucker(np.array([np.linalg.norm(beta)]), [beta[:, None] / np.linalg.norm(beta)])
    p = 1 / (1 + np.exp(-X @ beta))
    information = (X.T * (weight * p * (1 - p))) @ X + ridge * weight.sum() * np.eye(3)
    hat = p * (1 - p) * np.einsum("ni,ij,nj->n", X, np.linalg.inv(information), X)
    undecided = Rows(X, np.full(30, 0.5), None, weight * hat)

    plain = Problem(Rows(X, y, None, weight), Loss.get("logistic"), Covariate(), ridge=ridge)
    prior, extra = replace(plain, reduce_bias=True), replace(plain, data=undecided, ridge=0.0)
    number = np.sum(weight * hat) / np.sum(weight)
    for of in (lambda q: joined(q.gradient(theta).blocks), lambda q: q.curvature(theta)):
        np.testing.assert_allclose(of(prior) - of(plain), number * of(extra), rtol=1e-5, atol=1e-8)


def test_problems_that_differ_in_weights_alone_sweep_the_samples_once(
    make, theta, make_theta, rng, monkeypatch
):
    """Each with the gradient that it has alone; another point is another sweep."""
    problem = make(robust=Truncate(0.5).calibrate())
    others = [problem.data.reweight(rng.exponential(size=30)) for _ in range(3)]
    problems = [problem, *(replace(problem, data=data) for data in others)]
    points = [theta, theta, make_theta((4, 3), (2, 2)), theta]
    alone = [p.gradient(t, curvature=True) for p, t in zip(problems, points, strict=True)]
    swept, linearise = [], Kernel.linearise

    def counted(kernel, point, chunk):
        swept.append(point)
        return linearise(kernel, point, chunk)

    monkeypatch.setattr(Kernel, "linearise", counted)
    together = gradients(problems, points, curvature=True)
    assert len(swept) == 2
    for one, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(joined(found.blocks), joined(one.blocks))
        assert (found.value, found.truncated) == (one.value, one.truncated)
        for name in ("curvature", "correction"):
            np.testing.assert_array_equal(getattr(found, name), getattr(one, name))
        np.testing.assert_allclose(found.tensor, one.tensor, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("robust", [Robustifier(), Robustifier.get("shrink:omega=2")])
def test_scores_of_several_points_are_those_of_each(make_theta, rng, n, robust):
    """Also of more points than samples, of shrunk samples and around a centre."""
    data = Rows(rng.normal(size=(n, 4, 3)), rng.normal(size=n))
    design = Covariate(center=rng.normal(size=(4, 3)))
    problem = Problem(data, Loss.get("squared"), design, robust.calibrate())
    points = [make_theta((4, 3), (2, 2)) for _ in range(5)]
    scale = robust.calibrate().shrink(lambda: np.linalg.norm(data.X - design.center, axis=(1, 2)))
    scale = np.ones(n) if scale is None else scale
    for point, found in zip(points, scores([problem] * 5, points), strict=True):
        eta = np.tensordot(data.X - design.center, point.full(), axes=2)
        np.testing.assert_allclose(found, scale * (eta - data.y), atol=1e-12)


def test_nothing_of_x_is_read_at_zero(rng):
    """Predictors there are zeros, of the shape that they have elsewhere."""
    X, design = rng.normal(size=(6, 4, 3)), Covariate(rng.normal(size=(4, 3)))
    for shape in ((4, 3), (4, 3, 2)):
        there = design.inner(rng.normal(size=shape), X, rng.uniform(size=6))
        at_zero = design.inner(np.zeros(shape), X)
        np.testing.assert_array_equal(at_zero, np.zeros(there.shape))


@pytest.mark.parametrize("robust", ["none", "truncate:tau=1e9", "truncate:tau=0.5", "huber:nu=0.5"])
def test_influence_is_what_is_cut_of_each_gradient(make, theta, robust):
    problem = replace(make(), robust=Robustifier.get(robust).calibrate())
    score = np.tensordot(problem.data.X, theta.full(), axes=2) - problem.data.y
    bent = problem.robust.score(score)
    expected = []
    for i in range(problem.data.n):
        _, pullback = Covariate().linearise(theta, problem.data.X[i : i + 1])
        raw, left = (list(pullback(s[i : i + 1])) for s in (score, bent))
        cut = [problem.robust.sample(g, k) for k, g in enumerate(left)]
        sizes = [np.sqrt(sum(np.sum(g**2) for g in blocks)) for blocks in (cut, raw)]
        expected.append(1 - sizes[0] / sizes[1])
    np.testing.assert_allclose(problem.influence(theta), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("of_x", "of_y", "plain", "curved"),
    [
        ((4, 3), (), 19, 19),  # 4·2 + 3·2 + 2·2, and the response
        ((4,), (3,), 21, 39),  # each of two columns of the last factor has its own
        (None, (4, 3), 30, 30),
    ],
)
def test_chunks_of_passes_with_curvature_are_smaller(of_x, of_y, plain, curved, make_theta):
    """As more is made of a sample, which decides how many of them are a chunk."""
    theta, n = make_theta((*(of_x or ()), *of_y), (2, 2)), 5
    X = None if of_x is None else np.ones((n, *of_x))
    design = Direct() if X is None else Covariate()
    asked = []

    class Watched(Rows):
        def map_sum(self, fn, width=None):
            asked.append(width)
            return super().map_sum(fn, width)

    problem = Problem(Watched(X, np.ones((n, *of_y))), Squared(), design)
    problem.gradient(theta)
    problem.gradient(theta, curvature=True)
    problem.curvature(theta)
    problem.scatter(theta)
    assert asked == [plain, curved, curved, curved]


def test_a_point_of_rank_zero_has_a_gradient(make_theta, rng):
    data, theta = Rows(rng.normal(size=(20, 4, 3)), rng.normal(size=20)), make_theta((4, 3), (0, 2))
    found = Problem(data, Squared(), Covariate(), Truncate(1.0).calibrate()).gradient(theta)
    assert found.truncated == (0, 0, 0)
    assert not np.any(found.blocks.factors[1])
