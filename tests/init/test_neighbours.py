"""Starts of other ranks, from a fit of one."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.init import starts_near
from tauten.init.neighbours import neighbours
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.tucker import Affine, Tucker, unfold

SHAPE = (6, 5, 4)


def exact(theta, rng, n=300, Z=None):
    """A problem that a tensor solves without error."""
    X = rng.normal(size=(n, *theta.shape))
    y = np.tensordot(X, theta.full(), theta.order)
    if Z is not None:
        y = y + Z @ theta.linear
    return Problem(Rows(X, y, Z), Squared(), Covariate())


@pytest.mark.parametrize("rank", [(1, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2)])
def test_a_smaller_rank_keeps_the_largest_components(make_theta, rng, rank):
    theta = make_theta(SHAPE, (2, 2, 2))
    problem = exact(theta, rng)
    ((small,),) = neighbours([problem], [theta], [rank])
    assert small.rank == rank
    assert problem.data.reads.passes == 0
    full = theta.full()
    for k, (u, r) in enumerate(zip(small.factors, rank, strict=True)):
        left = np.linalg.svd(unfold(full, k))[0][:, :r]
        np.testing.assert_allclose(u @ u.T, left @ left.T, atol=1e-10)


@pytest.mark.parametrize("rank", [(2, 1, 2), (2, 2, 2), (2, 2, 1), (3, 3, 2), (3, 3, 3)])
def test_a_larger_rank_takes_what_the_gradient_asks_for(rng, rank):
    """From the largest component, a step is on the way to the others, in all modes that grow."""
    factors = [np.linalg.qr(rng.normal(size=(p, 3)))[0] for p in SHAPE]
    core = np.zeros((3, 3, 3))
    core[0, 0, 0], core[1, 1, 1], core[1, 0, 1], core[2, 2, 2] = 9.0, 3.0, 3.0, 2.0
    truth = Tucker(core, factors)
    theta = Tucker(core[:1, :1, :1], [u[:, :1] for u in factors])
    problem = exact(truth, rng, n=3000)
    ((large,),) = neighbours([problem], [theta], [rank])
    assert large.rank == rank
    assert problem.data.reads.passes > 1
    for u in large.factors:
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
    if rank == (2, 2, 1):  # nothing to gain: a second component has a third vector of its own
        assert large.distance(truth) < 1.01 * theta.distance(truth)
    else:
        assert large.distance(truth) < 0.8 * theta.distance(truth)


def test_new_directions_are_new(rng):
    """Where a fit is not at its end, the gradient asks most for what is there already."""
    factors = [np.linalg.qr(rng.normal(size=(p, 2)))[0] for p in SHAPE]
    core = np.zeros((2, 2, 2))
    core[0, 0, 0], core[1, 1, 1] = 9.0, 1.5
    part = Tucker(core[:1, :1, :1] / 9, [u[:, :1] for u in factors])
    problem = exact(Tucker(core, factors), rng, n=20_000)
    ((large,),) = neighbours([problem], [part], [(2, 2, 2)])
    for found, true in zip(large.factors, factors, strict=True):
        assert np.linalg.norm(found.T @ true[:, 1]) > 0.9


def test_several_fits_share_a_pass(make_theta, rng):
    theta = make_theta(SHAPE, (2, 2, 2))
    problem = exact(theta, rng)
    thetas = [make_theta(SHAPE, (1, 1, 1)) for _ in range(2)]
    ranks = [(2, 2, 1), (1, 1, 1), (2, 2, 2)]
    before = problem.data.reads.passes
    found = neighbours([problem, problem], thetas, ranks)
    assert problem.data.reads.passes == before + 2  # one over all samples, one for those looked at
    for i, one in enumerate(thetas):
        alone = neighbours([problem], [one], ranks)
        for pair, (point,) in zip(found, alone, strict=True):
            assert pair[i].distance(point) <= 1e-12 * point.norm()


def test_vector_coefficients_stay(make_theta, rng):
    tucker, Z = make_theta(SHAPE, (1, 1, 1)), rng.normal(size=(300, 2))
    theta = Affine(tucker.core, tucker.factors, np.array([5.0, -2.0]))
    problem = exact(theta, rng, Z=Z)
    for (point,) in neighbours([problem], [theta], [(2, 2, 1), (1, 1, 1)]):
        np.testing.assert_array_equal(point.linear, theta.linear)


def test_nothing_to_add_where_a_fit_is_perfect(make_theta, rng):
    theta = make_theta(SHAPE, (1, 1, 1))
    ((large,),) = neighbours([exact(theta, rng)], [theta], [(2, 2, 2)])
    assert large.rank == (2, 2, 2)
    assert large.distance(theta) <= 1e-10 * theta.norm()


def test_pca_starts_as_ever(make_theta, rng):
    from tauten.designs import Direct
    from tauten.init import decompose

    theta = make_theta(SHAPE, (2, 2, 2))
    problem = Problem(Rows(None, theta.full() + rng.normal(size=(9, *SHAPE))), Squared(), Direct())
    ((found,),) = starts_near([problem], [theta], [(3, 3, 2)])
    np.testing.assert_array_equal(found.full(), decompose(problem, (3, 3, 2)).full())
