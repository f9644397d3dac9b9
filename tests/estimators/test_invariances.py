"""Scale, shift and order change what they should, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fits import SMOOTH, SOME, STABLE, close
from tauten import TensorRegressor
from tauten.datasets import simulate, truth
from tauten.robust import Huber, Truncate


def problem_data(seed=2):
    point = truth((4, 3, 2), (2, 2, 1), reading="random", rng=1)
    return simulate(point, 100, covariate_order=3, noise="t:2", rng=seed)


@pytest.mark.parametrize(("robust", "c"), [*((robust, -7.0) for robust in SMOOTH), ("auto", 1e-3)])
def test_scaling(robust, c):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    wide, tall = clone(model).fit(c * data.X, data.y), clone(model).fit(data.X, c * data.y)
    close(c * wide.coef_, base.coef_)
    close(tall.coef_ / c, base.coef_)
    np.testing.assert_allclose(wide.intercept_, base.intercept_, rtol=1e-5)
    np.testing.assert_allclose(tall.intercept_ / c, base.intercept_, rtol=1e-5)


@pytest.mark.parametrize("robust", SOME)
def test_shifting_changes_the_intercept_alone(robust):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    far, high = clone(model).fit(data.X + 100, data.y), clone(model).fit(data.X, data.y + 100)
    close(far.coef_, base.coef_)
    close(far.predict(data.X + 100), base.predict(data.X))
    np.testing.assert_allclose(
        far.intercept_, base.intercept_ - 100 * base.coef_.sum(), rtol=1e-6, atol=1e-6
    )
    close(high.coef_, base.coef_)
    close(high.predict(data.X), base.predict(data.X) + 100)


@pytest.mark.parametrize("robust", ["none", "auto", "normclip", Huber(1.0), Truncate(2.0)], ids=str)
def test_order_of_modes_and_samples(robust):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    turned = clone(model).set_params(rank=(1, 2, 2)).fit(data.X.transpose(0, 3, 1, 2), data.y)
    # Starts take one mode after the other, and chosen thresholds depend a little on the start.
    chosen = robust in {"auto", "normclip"}
    close(turned.coef_, base.coef_.transpose(2, 0, 1), 1e-4 if chosen else 1e-6)
    order = np.random.default_rng(0).permutation(len(data.y))
    shuffled = clone(model).fit(data.X[order], data.y[order])
    close(shuffled.coef_, base.coef_)
    np.testing.assert_allclose(shuffled.influence_, base.influence_[order], atol=1e-6)


@pytest.mark.parametrize("robust", ["none", "auto", Truncate(2.0)], ids=str)
def test_order_of_responses(robust):
    point = truth((4, 3, 2), 1, rng=1)
    data = simulate(point, 100, covariate_order=1, noise="t:2", rng=3)
    model = TensorRegressor(1, robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    turned = clone(model).fit(data.X, data.y.transpose(0, 2, 1))
    close(turned.coef_, base.coef_.transpose(0, 2, 1), 1e-4 if robust == "auto" else 1e-6)
