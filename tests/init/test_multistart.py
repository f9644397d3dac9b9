"""Restarts: which one wins, when they are used, and that they are worth it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tauten as tt
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.init import default, iht, restarts, spectral, start
from tauten.init.multistart import polish, spread
from tauten.init.thresholding import ihts
from tauten.losses import Loss, Squared
from tauten.problem import PILOT_SIZE, Problem
from tauten.tucker import Affine, Tucker, degrees_of_freedom


def regression(n, rank=3, *, covariates="normal", noise="normal", norm=3.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = tt.datasets.truth((10, 10, 10), rank, reading="random", norm=norm, rng=rng)
    data = tt.datasets.simulate(
        truth, n, covariate_order=3, covariates=covariates, noise=noise, rng=rng
    )
    return truth, Problem(Rows(data.X, data.y, np.ones((n, 1))), Squared(), Covariate())


def test_degrees_of_freedom_are_the_rank_of_the_parametrisation():
    theta = tt.datasets.truth((4, 5, 3), (2, 3, 2), reading="random", norm=1.0, rng=0)
    columns = []
    for k, block in enumerate(theta.blocks):
        for index in np.ndindex(block.shape):
            moved = [b.copy() for b in theta.blocks]
            moved[k][index] += 1.0
            columns.append((theta.with_blocks(moved).full() - theta.full()).ravel())
    rank = np.linalg.matrix_rank(np.array(columns), tol=1e-8)
    assert degrees_of_freedom(theta.shape, theta.rank) == rank


@pytest.mark.parametrize(("n", "name"), [(359, "restarts"), (360, "iht")])
def test_few_samples_are_less_than_four_per_degree_of_freedom(n, name):
    problem = Problem(Rows(np.ones((n, 10, 10, 10)), np.ones(n)), Squared(), Covariate())
    assert default(problem, (3, 3, 3)) == name


def test_responses_count_and_a_free_tensor_needs_no_restarts():
    tensor = Problem(Rows(np.ones((36, 10)), np.ones((36, 10, 10))), Squared(), Covariate())
    assert default(tensor, (3, 3, 3)) == "iht"
    vector = Problem(Rows(np.ones((5, 10)), np.ones(5)), Squared(), Covariate())
    assert default(vector, (1,)) == "iht"
    assert default(Problem(Rows(None, np.ones((1, 3, 3))), Squared(), Direct()), (1, 1)) == (
        "decompose"
    )


def test_classes_need_no_restarts():
    rows = Rows(np.ones((20, 10, 10)), np.ones(20))
    assert default(Problem(rows, Loss.get("logistic"), Covariate()), (2, 2)) == "iht"


def test_spread_is_the_tau_scale_of_the_residuals():
    y = np.array([0.1, -0.2, 0.3, 0.4, -50.0])
    problem = Problem(Rows(np.ones((5, 2)), y), Squared(), Covariate())
    zero = Tucker(np.zeros(1), (np.ones((2, 1)),))
    scale = 1.4826 * 0.3
    squares = [0.1**2, 0.2**2, 0.3**2, 0.4**2, 9 * scale**2]
    assert spread(problem, zero) == pytest.approx(np.mean(squares))


def test_spread_of_a_likelihood_leaves_out_the_worst_tenth():
    X, y = np.arange(20.0)[:, None] / 5, np.ones(20)
    y[-2:] = 0.0
    problem = Problem(Rows(X, y), Loss.get("logistic"), Covariate())
    losses = np.sort(np.logaddexp(0, X[:, 0]) - y * X[:, 0])
    theta = Tucker(np.ones(1), (np.ones((1, 1)),))
    assert spread(problem, theta) == pytest.approx(losses[:18].mean())


def test_restarts_are_reproducible_and_never_fit_worse_than_iht():
    _, problem = regression(150, 2, noise="t:1.2")
    one, two = (restarts(problem, (2, 2, 2), np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one.core, two.core)
    assert spread(problem, one) <= spread(problem, polish(problem, [iht(problem, (2, 2, 2))])[0])


def read(problem, fn):
    """What a function finds, and how often it reads the samples, but for those looked at."""
    problem.data.sample(PILOT_SIZE)
    before = problem.data.reads.passes
    found = fn()
    return found, problem.data.reads.passes - before


def test_starts_of_many_ranks_and_weights_are_those_of_each_in_one_pass_a_step(rng):
    _, problem = regression(150, 2, noise="t:1.2")
    other = replace(problem, data=problem.data.reweight(rng.exponential(size=150)))
    problems, ranks = [problem, problem, other], [(1, 1, 1), (2, 3, 2), (2, 2, 2)]
    together, passes = read(problem, lambda: ihts(problems, ranks))
    alone = [read(p, partial(iht, p, rank)) for p, rank in zip(problems, ranks, strict=True)]
    assert passes == max(count for _, count in alone) > min(count for _, count in alone)
    for mine, (theirs, _) in zip(together, alone, strict=True):
        np.testing.assert_allclose(mine.full(), theirs.full(), atol=1e-10)


def test_fits_from_all_starts_go_through_the_data_together():
    """Eight starts and two rounds of eight steps; the best is that of fits one by one."""
    _, problem = regression(150, 2, noise="t:1.2")
    rank, draw = (2, 2, 2), np.random.default_rng(7)
    best, passes = read(problem, lambda: restarts(problem, rank, np.random.default_rng(7)))
    weights = [draw.exponential(size=150) for _ in range(6)]
    first, steps = read(problem, lambda: iht(problem, rank))
    assert passes <= steps + 1 + 2 * 8
    weighed = [replace(problem, data=problem.data.reweight(weight)) for weight in weights]
    thetas = [first, *(spectral(p, rank) for p in (problem, *weighed))]
    fits = [polish(problem, [theta])[0] for theta in thetas]
    expected = min(fits, key=lambda theta: spread(problem, theta))
    np.testing.assert_allclose(best.full(), expected.full(), atol=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_restarts_of_likelihoods(loss):
    truth = tt.datasets.truth((6, 6), 1, reading="random", norm=1.5, rng=0)
    data = tt.datasets.simulate(truth, 200, loss=loss, covariate_order=2, rng=1)
    problem = Problem(Rows(data.X, data.y, np.ones((200, 1))), Loss.get(loss), Covariate())
    theta = restarts(problem, (1, 1), np.random.default_rng(0))
    assert tt.metrics.relative_error(theta, truth) < 0.8


def test_pca_is_refused():
    problem = Problem(Rows(None, np.ones((1, 3, 3))), Squared(), Direct())
    with pytest.raises(ValueError, match="for PCA, use 'decompose'"):
        restarts(problem, (1, 1), np.random.default_rng(0))


def test_a_weight_is_a_repetition_in_the_step_of_iht():
    _, problem = regression(60, 1)
    data, weight = problem.data, np.random.default_rng(0).integers(1, 4, 60)
    repeated = Rows(*(np.repeat(a, weight, axis=0) for a in (data.X, data.y, data.Z)))
    weighted = Rows(data.X, data.y, data.Z, weight.astype(float))
    theta, direction = iht(problem, (1, 1, 1)), np.ones((10, 10, 10))
    curvatures = [
        Problem(rows, Squared(), Covariate())
        .pilot(theta)
        .tensor_curvature(problem.robust, direction)
        for rows in (repeated, weighted)
    ]
    assert curvatures[1] == pytest.approx(curvatures[0])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "noise", "norm"), [(150, "normal", 30.0), (200, "t:1.2", 3.0)])
def test_restarts_end_where_the_truth_would_more_often_than_iht(n, noise, norm):
    reached = {"iht": 0, "restarts": 0}
    for seed in range(6):
        truth, problem = regression(n, covariates="t:2.1", noise=noise, norm=norm, seed=seed)
        rng = np.random.default_rng(seed)
        best = polish(problem, [Affine(truth.core, truth.factors, np.zeros(1))], n_iter=30)[0]
        least = tt.metrics.relative_error(best, truth)
        for name in reached:
            fit = polish(problem, [start(name, problem, (3, 3, 3), rng)], n_iter=30)[0]
            reached[name] += tt.metrics.relative_error(fit, truth) < 1.2 * least + 0.01
    assert reached["restarts"] > reached["iht"]
