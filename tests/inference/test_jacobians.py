"""Derivatives of entries and vector coefficients against finite differences."""

import math

import numpy as np
import pytest

from tauten.inference.jacobians import (
    entry_jacobian,
    entry_variances,
    linear_at_origin,
    linear_jacobian,
)
from tauten.tucker import Affine, Tucker


def point(rng, shape, rank, linear=None):
    core = rng.normal(size=rank)
    factors = [rng.normal(size=s) for s in zip(shape, rank, strict=True)]
    return (
        Tucker(core, factors) if linear is None else Affine(core, factors, rng.normal(size=linear))
    )


def numerical_jacobian(fn, theta, h=1e-6):
    x = theta.flat()
    columns = []
    for e in np.eye(x.size):
        up, down = (fn(theta.with_blocks(theta.split(x + s * h * e))).ravel() for s in (1, -1))
        columns.append((up - down) / (2 * h))
    return np.array(columns).T


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
    root = rng.normal(size=(theta.flat().size,) * 2)
    whole = entry_variances(theta, root @ root.T)
    jacobian = numerical_jacobian(lambda t: t.full(), theta)
    expected = np.sum((jacobian @ root) ** 2, axis=1).reshape(theta.shape)
    np.testing.assert_allclose(whole, expected, rtol=1e-6)
    monkeypatch.setattr("tauten.inference.jacobians.CHUNK_SIZE", 1500)
    np.testing.assert_allclose(entry_variances(theta, root @ root.T), whole, rtol=1e-12)
