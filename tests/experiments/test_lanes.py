"""Every lane takes the steps of the library's own Algorithm 1."""

import math

import numpy as np
import pytest

import tauten as tt
from tauten.experiments.lanes import Stack, lanes_at
from tauten.experiments.stepping import descend

STEPS = {"step": 1e-3, "a": 1.0, "b": 1.3, "n_iter": 40}


def stacked(model, n, seeds):
    data = [tt.datasets.make_model(model, n, rng=seed) for seed in seeds]
    X = None if model == "IV" else np.stack([d.X for d in data])
    return data, Stack(X, np.stack([d.y for d in data])[:, None], logistic=model == "III")


def perturbed(truth, rng):
    return truth.map(lambda x: x + 0.1 * rng.standard_normal(x.shape))


@pytest.mark.parametrize("model", ["I", "II", "III", "IV"])
@pytest.mark.parametrize("n", [30, 700])  # one chunk, and several
def test_lanes_are_algorithm_1(model, n, rng):
    data, stack = stacked(model, n, [1, 2])
    starts = [[perturbed(d.truth, rng) for _ in range(3)] for d in data]
    tau, nu = [0.5, math.inf, 0.8], [math.inf, 0.7, 1.1]
    if model == "IV":  # its bent and its unbent residuals go different ways
        nu = [math.inf] * 3
    end = descend(stack, lanes_at(starts, tau, nu), data[0].truth.full(), **STEPS)
    for i, d in enumerate(data):
        for m in range(3):
            assert_same(end, i, m, d, start=starts[i][m], tau=tau[m], nu=nu[m], model=model)


def test_bent_residuals_in_pca(rng):
    data, stack = stacked("IV", 60, [3])
    starts = [[perturbed(data[0].truth, rng) for _ in range(2)]]
    end = descend(stack, lanes_at(starts, math.inf, [0.5, 2.0]), data[0].truth.full(), **STEPS)
    for m, nu in enumerate([0.5, 2.0]):
        assert_same(end, 0, m, data[0], start=starts[0][m], tau=math.inf, nu=nu, model="IV")


def assert_same(end, i, m, data, *, start, tau, nu, model):
    robust = tt.robust.Adaptive(math.inf, nu, tau)
    loss = "logistic" if model == "III" else "squared"
    want = tt.robust_gradient_descent(
        data.X, data.y, start, loss=loss, tau=tau, robust=robust, **STEPS
    )
    got = end.lanes.point(i, m)
    for mine, theirs in zip(got.blocks, want.theta.blocks, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    error = tt.metrics.frobenius_error(want.theta, data.truth, squared=True)
    np.testing.assert_allclose(end.errors[-1][i, m], error, rtol=1e-8)


def test_weights_leave_samples_out(rng):
    data, stack = stacked("I", 50, [5])
    kept = np.arange(50) % 5 != 0
    lanes = lanes_at([[perturbed(data[0].truth, rng)]], 0.7)
    weighted = type(lanes)(lanes.blocks, lanes.tau, lanes.nu, kept[None, None].astype(float))
    few = Stack(stack.X[:, kept], stack.y[:, :, kept])
    truth = data[0].truth.full()
    one, other = descend(stack, weighted, truth, **STEPS), descend(few, lanes, truth, **STEPS)
    np.testing.assert_allclose(one.errors, other.errors, rtol=1e-10)


def test_lanes_can_have_their_own_responses(rng):
    data, _ = stacked("II", 40, [1])
    noisy = np.stack([data[0].y, data[0].y + rng.standard_normal(data[0].y.shape)])
    starts = [[data[0].truth] * 2]
    truth = data[0].truth.full()
    both = descend(Stack(data[0].X[None], noisy[None]), lanes_at(starts, 1.0), truth, **STEPS)
    for m in range(2):
        alone = Stack(data[0].X[None], noisy[None, m : m + 1])
        end = descend(alone, lanes_at([[data[0].truth]], 1.0), truth, **STEPS)
        np.testing.assert_allclose(both.errors[:, :, m], end.errors[:, :, 0], rtol=1e-10)


def test_a_lane_that_runs_away_stays_where_it_was_and_stops_no_other(rng):
    data, stack = stacked("I", 40, [1])
    steps = {**STEPS, "step": 0.5, "n_iter": 60}
    end = descend(
        stack, lanes_at([[data[0].truth] * 2], [math.inf, 1e-6]), data[0].truth.full(), **steps
    )
    assert end.diverged.tolist() == [[True, False]]
    assert np.isfinite(end.errors).all()
    want = tt.robust_gradient_descent(data[0].X, data[0].y, data[0].truth, tau=math.inf, **steps)
    assert want.reason.startswith("diverged")
    np.testing.assert_allclose(end.lanes.point(0, 0).core, want.theta.core, rtol=1e-8)
