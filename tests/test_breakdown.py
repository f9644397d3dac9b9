"""What robust gradients declare to bound, whole fits bear: see docs/breakdown.md."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from breakdown import BROKEN, PLACES, ROBUST, error

from tauten.robust import Robustifier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SEEDS = range(6)
FEW, MANY = 0.01, 0.1
LARGE, HUGE = 1e3, 1e6
BLOCKS = {"mom", "rank"}  # wild samples must leave most of their 11 blocks alone
DECLARED = [
    (robust, place)
    for robust in ROBUST
    for place, wild in PLACES.items()
    if wild <= Robustifier.registry[robust].bounds
]


def errors(robust, place, share, size):
    return np.array([error(robust, place, share, size, seed) for seed in SEEDS])


@pytest.mark.parametrize(("robust", "place"), DECLARED)
def test_what_is_declared_is_borne_at_any_size(robust, place):
    share = FEW if robust in BLOCKS else MANY
    large, huge = (errors(robust, place, share, size) for size in (LARGE, HUGE))
    assert huge.max() < 0.3
    # no more than what is a thousand times smaller; a single fit may end elsewhere
    assert np.mean(np.log(huge / large)) < np.log(1.1)


def test_least_squares_is_broken():
    assert errors("none", "y", FEW, HUGE).min() > 1000 * BROKEN
    assert errors("none", "both", MANY, HUGE).min() > BROKEN


@pytest.mark.parametrize("robust", sorted(BLOCKS))
def test_blocks_are_broken_when_most_of_them_are_hit(robust):
    assert errors(robust, "y", MANY, HUGE).min() > BROKEN


def test_the_default_bears_more_in_responses():
    assert errors("auto", "y", 0.3, HUGE).max() < 0.2
