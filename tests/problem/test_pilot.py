"""The samples as seen from a point: errors, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.robust import Robustifier
from tauten.tucker import Tucker


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_risk_of_a_vector_is_whites(ridge, rng):
    """White (1980), with the slope of the penalty in the bread."""
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=80)
    beta = np.array([0.8, 1.5, -1.0])
    inverse = np.linalg.inv(X.T @ X / 80 + ridge * np.eye(3))
    covariance = inverse @ (X.T * (y - X @ beta) ** 2 @ X) @ inverse / 80**2
    size = np.linalg.norm(beta)
    theta = Tucker(np.array([size]), [beta[:, None] / size])
    problem = Problem(Rows(X, y), Squared(), Covariate(), ridge=ridge)
    risk = problem.pilot(theta).risk(Robustifier())
    assert risk == pytest.approx(np.trace(covariance), rel=1e-4)
