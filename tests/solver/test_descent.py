"""Steps along the gradient: what they are divided by."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Direct
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.solver.descent import GradientDescent, largest_eigenvalue, whitening
from tauten.tucker import Tucker


def test_a_component_of_no_size_is_not_moved(rng):
    """A core slice a millionth of the largest is rounding: its step would be any size."""
    eye = [np.eye(4, 2), np.eye(3, 2)]
    problem = Problem(Rows(None, rng.normal(size=(2, 4, 3))), Squared(), Direct())
    theta = Tucker(np.diag([2.0, 1e-6]), eye)
    gradient = theta.map(lambda block: rng.normal(size=block.shape))
    step = whitening(problem, theta)(gradient)
    np.testing.assert_array_equal(step.core, gradient.core)
    for u, g, s in zip(theta.factors, gradient.factors, step.factors, strict=True):
        outside = g - u @ (u.T @ g)
        np.testing.assert_allclose(s[:, 0], outside[:, 0] / 4.0)
        np.testing.assert_allclose(s[:, 1], 0.0, atol=1e-10)


def test_largest_eigenvalue_of_a_matrix():
    """Of all blocks together; from where there is nothing, nothing."""
    start = Tucker(np.ones(2), [np.ones((3, 2))])
    scales = Tucker(np.array([1.0, 20.0]), [np.array([[0.5, 2.0], [1.0, 0.1], [0.3, 0.2]])])
    found = largest_eigenvalue(lambda point: point.map(lambda x, s: x * s, scales), start)
    assert abs(found - 20.0) < 1e-8
    assert largest_eigenvalue(lambda point: point, start.map(np.zeros_like)) == 0.0


@pytest.mark.parametrize("name", ["step_size", "a", "b", "n_iter", "tol"])
def test_parameters_of_the_descent_are_numbers_above_zero(name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        GradientDescent(**{name: -1}).check()
    if name in ("a", "tol"):  # no balancing, no tolerance
        GradientDescent(**{name: 0}).check()
    else:
        with pytest.raises(ValueError, match=f"^{name} must"):
            GradientDescent(**{name: 0}).check()
