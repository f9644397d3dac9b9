"""The curvature of the set of low-rank tensors against its definition."""

from itertools import pairwise

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Squared
from tauten.manifold import manifold_curvature
from tauten.problem import Problem
from tauten.solver import Newton
from tauten.tucker import Affine, Tucker


def point(rng, shape, rank):
    factors = [rng.normal(size=(p, r)) for p, r in zip(shape, rank, strict=True)]
    return Tucker(rng.normal(size=rank), factors)


@pytest.mark.parametrize(
    ("shape", "rank"),
    [((5,), (1,)), ((4, 3), (2, 2)), ((4, 3, 5), (2, 3, 4)), ((2,) * 4, (1,) * 4)],
)
def test_it_is_the_second_derivative_of_an_inner_product(shape, rank, rng):
    theta, tensor = point(rng, shape, rank), rng.normal(size=shape)
    matrix = manifold_curvature(theta, tensor)

    def inner(step):
        moved = theta.with_blocks(
            [b + s for b, s in zip(theta.blocks, theta.split(step), strict=True)]
        )
        return np.sum(tensor * moved.full())

    size = len(matrix)
    eye = np.eye(size)
    for i, j in rng.integers(size, size=(40, 2)):
        # exact for i != j: A is linear in each entry; for i = j too, and zero
        corners = inner(eye[i] + eye[j]) - inner(eye[i]) - inner(eye[j]) + inner(np.zeros(size))
        np.testing.assert_allclose(matrix[i, j], corners, atol=1e-10)


def test_vector_coefficients_do_not_bend(rng):
    theta = point(rng, (4, 3), (2, 2))
    tensor = rng.normal(size=(4, 3))
    affine = Affine(theta.core, theta.factors, np.zeros((2,)))
    matrix, alone = (manifold_curvature(t, tensor) for t in (affine, theta))
    np.testing.assert_array_equal(matrix[:-2, :-2], alone)
    assert not matrix[-2:].any()
    assert not matrix[:, -2:].any()


def test_newton_ends_quadratically_where_gauss_newton_creeps(rng):
    """Components of A as small as the noise: a step's error is squared from one to the next."""
    truth = point(rng, (6, 5, 4), (2, 2, 2)).canonical()
    truth = truth.map(lambda block: block / truth.norm() if block.ndim == 3 else block)
    X = rng.normal(size=(400, 6, 5, 4))
    y = np.tensordot(X, truth.full(), axes=3) + rng.normal(size=400)
    result = Newton(tol=1e-12).run(Problem(Rows(X, y), Squared(), Covariate()), truth)
    changes = [iteration.change for iteration in result.history]
    assert result.converged
    near = [(a, b) for a, b in pairwise(changes) if 1e-7 < a < 1e-2]
    assert near
    assert all(b < max(100 * a**2, 1e-13) for a, b in near)
