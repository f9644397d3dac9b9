"""Tensors of the scores that are expected, against those of the scores that come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oracle
import tauten as tt
from tauten.data import Rows, base
from tauten.designs import Covariate
from tauten.losses import Loss, Squared
from tauten.problem import Asked, Problem, gradients
from tauten.problem.expected import NEARBY, expected_scores
from tauten.robust import Robustifier, Truncate
from tauten.tucker import Affine

ALL = [Asked(curvature=True, correction=True, tensor=True)]


@pytest.fixture
def dear(monkeypatch):
    monkeypatch.setattr(base, "LARGE", 0)


def posed(make_theta, rng, loss="squared", robust="auto", **options):
    """A problem with weights, an intercept and a centre, swept at a point to choose thresholds."""
    theta, n = make_theta((4, 3), (2, 2)), 90
    theta = Affine(0.5 * theta.core, theta.factors, np.array([0.3])).canonical()
    X, weight = rng.standard_t(4, size=(n, 4, 3)), rng.uniform(0.5, 2.0, size=n)
    y = Loss.get(loss).draw(np.tensordot(X, theta.full(), 2), rng)
    data, robust = Rows(X, y, np.ones((n, 1)), weight, chunk=40), Robustifier.get(robust)
    problem = Problem(data, Loss.get(loss), Covariate(X[0]), robust, **options)
    return problem.calibrate(theta), theta


def stepped(theta, direction, length):
    """The end of a step, in another gauge."""
    blocks = theta.split(length * theta.norm() * direction)
    moved = theta.with_blocks([x + d for x, d in zip(theta.blocks, blocks, strict=True)])
    return moved.canonical()


@pytest.mark.usefixtures("dear")
@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize(("robust", "order"), [("huber", 2), ("truncate:tau=tuning-free", 1)])
def test_what_is_wrong_with_the_tensor_vanishes_with_the_step(make_theta, rng, loss, robust, order):
    """With its square, but for what is kept of samples that are cut. All else is as ever."""
    problem, theta = posed(make_theta, rng, loss, robust=robust, ridge=0.1)
    direction, off = rng.normal(size=theta.flat().size), []
    for length in (1e-3, 5e-4):
        there = stepped(theta, direction, length)
        assert there.distance(theta) > 1e-4
        found, exact = (
            gradients([p], [there], curvature=ALL)[0] for p in (problem, fresh(problem))
        )
        for block, other in zip(found.blocks.blocks, exact.blocks.blocks, strict=True):
            np.testing.assert_allclose(block, other, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.curvature, exact.curvature, atol=1e-12)
        np.testing.assert_allclose(found.correction, exact.correction, atol=1e-12)
        assert (found.value, found.truncated) == (exact.value, exact.truncated)
        off.append(np.linalg.norm(found.tensor - exact.tensor) / np.linalg.norm(exact.tensor))
    assert 0 < off[1] < off[0] / (0.85 * 2**order)
    assert off[0] < 5 * 1e-3**order


def fresh(problem):
    """The same problem, of which nothing is known."""
    return replace(problem)


@pytest.mark.usefixtures("dear")
def test_expected_scores_written_out(make_theta, rng):
    """``w_i ψ(η_i + <J_i, step> - y_i)`` with the derivatives of each sample by itself."""
    problem, theta = posed(make_theta, rng, robust="huber")
    there, nu = stepped(theta, rng.normal(size=theta.flat().size), 0.01), problem.robust.nu_
    there = there.rotate(there.turns_to(theta))
    data, point = problem.data, oracle.Point(theta.blocks)
    step, found = there.flat() - theta.flat(), []
    for x, y, w in zip(data.X - problem.design.center, data.y, data.weight, strict=True):
        slopes = [*(g.ravel() for g in point.partial_gradients(x)), [1.0]]
        eta = np.sum(x * theta.full()) + 0.3 + np.concatenate(slopes) @ step
        found.append(w * np.clip(eta - y, -nu, nu))
    np.testing.assert_allclose(expected_scores(problem, there), found, atol=1e-10)


@pytest.mark.usefixtures("dear")
def test_where_nothing_is_expected(make_theta, rng, monkeypatch):
    problem, theta = posed(make_theta, rng)
    near = replace(theta, core=(1 + 0.9 * NEARBY) * theta.core)
    far = replace(theta, core=(1 + 1.3 * NEARBY) * theta.core)
    assert expected_scores(problem, near) is not None
    assert expected_scores(problem, far) is None
    assert expected_scores(fresh(problem), near) is None
    scaled = replace(theta, core=theta.core / 4, factors=tuple(2 * u for u in theta.factors))
    assert expected_scores(problem, scaled) is None  # A is the same, its blocks are not
    assert expected_scores(problem.calibrate(scaled), near) is None
    monkeypatch.setattr(base, "LARGE", 8 * problem.data.X.size + 1)
    assert expected_scores(problem, near) is None


@pytest.mark.usefixtures("dear")
def test_nothing_is_expected_of_arrays(make_theta, rng):
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(50, 4))
    data = Rows(X, rng.normal(size=(50, 3)))
    problem = Problem(data, Squared(), Covariate(), Truncate()).calibrate(theta)
    assert problem.swept is not None
    assert expected_scores(problem, theta) is None


def test_a_fit_with_them_ends_where_one_without_does(rng, monkeypatch):
    """And reads X twice a pass no more."""
    X = rng.normal(size=(400, 6, 5, 4))
    truth = tt.datasets.truth((6, 5, 4), 2, reading="random", norm=4.0, rng=rng).full()
    y, reads = np.tensordot(X, truth, 3) + rng.normal(size=400), []
    adjoints = Covariate.adjoints

    def counted(self, scores, X):
        reads.append(len(X))
        return adjoints(self, scores, X)

    monkeypatch.setattr(Covariate, "adjoints", counted)
    fits, read = [], []
    for large in (0, np.inf):
        reads.clear()
        monkeypatch.setattr(base, "LARGE", large)
        fits.append(tt.TensorRegressor(rank=2, init="iht").fit(X, y))
        read.append(sum(reads))
    assert read[0] < read[1]
    assert tt.metrics.relative_error(fits[0].coef_, fits[1].coef_) < 1e-4
