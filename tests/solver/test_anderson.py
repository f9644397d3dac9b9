"""Accelerated descent: its plain step by hand, the mixing of steps, and where it ends."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import oracle
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Loss, Squared
from tauten.problem import Problem
from tauten.solver import Anderson, Newton
from tauten.solver.anderson import linear_scale, mixed, mode_whitening
from tauten.solver.result import Progress
from tauten.tucker import Affine, Tucker


def derivative(theta):
    """Of the entries of A by those of the blocks, by central differences; A is multilinear."""
    flat, h = theta.flat(), 1e-3
    units = np.eye(len(flat))
    ends = [
        [theta.with_blocks(theta.split(flat + t * unit)).full().ravel() for unit in units]
        for t in (h, -h)
    ]
    return np.subtract(*ends).T / (2 * h)


def covariance(rng, p):
    root = rng.normal(size=(p, p))
    return root @ root.T + np.eye(p)


@pytest.mark.parametrize("responses", [0, 1])
def test_a_plain_step_is_gauss_newtons_for_covariates_of_that_spread(responses, rng, make_theta):
    theta = make_theta((4, 3, 3), (2, 2, 2)).canonical()
    shape = theta.shape[: 3 - responses]
    spreads = [covariance(rng, p) for p in shape]
    problem = Problem(Rows(rng.normal(size=(9, *shape)), np.zeros(9)), Squared(), Covariate())
    vars(problem)["spreads"] = spreads
    J, basis = derivative(theta), oracle.horizontal_basis(theta.blocks, theta.order)
    whole = reduce(np.kron, [*spreads, *[np.eye(3)] * responses])
    matrix = basis.T @ J.T @ whole @ J @ basis
    gradient = J.T @ rng.normal(size=J.shape[0])  # of a linear function of A
    step = mode_whitening(problem, theta)(theta.with_blocks(theta.split(gradient)))
    by_hand = basis @ np.linalg.solve(matrix, basis.T @ gradient)
    np.testing.assert_allclose(step.flat(), by_hand, atol=1e-8 * np.abs(by_hand).max())


def test_what_bending_adds_within_the_span_of_a_factor_counts_for_nothing(rng, make_theta):
    """Newton's steps end where no gradient is left but within those spans, and so do these."""
    theta = make_theta((4, 3), (2, 2)).canonical()
    problem = Problem(Rows(rng.normal(size=(9, 4, 3)), np.zeros(9)), Squared(), Covariate())
    inside = theta.with_blocks(
        [np.zeros((2, 2)), *(u @ rng.normal(size=(2, 2)) for u in theta.factors)]
    )
    assert np.abs(mode_whitening(problem, theta)(inside).flat()).max() < 1e-12


def vector(*entries):
    return Tucker(np.ones(1), [np.array(entries, float)[:, None]])


def move(*entries):
    return Tucker(np.zeros(1), [np.array(entries, float)[:, None]])


def test_two_steps_on_a_line_are_mixed_to_the_root_of_the_secant():
    new = mixed(vector(100, 0), move(3, 0), [(vector(90, 0), move(5, 0))])
    np.testing.assert_allclose(new.full(), [100 + 3 * 10 / (5 - 3), 0])


def test_as_many_steps_as_dimensions_solve_a_linear_system(rng):
    end, matrix = np.array([50.0, 60.0, 70.0]), np.diag([1.0, 0.3, 0.05]) + 0.02
    points = [end + rng.normal(size=3) for _ in range(4)]
    pairs = [(vector(*x), move(*(matrix @ (end - x)))) for x in points]
    new = mixed(*pairs[-1], pairs[:-1])
    np.testing.assert_allclose(new.full(), end)


def test_a_mixed_step_is_no_longer_than_a_share_of_the_tensor_or_the_plain_step():
    near = mixed(vector(100, 0), move(3, 0), [(vector(90, 0), move(3.1, 0))])  # would go 300
    np.testing.assert_allclose(near.full(), [130, 0])
    far = mixed(vector(100, 0), move(50, 0), [(vector(90, 0), move(51, 0))])
    np.testing.assert_allclose(far.full(), [150, 0])


def test_steps_that_say_the_same_are_no_harm():
    pair = (vector(90, 0), move(5, 0))
    one, three = (mixed(vector(100, 0), move(3, 0), [pair] * count) for count in (1, 3))
    np.testing.assert_allclose(one.full(), three.full())
    same = mixed(vector(100, 0), move(3, 0), [(vector(90, 0), move(3, 0))])
    np.testing.assert_allclose(same.full(), [103, 0])


def regression(rng, loss="squared", n=300, **options):
    """Correlated covariates, an intercept and weights, and the point that made the responses."""
    roots = [
        np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(*[np.arange(p)] * 2))) for p in (6, 5)
    ]
    X = np.einsum("ab,nbc,dc->nad", roots[0], rng.normal(size=(n, 6, 5)), roots[1])
    factors = [np.linalg.qr(rng.normal(size=(p, 2)))[0] for p in (6, 5)]
    theta = Affine(np.diag([1.5, 0.8]), factors, np.ones(1))
    y = Loss.get(loss).draw(np.tensordot(X, theta.full(), axes=2) + 1, rng)
    data = Rows(X, y, np.ones((n, 1)), rng.uniform(0.5, 2, size=n))
    return Problem(data, Loss.get(loss), Covariate(), **options), theta


@pytest.mark.parametrize("options", [{}, {"ridge": 0.3}, {"loss": "logistic"}, {"loss": "poisson"}])
def test_it_ends_where_newton_does_in_a_few_dozen_steps(options, rng):
    problem, theta = regression(rng, **options)
    newton = Newton(tol=1e-10).run(problem, theta)
    mine = Anderson(n_iter=60, tol=1e-9).run(problem, theta)
    assert mine.converged, mine.reason
    np.testing.assert_allclose(mine.theta.full(), newton.theta.full(), atol=1e-6)
    np.testing.assert_allclose(mine.theta.linear, newton.theta.linear, atol=1e-6)


def test_memory_saves_most_of_the_steps(rng):
    problem, theta = regression(rng)
    problem = replace(
        problem,
        loss=Loss.get("logistic"),
        data=Rows(problem.data.X, (problem.data.y > 1).astype(float), problem.data.Z),
    )
    plain, mine = (Anderson(m, n_iter=900, tol=1e-8).run(problem, theta) for m in (0, 8))
    assert plain.converged
    assert mine.converged
    assert 3 * mine.n_iter < plain.n_iter


def test_turned_factors_make_the_same_steps(rng):
    """Memory is kept in the gauge of the last point: what was turned before is turned back."""
    problem, theta = regression(rng)
    theta = replace(theta, core=theta.core + 0.1).canonical()
    gradient, solver = problem.gradient(theta), Anderson()
    old = theta.map(lambda x: x + 0.01 * rng.normal(size=x.shape)).canonical()
    step = theta.map(lambda x: rng.normal(size=x.shape))  # longer than the next: it is kept
    found = []
    for turns in ([np.eye(2)] * 2, [np.array([[0.6, -0.8], [0.8, 0.6]]), np.diag([1.0, -1.0])]):
        progress = Progress(pace=1.0, memory=[(old.rotate(turns), step.rotate(turns))])
        found.append(solver.step(problem, theta, gradient, progress).full())
    np.testing.assert_allclose(*found, atol=1e-10)


@pytest.mark.parametrize(("size", "kept"), [(1e3, 2), (1e-9, 1)])
def test_memory_is_dropped_where_there_is_farther_to_go_than_before(size, kept, rng):
    problem, theta = regression(rng)
    theta = replace(theta, core=theta.core + 0.1).canonical()
    step = theta.map(lambda x: size * rng.normal(size=x.shape))
    progress = Progress(pace=1.0, memory=[(theta, step)])
    Anderson().step(problem, theta, problem.gradient(theta), progress)
    assert len(progress.memory) == kept
    assert progress.memory[-1][0] is theta


@pytest.mark.parametrize("memory", [0, 1, 3])
def test_no_more_is_kept_than_asked_for(memory, rng):
    problem, theta = regression(rng)
    progress = Progress()
    Anderson(memory, n_iter=6, tol=0.0).run(problem, theta, progress=progress)
    assert len(progress.memory) <= memory
    assert progress.pace > 0


def test_memory_must_be_a_number_of_steps():
    for wrong in (-1, 1.5, "all"):
        with pytest.raises((TypeError, ValueError), match=r"^memory must"):
            Anderson(memory=wrong).check()


def test_vector_coefficients_count_by_what_they_move(rng):
    problem, _ = regression(rng)
    by_hand = 1 / np.sqrt(np.median(np.mean(problem.data.X[::2] ** 2, axis=(1, 2))))
    assert linear_scale(problem) == pytest.approx(by_hand)
    larger = Rows(10 * problem.data.X, problem.data.y, 3 * problem.data.Z)
    ratio = linear_scale(replace(problem, data=larger)) / linear_scale(problem)
    assert ratio == pytest.approx(0.3)
    pca = Problem(Rows(None, rng.normal(size=(5, 3))), Squared(), Direct())
    assert linear_scale(pca) == 1.0
