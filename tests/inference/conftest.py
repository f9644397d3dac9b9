"""Samples that the tests of standard errors share."""

import numpy as np
import pytest

import tauten as tt


@pytest.fixture
def heteroscedastic():
    """Draw a linear regression whose noise grows with the first covariate."""

    def draw(rng, n=80, p=4):
        X = rng.normal(size=(n, p)) + 1.0
        y = X @ rng.normal(size=p) + 2.0 + (0.2 + np.abs(X[:, 0])) * rng.normal(size=n)
        return X, y

    return draw


@pytest.fixture(scope="session")
def clean():
    """A clean sample of a tensor regression and its fit."""
    rng = np.random.default_rng(3)
    truth = tt.datasets.truth((4, 3, 2), (2, 2, 2), reading="random", rng=rng)
    data = tt.datasets.simulate(truth, 300, covariate_order=3, rng=rng)
    model = tt.TensorRegressor(rank=(2, 2, 2), robust="none").fit(data.X, data.y)
    return data, model
