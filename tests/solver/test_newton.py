"""Newton's steps against linear systems written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oracle
from tauten.data import Rows
from tauten.designs import Covariate
from tauten.init import start
from tauten.losses import Loss, Squared
from tauten.problem import Asked, Problem
from tauten.robust import Truncate
from tauten.solver import Newton
from tauten.solver.newton import farthest
from tauten.solver.result import Iteration, Progress
from tauten.tucker import Affine


def joined(point):
    return np.concatenate([np.ravel(block) for block in point.blocks])


def step_by_hand(theta, gradient, matrix):
    """``-B (Bᵀ M B)⁻¹ Bᵀ g``, for B a basis of the steps that move A."""
    basis = oracle.horizontal_basis(theta.blocks, theta.order)
    return -basis @ np.linalg.solve(basis.T @ matrix @ basis, basis.T @ gradient)


def hessian(problem, theta):
    """Derivative of the gradient, by central differences."""
    flat, h = joined(theta), 1e-5
    columns = []
    for unit in np.eye(len(flat)):
        ahead, back = (
            joined(problem.gradient(theta.with_blocks(theta.split(flat + t * unit))).blocks)
            for t in (h, -h)
        )
        columns.append((ahead - back) / (2 * h))
    return np.stack(columns, axis=1)


@pytest.fixture
def make(rng, make_theta):
    """Make a problem with a loss, and a point in the gauge of Newton near what made the data."""

    def problem(loss):
        truth = make_theta((4, 3, 2), (2, 2, 2)).canonical()
        X = rng.normal(size=(200, 4, 3, 2))
        y = Loss.get(loss).draw(np.tensordot(X, truth.full(), axes=3), rng)
        theta = truth.map(lambda block: block + 0.01 * rng.normal(size=block.shape)).canonical()
        return Problem(Rows(X, y), Loss.get(loss), Covariate()), theta

    return problem


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_a_step_is_gauss_newtons_where_no_hessian_is_trusted(loss, make):
    problem, theta = make(loss)
    gradient = problem.gradient(theta, curvature=True)
    expected = step_by_hand(theta, joined(gradient.blocks), problem.curvature(theta))
    new = Newton().step(problem, theta, gradient, Progress(reach=0.0))
    np.testing.assert_allclose(joined(new) - joined(theta), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_step_is_newtons_where_the_hessian_is_trusted(loss, make):
    problem, theta = make(loss)
    gradient = problem.gradient(theta, curvature=True)
    expected = step_by_hand(theta, joined(gradient.blocks), hessian(problem, theta))
    new = Newton().step(problem, theta, gradient, Progress(reach=9.0))
    np.testing.assert_allclose(joined(new) - joined(theta), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_kept_matrix_makes_the_same_step_whichever_way_factors_are_turned(loss, make, rng):
    problem, theta = make(loss)
    progress, newton = Progress([theta], thrifty=True), Newton()
    assert newton.needs(progress) == Asked(curvature=True, correction=True, tensor=True)
    new = newton.step(problem, theta, problem.gradient(theta, curvature=True), progress)
    assert newton.needs(progress) == Asked()
    turns = [np.linalg.qr(rng.normal(size=(r, r)))[0] for r in theta.rank]
    turned = theta.rotate(turns)
    again = newton.step(problem, turned, problem.gradient(turned), progress)
    np.testing.assert_allclose(again.full(), new.full(), rtol=1e-8, atol=1e-10)
    near = turned.map(lambda block: block + 1e-3 * rng.normal(size=block.shape)).canonical()
    step = joined(newton.step(problem, near, problem.gradient(near), progress)) - joined(near)
    np.testing.assert_allclose(near.horizontal(step[:, None])[:, 0], step, atol=1e-12)


def test_a_step_by_a_kept_matrix_is_no_longer_than_it_is_trusted(make):
    problem, theta = make("squared")
    progress = Progress(thrifty=True)
    Newton().step(problem, theta, problem.gradient(theta, curvature=True), progress)
    far = problem.gradient(theta.map(lambda block: 3 * block))
    new = Newton().step(problem, theta, far, progress)
    assert new.distance(theta) == pytest.approx(progress.reach * theta.norm(), rel=0.1)


def test_a_run_ends_as_soon_as_its_steps_tell_that_little_is_left(make):
    """Sooner than by the last step alone, and within the tolerance of the end of the way."""
    problem, theta = make("poisson")
    end = Newton(tol=1e-12, n_iter=60).run(problem, theta).theta
    for tol in (1e-4, 1e-6):
        run = Newton(tol=tol, n_iter=60).run(problem, theta)
        changes = [step.change for step in run.history]
        assert run.converged
        assert run.theta.distance(end) < tol * end.norm()
        assert changes[-1] > tol
        assert changes[-1] ** 2 / changes[-2] < tol
        assert "is left to go" in run.reason


@pytest.mark.parametrize(
    ("before", "changes", "left"),
    [
        (np.inf, (0.002,), 0.002),  # there was none before, or it was stretched
        (np.inf, (0.02, 0.002), 0.002),
        (0.0, (0.002,), 0.002),
        (0.01, (0.004,), 0.004),  # slowly
        (0.01, (0.002,), 0.0005),  # a geometric series, from the last step of an earlier run
        (0.01, (0.01, 0.002), 0.0005),
        (0.04, (0.01, 0.002), 0.0005),  # the slower of A's and of all coefficients' steps
        (0.01, (0.04, 0.002), 0.0005),
        (0.01, (0.04, 0.02), 0.02),  # A is settled, the intercept is not
        (0.11, (0.11, 0.002), 0.002),  # long ones tell nothing
    ],
)
def test_what_is_left_is_the_rest_of_a_series_where_short_steps_shrink_fast(
    before, changes, left, make_theta
):
    theta = make_theta((4, 3), (2, 2))
    history = [Iteration(t, 0.0, change, ()) for t, change in enumerate(changes, 1)]
    progress = Progress([theta], history, before=before * theta.norm())
    assert Newton().remaining(progress) == pytest.approx(left)
    progress.thrifty = True
    assert Newton().remaining(progress) == changes[-1]


def test_a_run_does_not_end_before_the_intercept_has_settled(rng):
    """A starts near the truth and settles at once; truncation holds the intercept's steps back.

    Samples come in pairs X, -X, so that neither sees the other.
    """
    X, noise = rng.normal(size=(300, 4, 3)), rng.normal(size=300)
    X, noise = np.concatenate([X, -X]), np.concatenate([noise, noise])
    data = Rows(X, 50 + 3 * X[:, 0, 0] + 0.3 * noise, np.ones((600, 1)))
    robust = Truncate([np.inf, np.inf, np.inf, 0.05]).calibrate()
    factors = tuple(np.eye(p, 1) + 1e-3 * rng.normal(size=(p, 1)) for p in (4, 3))
    theta = Affine(np.full((1, 1), 3.0), factors, np.zeros(1))
    run = Newton(n_iter=3000).run(Problem(data, Squared(), Covariate(), robust), theta)
    assert run.converged
    assert run.theta.linear[0] == pytest.approx(50, abs=0.1)


def test_only_a_thrifty_run_keeps_matrices(make):
    problem, theta = make("squared")
    for thrifty in (False, True):
        progress = Progress(thrifty=thrifty)
        Newton(n_iter=1).run(problem, theta, progress=progress)
        assert (progress.kept is not None) is thrifty


@pytest.mark.parametrize("tau", [0.5, 2.0, np.inf])
def test_what_a_matrix_lost_is_the_mean_share_of_its_entries(tau, make):
    problem, theta = make("squared")
    problem = replace(problem, robust=Truncate(tau).calibrate())
    progress = Progress(thrifty=True)
    Newton().step(problem, theta, problem.gradient(theta, curvature=True), progress)
    shares = [np.diagonal(problem.curvature(theta, slope=slope)) for slope in (True, False)]
    assert progress.kept.lost == pytest.approx(1 - np.mean(shares[0] / shares[1]), abs=1e-12)
    assert (progress.kept.lost == 0) is (tau == np.inf)


def test_a_thrifty_run_ends_where_another_does(make):
    """In more steps, but with fewer matrices."""
    problem, theta = make("poisson")
    own, asked = Newton(tol=1e-9, n_iter=60).run(problem, theta), []

    class Watched(Newton):
        def needs(self, progress):
            needed = super().needs(progress)
            asked.append(needed.curvature)
            return needed

    run = Watched(tol=1e-9, n_iter=60).run(problem, theta, progress=Progress(thrifty=True))
    assert run.converged
    assert len(asked) == run.n_iter > own.n_iter
    assert sum(asked) < own.n_iter
    np.testing.assert_allclose(run.theta.full(), own.theta.full(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_no_point_is_farther_than_the_bound(make_theta, rng, size):
    old = make_theta((4, 3, 2), (2, 2, 2))
    for _ in range(20):
        new = old.map(lambda block: block + size * rng.normal(size=block.shape))
        assert new.distance(old) <= farthest(old, new)
    assert np.isnan(farthest(old, old.map(lambda block: block * np.nan)))


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "gamma"])
def test_steps_do_not_creep_where_components_are_lost_in_noise(loss, rng, make_theta):
    """Gauss-Newton's do there: it knows nothing of the curvature of low-rank tensors."""
    truth = make_theta((6, 6, 6), (2, 2, 2)).canonical()
    truth = replace(truth, core=truth.core / (2 * truth.norm()))
    X = rng.normal(size=(600, 6, 6, 6))
    y = Loss.get(loss).draw(np.tensordot(X, truth.full(), axes=3), rng)
    problem = Problem(Rows(X, y), Loss.get(loss), Covariate())
    run = Newton(n_iter=50, tol=1e-8).run(problem, start("auto", problem, (2, 2, 2), rng))
    assert run.converged
    assert run.n_iter <= 25


@pytest.mark.parametrize(
    ("progress", "tensor"),
    [
        ({}, True),
        ({"moved": 0.4}, True),
        ({"moved": 0.6}, False),  # the next step is too long to be trusted with it
        ({"reach": 0.0}, False),
        ({"keeps": True}, False),  # a run of its own begins far off
        ({"keeps": True, "moved": 0.4}, True),
        ({"keeps": True, "before": 0.01, "tensor": 1}, False),  # of the run before
        ({"keeps": True, "before": 0.1, "moved": 0.01, "tensor": 1}, False),
        ({"keeps": True, "before": 0.1, "moved": 0.021, "tensor": 1}, True),  # a long step
        ({"keeps": True, "before": 0.03, "moved": 0.01, "tensor": 1}, True),  # no shorter a one
    ],
)
def test_a_tensor_is_asked_for_where_it_is_of_use(progress, tensor, make):
    """Steps here are relative to A."""
    _, theta = make("squared")
    sizes = {
        name: value * theta.norm() if name in {"moved", "before"} else value
        for name, value in progress.items()
    }
    asked = Newton().needs(Progress([theta], **sizes))
    assert (asked.curvature, asked.tensor) == (True, tensor)
    kept = "tensor" in progress
    assert asked.correction is (tensor or kept)  # without a tensor there is no use for it


def test_a_run_that_keeps_tensors_ends_where_another_does_with_fewer_of_them(make):
    problem, theta = make("poisson")
    own, asked = Newton(tol=1e-9).run(problem, theta), []

    class Watched(Newton):
        def needs(self, progress):
            needed = super().needs(progress)
            asked.append(needed.tensor)
            return needed

    progress = Progress()
    Newton(tol=1e-9).run(problem, theta, progress=progress)
    assert progress.tensor is None  # many runs together would hold as many
    run = Watched(tol=1e-9).run(problem, theta, progress=Progress(keeps=True))
    assert run.converged
    assert sum(asked) < len(asked) - 1
    assert sum(asked) > 0
    np.testing.assert_allclose(run.theta.full(), own.theta.full(), rtol=1e-7, atol=1e-7)
