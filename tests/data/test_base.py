"""Sums of what chunks find."""

import numpy as np

from tauten.data.base import add_up


def test_sums_are_item_by_item(rng):
    rows = [[rng.normal(size=3), k, 0.0 if k < 2 else rng.normal(size=2)] for k in range(5)]
    first, second, third = add_up(rows)
    np.testing.assert_allclose(first, np.sum([row[0] for row in rows], axis=0), rtol=1e-14)
    assert second == 10
    np.testing.assert_allclose(third, np.sum([row[2] for row in rows[2:]], axis=0), rtol=1e-14)


def test_what_is_added_up_stays_as_it_is(rng):
    """A scheduler that lost a sum adds the same rows again."""
    for count in (1, 2, 3, 5):
        rows = [[rng.normal(size=3)] for _ in range(count)]
        before = [row[0].copy() for row in rows]
        once, again = add_up(rows)[0], add_up(rows)[0]
        np.testing.assert_array_equal(once, again)
        np.testing.assert_array_equal([row[0] for row in rows], before)
