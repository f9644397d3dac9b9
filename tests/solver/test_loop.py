"""Parts of the loop: steps that stretch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tauten.solver.loop import stretch
from tauten.tucker import Tucker


def trail(*points):
    """Vectors in the plane, as points of a run."""
    return [Tucker(np.ones(1), [np.array(point, float)[:, None]]) for point in points]


def turned(cosine):
    """Two steps of lengths 1 and ½ from (100, 0), the second turned."""
    sine = math.sqrt(1 - cosine**2)
    return trail((100, 0), (101, 0), (101 + cosine / 2, sine / 2))


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8])
def test_steps_on_a_line_go_to_the_end_of_their_series(ratio):
    found = stretch(trail((100, 0), (101, 0), (101 + ratio, 0)))
    assert found == pytest.approx(sum(ratio**k for k in range(200)))


def test_a_stretched_step_stands_for_ten_at_most():
    assert stretch(trail((100, 0), (101, 0), (101.95, 0))) == 10


def test_a_stretched_step_is_a_tenth_of_the_tensor_at_most():
    assert stretch(trail((10, 0), (10.5, 0), (10.9, 0))) == pytest.approx(1.09 / 0.4)


def test_steps_that_turn_are_not_stretched():
    assert stretch(turned(0.995)) == pytest.approx(2.0)
    assert stretch(turned(0.98)) == 1.0
    assert stretch(turned(-0.995)) == 1.0


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
    assert stretch(trail(*points)) == 1.0
