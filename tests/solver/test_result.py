"""How far a Hessian is trusted, and for how long a matrix is kept, from one step to the next."""

import numpy as np
import pytest

from tauten.solver.result import Kept, Progress


def test_reach_follows_the_lengths_of_steps():
    progress = Progress(reach=0.02)
    progress.move(4.0, 50.0, stretched=False)  # shorter than none before it
    assert (progress.moved, progress.reach) == (4.0, pytest.approx(0.025))
    progress.move(6.0, 40.0, stretched=False)  # longer: half the last one, relative to A
    assert (progress.moved, progress.reach) == (6.0, pytest.approx(0.05))
    progress.move(6.0, 30.0, stretched=False)  # no shorter
    assert progress.reach == pytest.approx(0.1)
    progress.move(1.0, 30.0, stretched=False)  # never further than a tenth of A
    assert progress.reach == pytest.approx(0.1)
    progress.move(9.0, 0.0, stretched=True)  # tells nothing
    assert (progress.moved, progress.reach) == (np.inf, pytest.approx(0.1))


def test_the_last_two_steps_are_known_by_their_lengths():
    progress = Progress()
    seen = []
    for length, stretched in ((4, False), (3, False), (9, True), (2, False), (1, False)):
        progress.move(length, 50.0, stretched=stretched)
        seen.append((progress.before, progress.moved))
    inf = np.inf
    assert seen == [(inf, 4), (4, 3), (inf, inf), (inf, 2), (2, 1)]


def test_a_run_may_know_the_last_step_of_an_earlier_one():
    """For how far its own first one leads, not for how far it can be trusted."""
    progress = Progress(before=1e-3)
    progress.move(4.0, 50.0, stretched=False)
    assert (progress.before, progress.moved) == (1e-3, 4.0)
    assert progress.reach == Progress().reach


def test_a_step_from_nothing_has_a_finite_reach():
    progress = Progress(moved=1e-30)
    progress.move(1.0, 0.0, stretched=False)
    assert 0 < progress.reach < float("inf")


def test_a_matrix_is_kept_while_steps_shrink(make_theta):
    matrix = Kept(make_theta((3, 2), (1, 1)), np.eye(6), 0.0)
    progress = Progress(kept=matrix)
    for length, kept in ((4.0, matrix), (2.7, matrix), (1.9, None)):
        progress.move(length, 50.0, stretched=False)
        assert progress.kept is kept


@pytest.mark.parametrize(("lost", "kept"), [(0.0, True), (0.07, True), (0.09, False)])
def test_a_gentler_fit_takes_a_matrix_over_that_lost_little(lost, kept, make_theta):
    matrix = Kept(make_theta((3, 2), (1, 1)), np.eye(6), lost)
    new = Progress(thrifty=True, kept=matrix, moved=1.0).gentler()
    assert new == Progress(thrifty=True, kept=matrix if kept else None)
    assert Progress(thrifty=True).gentler() == Progress(thrifty=True)
