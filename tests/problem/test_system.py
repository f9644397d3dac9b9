"""Linear systems of the blocks: the same along steps that move A, and never singular."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from tauten.problem import tangent_part, tangent_system
from tauten.problem.system import expected_error


@pytest.fixture
def theta(make_theta):
    return make_theta((5, 4), (2, 2), linear=(2,)).canonical()


@pytest.fixture
def basis(theta):
    return oracle.horizontal_basis(theta.blocks, theta.order)


def curved(rng, size, rank):
    root = rng.normal(size=(size, rank))
    return root @ root.T


def test_the_part_along_steps_that_move_the_tensor(theta, basis, rng):
    matrix = rng.normal(size=(len(basis), len(basis)))
    part, P = tangent_part(theta, matrix), basis @ basis.T
    there = theta.tangent.outward(theta.tangent.outward(part).T).T
    np.testing.assert_allclose(there, P @ matrix @ P, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 5, 60])
def test_the_system_is_positive_and_says_the_same_of_such_steps(rank, theta, basis, rng):
    """Whether the data tell something of all directions, of some, or of none."""
    matrix = curved(rng, len(basis), rank)
    system = tangent_system(theta, matrix)
    near = {"rtol": 0, "atol": 1e-6 * np.abs(matrix).max() + 1e-300}
    np.testing.assert_allclose(system, tangent_part(theta, matrix), **near)
    # Where the data say nothing it has the units of the entries, not of what rounding leaves there.
    least = 0.9e-7 * np.diag(matrix).min() if rank else 0.0
    assert np.linalg.eigvalsh(system)[0] > least


def test_expected_error_by_its_formula(theta, basis, rng):
    slope, moment = (curved(rng, len(basis), 60) for _ in range(2))
    slope += rng.normal(size=slope.shape)  # of bent gradients it need not be symmetric
    inverse = basis @ np.linalg.inv(basis.T @ slope @ basis) @ basis.T
    move = oracle.tensor_jacobian(theta.blocks, theta.order)
    expected = np.trace(move @ inverse @ moment @ inverse.T @ move.T)
    assert expected_error(theta, slope, moment) == pytest.approx(expected, rel=1e-3)
