"""Coordinates along the steps that move A, against a basis of them that is written out."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from tauten.tucker import Tucker


def test_coordinates_are_along_a_basis_of_the_steps_that_move_the_tensor(make_theta, rng):
    theta = make_theta((5, 4), (2, 2), linear=(2,)).canonical()
    basis = oracle.horizontal_basis(theta.blocks, theta.order)
    own = theta.tangent.outward(np.eye(basis.shape[1]))
    np.testing.assert_allclose(own.T @ own, np.eye(basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(own @ own.T, basis @ basis.T, atol=1e-12)
    columns = rng.normal(size=(len(basis), 3))
    np.testing.assert_allclose(theta.tangent.inward(columns), own.T @ columns, atol=1e-12)
    assert theta.tangent.size == basis.shape[1]


@pytest.mark.parametrize(
    ("shape", "rank"),
    [((4,), (1,)), ((3, 4), (3, 3)), ((2, 2, 3), (2, 1, 2)), ((1, 5), (1, 1)), ((6, 6), (2, 2))],
)
def test_whatever_the_factors_are(shape, rank, rng):
    """Of full rank, where nothing is left to move, or columns of the unit matrix."""
    random = [np.linalg.qr(rng.normal(size=(p, r)))[0] for p, r in zip(shape, rank, strict=True)]
    units = [np.eye(p, r) for p, r in zip(shape, rank, strict=True)]
    for factors in (random, units, [-u for u in units], [u[::-1] for u in units]):
        theta = Tucker(rng.normal(size=rank), factors)
        basis = oracle.horizontal_basis(theta.blocks, theta.order)
        own = theta.tangent.outward(np.eye(basis.shape[1]))
        np.testing.assert_allclose(own @ own.T, basis @ basis.T, atol=1e-12)
        np.testing.assert_allclose(theta.tangent.inward(own), np.eye(basis.shape[1]), atol=1e-12)
