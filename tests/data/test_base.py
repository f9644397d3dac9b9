"""Sums of what chunks find, and samples that are looked at."""

import numpy as np
import pytest

from tauten.data import Rows
from tauten.data.base import add_up
from tauten.data.blocks import Blocks
from tauten.data.files import Files
from tauten.data.stored import stored


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


@pytest.fixture(params=["memory", "file", "dask"])
def place(request, tmp_path):
    """Make samples that live somewhere."""

    def samples(X, y):
        if request.param == "memory":
            return Rows(X, y)
        if request.param == "dask":
            dask = pytest.importorskip("dask.array")
            return Blocks(dask.from_array(X, chunks=(7, 3)), y, memory=2**30)
        np.save(tmp_path / "X.npy", X)
        return Files(stored(np.load(tmp_path / "X.npy", mmap_mode="r")), y, memory=2**20)

    return samples


def test_samples_are_looked_at_once_whatever_their_weights(place, rng):
    X, y, weight = rng.normal(size=(20, 3)), rng.normal(size=20), rng.uniform(1, 2, size=20)
    data = place(X, y)
    first, before = data.sample(10), data.reads.passes
    assert 0 < before <= 1
    weighed, others = data.reweight(weight), data.reweight(2 * weight)
    for samples, expected in ((weighed, weight), (others, 2 * weight)):
        found = samples.sample(10)
        assert found.X is first.X
        np.testing.assert_array_equal(found.weight, expected[::2])
        assert data.reads.passes == before
    assert first.weight is None
    np.testing.assert_array_equal(first.X, X[::2])


def test_samples_without_weight_are_not_looked_at(place, rng):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    data = place(X, y)
    data.sample(20)
    some = data.reweight(np.arange(20) % 4 / 1.0).sample(20)
    np.testing.assert_array_equal(some.X, X[np.arange(20) % 4 > 0])
