"""How far a Hessian is trusted, from one step to the next."""

import pytest

from tauten.solver.result import Progress


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
    assert (progress.moved, progress.reach) == (9.0, pytest.approx(0.1))


def test_a_step_from_nothing_has_a_finite_reach():
    progress = Progress(moved=1e-30)
    progress.move(1.0, 0.0, stretched=False)
    assert 0 < progress.reach < float("inf")
