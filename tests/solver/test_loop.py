"""The loop: what it counts, what it hands to a step, and steps that stretch."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.solver import Solver
from tauten.solver.loop import _within, batches, stretch
from tauten.solver.result import Progress
from tauten.tucker import Tucker


def trail(*points):
    """Vectors in the plane, as points of a run."""
    return [Tucker(np.ones(1), [np.array(point, float)[:, None]]) for point in points]


def turned(cosine):
    """Two steps of lengths 1 and ½ from (100, 0), the second turned."""
    sine = math.sqrt(1 - cosine**2)
    return trail((100, 0), (101, 0), (101 + cosine / 2, sine / 2))


def stretched(points):
    """The stretch of steps whose lengths are known from the coordinates."""
    ends = [point.factors[0][:, 0] for point in points]
    lengths = [float(np.hypot(*(b - a))) for a, b in itertools.pairwise(ends)]
    return stretch(points, *([math.inf, *lengths][-2:]))


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8])
def test_steps_on_a_line_go_to_the_end_of_their_series(ratio):
    found = stretched(trail((100, 0), (101, 0), (101 + ratio, 0)))
    assert found == pytest.approx(sum(ratio**k for k in range(200)))


def test_a_stretched_step_stands_for_ten_at_most():
    assert stretched(trail((100, 0), (101, 0), (101.95, 0))) == 10


def test_a_stretched_step_is_a_tenth_of_the_tensor_at_most():
    assert stretched(trail((10, 0), (10.5, 0), (10.9, 0))) == pytest.approx(1.09 / 0.4)


def test_steps_that_turn_are_not_stretched():
    assert stretched(turned(0.995)) == pytest.approx(2.0)
    assert stretched(turned(0.98)) == 1.0
    assert stretched(turned(-0.995)) == 1.0


@pytest.mark.parametrize(
    "points",
    [
        [(100, 0), (101, 0)],
        [(100, 0), (101, 0), (102, 0)],  # as long as the last
        [(100, 0), (101, 0), (102.5, 0)],
        [(100, 0), (101, 0), (101, 0)],  # none at all
        [(100, 0), (100, 0), (101, 0)],
    ],
)
def test_other_steps_are_taken_as_they_are(points):
    assert stretched(trail(*points)) == 1.0


class Contraction(Solver):
    """Each step leaves a share of the way to a point: a geometric series."""

    end = np.array([[110.0], [0.0]])

    def __init__(self, n_iter=9, tol=0.0, left=0.4):
        super().__init__(n_iter, tol)
        self.left = left

    def step(self, problem, theta, gradient, progress):
        self.reaches = [*getattr(self, "reaches", []), progress.reach]
        return Tucker(theta.core, [self.end + self.left * (theta.factors[0] - self.end)])


class Stretched(Contraction):
    stretches = True


@pytest.fixture
def problem():
    return Problem(Rows(np.eye(2), np.ones(2)), Squared(), Covariate())


def test_passes_are_those_of_the_run(problem):
    (start,) = trail((100, 0))
    assert [Contraction(n).run(problem, start).n_passes for n in (3, 5)] == [3, 5]


def test_a_step_is_told_how_far_to_trust_and_the_last_points_are_kept(problem):
    (start,) = trail((100, 0))
    solver, progress = Contraction(n_iter=5), Progress(reach=0.02)
    solver.run(problem, start, progress=progress)
    np.testing.assert_allclose(solver.reaches, 0.02 * 1.25 ** np.arange(5))
    ends = [110 - 10 * 0.4**t for t in (3, 4, 5)]
    np.testing.assert_allclose([p.factors[0][0, 0] for p in progress.trail], ends)


def test_a_stretched_step_ends_the_series_and_tells_nothing_of_the_hessian(problem):
    (start,) = trail((100, 0))
    progress = Progress(reach=0.02)
    result = Stretched(n_iter=3).run(problem, start, progress=progress)
    np.testing.assert_allclose(result.theta.full(), [110, 0])
    assert progress.reach == pytest.approx(0.02 * 1.25**2)
    assert len(progress.trail) == 1


def test_a_run_that_is_taken_up_goes_on_as_if_never_stopped(problem):
    (start,) = trail((100, 0))
    progress = Progress()
    Contraction(2).run(problem, start, progress=progress)
    later = Contraction(5).run(problem, start, progress=progress)
    whole = Contraction(5).run(problem, start)
    np.testing.assert_array_equal(later.theta.full(), whole.theta.full())
    assert [step.t for step in later.history] == [1, 2, 3, 4, 5]
    assert later.n_passes == 3


def test_a_run_that_is_over_reads_nothing(problem):
    (start,) = trail((100, 0))
    progress = Progress()
    for passes in (2, 0):
        result = Contraction(9, 1e-3, left=0.0).run(problem, start, progress=progress)
        assert (result.n_iter, result.converged, result.n_passes) == (2, True, passes)


class Growing(Contraction):
    """Each step multiplies A by a hundred thousand."""

    def step(self, problem, theta, gradient, progress):
        return theta.with_blocks([1e5 * theta.core, *theta.factors])


@pytest.mark.parametrize(("size", "steps"), [(100.0, 1), (1e-3, 2)])
def test_a_run_away_ends_where_it_last_was_of_any_use(problem, size, steps):
    """Beyond 1e8 of its start, or of one where that is less."""
    (start,) = trail((size, 0))
    result = Growing().run(problem, start)
    assert result.diverged
    assert (result.n_iter, result.converged) == (steps, False)
    assert result.reason == (
        f"diverged at iteration {steps + 1}: the steps grow without bound. Try a smaller step, a "
        f"better start, or a smaller threshold"
    )
    np.testing.assert_allclose(result.theta.full(), [size * 1e5**steps, 0])


@pytest.mark.parametrize("entry", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("k", range(3))
def test_a_point_with_an_entry_that_is_not_finite_is_not_within(make_theta, entry, k):
    theta = make_theta((4, 3), (2, 2))
    blocks = [block.copy() for block in theta.blocks]
    blocks[k][0, 0] = entry
    assert not _within(theta.with_blocks(blocks), math.inf)


def test_a_point_is_within_what_its_tensor_is_smaller_than(make_theta):
    """Also where the product of its blocks is larger."""
    theta = make_theta((4, 3), (2, 2))
    sizes = [np.linalg.norm(block) for block in theta.blocks]
    for largest in (1.01 * theta.norm(), 1.01 * math.prod(sizes)):
        assert _within(theta, largest)
    assert not _within(theta, 0.99 * theta.norm())


def test_points_share_a_pass_as_far_as_their_matrices_have_room():
    sizes = {5: 10, 2: 20, 7: 30, 4: 0}
    assert list(batches(sizes, math.inf)) == [[5, 2, 7, 4]]
    assert list(batches(sizes, 60)) == [[5, 2, 7, 4]]
    assert list(batches(sizes, 30)) == [[5, 2], [7, 4]]
    assert list(batches(sizes, 1.0)) == [[5], [2], [7], [4]]


def test_a_solver_that_needs_the_matrix_gets_it(problem):
    (start,) = trail((100, 0))

    class Curved(Contraction):
        curvature = True

        def step(self, problem, theta, gradient, progress):
            found.append((gradient.curvature is None, gradient.tensor is None))
            return super().step(problem, theta, gradient, progress)

    found = []
    Curved(2).run(problem, start)
    assert found == [(False, False)] * 2
