"""Fits of data on disk: the same answers, within the memory allowed."""

import os
import threading
import tracemalloc

import numpy as np
import pytest

import tauten as tt
import tauten.data.stored
from stores import KINDS, hdf5_chunks, memmap, zarr_chunks
from tauten.data import Files, Rows, gather, memory_bytes
from tauten.data.memory import keep_memory
from tauten.data.stored import Stored, stored
from tauten.kernels import norms
from tauten.robust import Truncate


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 300, shape=(5, 4, 3), noise="t:2", rng=0)


@pytest.fixture
def same_pilot(monkeypatch):
    """The start and the thresholds look at as many samples as they do in memory."""
    monkeypatch.setattr(Files, "room", property(lambda self: self.n))


def files(X, y, path, memory=2**15, **options):
    return Files(stored(memmap(X, path)), y, memory=memory, **options)


def everything(chunk):
    return [
        chunk.X.sum(axis=0),
        chunk.y @ chunk.y,
        chunk.norms(None, norms).sum(),
        chunk.y.shape[0],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_the_one_in_memory(kind, data, same_pilot, tmp_path):
    X, y = kind(data.X, tmp_path), data.y
    there, here = (tt.TensorRegressor(rank=1, memory=memory) for memory in ("200kB", None))
    there.fit(X, y)
    here.fit(data.X, y)
    assert there.rank_ == here.rank_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-8)
    np.testing.assert_allclose(there.influence_, here.influence_, atol=1e-8)
    np.testing.assert_allclose(there.predict(X), here.predict(data.X), atol=1e-8)
    assert there.score(X, y) == pytest.approx(here.score(data.X, y))
    assert there.n_features_in_ == 5
    assert there.sample_shape_ == (5, 4, 3)


def test_everything_may_be_on_disk(data, same_pilot, rng, tmp_path):
    names = ("X", "y", "Z", "w")
    arrays = (data.X, data.y, rng.normal(size=(300, 2)), rng.uniform(size=300))
    places = [tmp_path / name for name in names]
    for place in places:
        place.mkdir()
    X, y, Z, w = (hdf5_chunks(a, place) for a, place in zip(arrays, places, strict=True))
    there = tt.TensorRegressor(rank=1, memory="100kB").fit(X, y, covariates=Z, sample_weight=w)
    here = tt.TensorRegressor(rank=1).fit(
        data.X, data.y, covariates=arrays[2], sample_weight=arrays[3]
    )
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)
    np.testing.assert_allclose(there.covariate_coef_, here.covariate_coef_, atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"robust": Truncate(tau="cv"), "rank": 1},
        pytest.param({"rank": "auto"}, marks=pytest.mark.slow),
        pytest.param({"rank": "cv"}, marks=pytest.mark.slow),
    ],
)
def test_choices_that_need_fits(options, data, same_pilot, tmp_path):
    X, y = data.X[:80], data.y[:80]
    there = tt.TensorRegressor(**options, memory="50kB").fit(memmap(X, tmp_path), y)
    here = tt.TensorRegressor(**options).fit(X, y)
    assert there.rank_ == here.rank_
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)


@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_intervals(method, data, same_pilot, tmp_path):
    X = memmap(data.X, tmp_path)
    options = {"method": method, "n_boot": 3, "random_state": 0}
    there = tt.TensorRegressor(rank=1, memory="100kB").fit(X, data.y)
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    mine = there.confidence_intervals(X, data.y, **options)
    theirs = here.confidence_intervals(data.X, data.y, **options)
    np.testing.assert_allclose(mine.stderr, theirs.stderr, rtol=1e-6)


def test_classes(same_pilot, tmp_path):
    data = tt.datasets.make_model("III", 300, shape=(5, 4, 3), rng=0)
    labels = np.where(data.y > 0, "yes", "no")
    X = memmap(data.X, tmp_path)
    there = tt.TensorClassifier(rank=1, memory="100kB").fit(X, labels)
    here = tt.TensorClassifier(rank=1).fit(data.X, labels)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)
    np.testing.assert_array_equal(there.predict(X), here.predict(data.X))
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(data.X))
    assert there.score(X, labels) == here.score(data.X, labels)


def test_tensor_responses_stay_on_disk(same_pilot, tmp_path):
    data = tt.datasets.make_model("II", 200, shape=(4, 3, 5), rng=0)
    y = hdf5_chunks(data.y, tmp_path)
    there = tt.TensorRegressor(rank=1, memory="20kB").fit(data.X, y)
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)


def test_replicates_with_missing_entries(same_pilot, rng, tmp_path):
    Y = tt.datasets.make_model("IV", 60, shape=(6, 5, 4), noise="t:2", rng=0).y
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    stored_Y = zarr_chunks(Y, tmp_path)
    there = tt.TensorPCA(rank=1, replicates=True, memory="40kB").fit(stored_Y)
    here = tt.TensorPCA(rank=1, replicates=True).fit(Y)
    np.testing.assert_allclose(there.low_rank_, here.low_rank_, atol=1e-8)
    np.testing.assert_allclose(there.transform(stored_Y), here.transform(Y), atol=1e-8)


def test_memory_is_kept_to(rng, tmp_path):
    """A file of 40 MB, 8 MB allowed: the start, the thresholds and the fit stay below."""
    n, shape = 5000, (10, 10, 10)
    X = memmap(rng.normal(size=(n, *shape)), tmp_path)
    y = np.asarray(X[:, 0, 0, 0]) + rng.standard_t(2, size=n)
    model = tt.TensorRegressor(rank=1, memory="8MB")
    keep_memory()  # once a process: memory that is asked for and never written to
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8e6 + 2e6  # and a few vectors of n numbers
    assert model.coef_[0, 0, 0] == pytest.approx(1, abs=0.2)


def test_fewer_samples_are_looked_at_where_memory_is_short(data, tmp_path):
    room = files(data.X, data.y, tmp_path, memory=40 * 480).room
    assert room == 10
    assert files(data.X, data.y, tmp_path, memory=40 * 480).sample(2000).X.shape[0] == 10


def test_small_files_are_read_once(data, tmp_path):
    X = memmap(data.X, tmp_path)
    assert isinstance(gather(stored(X), data.y, memory="1MB"), Rows)
    assert isinstance(gather(stored(X), data.y, memory="100kB"), Files)


def test_passes_are_what_is_read(data, tmp_path, monkeypatch):
    rows, read = [], Stored.read

    def count(self, low, high, *room):
        rows.append(high - low)
        return read(self, low, high, *room)

    monkeypatch.setattr(Stored, "read", count)
    model = tt.TensorRegressor(rank=1, memory="100kB").fit(memmap(data.X, tmp_path), data.y)
    assert model.result_.n_passes == pytest.approx(sum(rows) / 300)


def test_slabs_end_where_the_file_s_chunks_do(data, tmp_path):
    array = stored(zarr_chunks(data.X, tmp_path))  # seven samples of 480 bytes each
    assert Files(array, data.y, memory=5 * 480 * 20).slab == 14
    assert Files(array, data.y, memory=5 * 480 * 5).slab == 7
    with pytest.raises(ValueError, match=r"memory must be at least 10080 bytes .* 7 sample"):
        Files(array, data.y, memory=480 * 20)


def test_the_next_slab_is_read_meanwhile(data, tmp_path, monkeypatch):
    rows = files(data.X, data.y, tmp_path)
    second = threading.Event()
    load = Files._load

    def loading(self, start, *room):
        if start == rows.slab:
            second.set()
        return load(self, start, *room)

    monkeypatch.setattr(Files, "_load", loading)
    rows.map_sum(lambda chunk: [chunk.start > 0 or second.wait(20) or pytest.fail("not ahead")])


@pytest.mark.parametrize("kind", [memmap, hdf5_chunks, zarr_chunks])
def test_slabs_share_two_places_in_memory(kind, data, tmp_path):
    rows = Files(stored(kind(data.X, tmp_path)), data.y, memory=2**15)
    places = []

    def place(chunk):
        places.append(chunk.X.__array_interface__["data"][0])
        return everything(chunk)

    found = rows.map_sum(place)
    assert len(places) > 4
    assert len(set(places)) == 2
    np.testing.assert_allclose(found[0], data.X.sum(axis=0))


def test_other_work_is_spread_over_the_threads_that_were_asked_for(data, tmp_path):
    here, barrier = threading.current_thread(), threading.Barrier(2, timeout=20)
    alone = files(data.X, data.y, tmp_path, threads=1)
    with alone.at_work():
        assert alone.spread(lambda _: threading.current_thread() is here, [1, 2]) == [True, True]
    pair = files(data.X, data.y, tmp_path, threads=2)
    assert pair.spread(lambda share: barrier.wait() >= 0 and share, [2, 1]) == [2, 1]


def test_a_failing_pass_leaves_no_thread(data, tmp_path):
    def fail(chunk):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        files(data.X, data.y, tmp_path).map_sum(fail)
    assert not [t for t in threading.enumerate() if t.name.startswith("tauten-read")]


@pytest.mark.parametrize("damage", [lambda p: os.truncate(p, 5000), lambda p: os.utime(p, (1, 1))])
def test_a_file_that_changes_during_a_fit(damage, data, tmp_path):
    rows = files(data.X, data.y, tmp_path)
    before = rows.map_sum(everything)
    np.testing.assert_allclose(before[0], data.X.sum(axis=0))

    def meddle(chunk):
        if chunk.start == 0:
            damage(tmp_path / "a.npy")
        return everything(chunk)

    with pytest.raises(OSError, match=r"cut short|changed while it was in use"):
        rows.map_sum(meddle)
    with pytest.raises(OSError, match="changed while it was in use"):
        rows.map_sum(everything)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(bad, data, tmp_path):
    X = data.X.copy()
    X[201, 0, 0, 0] = bad
    model = tt.TensorRegressor(rank=1, memory="100kB")
    with pytest.raises(ValueError, match="X must hold finite numbers; one of its samples from"):
        model.fit(memmap(X, tmp_path), data.y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("memory", "expected"),
    [(12, 12), ("3 kB", 3000), ("2MiB", 2**21), ("0.5g", 5 * 10**8), (None, 2**30)],
)
def test_memory_in_words(memory, expected):
    assert memory_bytes(memory) == expected


@pytest.mark.parametrize("memory", [0, -1, "much", "1XB", "1.2.3GB", np.inf, True, [1]])
def test_memory_that_makes_no_sense(memory, data):
    with pytest.raises(ValueError, match="memory must be a positive number of bytes"):
        tt.TensorRegressor(memory=memory).fit(data.X, data.y)


def test_text_is_no_number(tmp_path):
    X = memmap(np.array([["a", "b"]]), tmp_path)
    with pytest.raises(ValueError, match="X must be an array of numbers"):
        tt.TensorRegressor().fit(X, [1.0])


def test_lengths_must_agree(data, tmp_path):
    with pytest.raises(ValueError, match="same number of samples"):
        tt.TensorRegressor(memory="100kB").fit(memmap(data.X, tmp_path), data.y[1:])


def test_starts_that_copy_x_say_so(data, tmp_path):
    with pytest.raises(ValueError, match="makes a copy of X, which is not in memory; use 'nuc"):
        tt.TensorRegressor(rank=1, init="nuclear-literal", memory="100kB").fit(
            memmap(data.X, tmp_path), data.y
        )


# ------------------------------------------------- integers in memory


@pytest.fixture
def counts(monkeypatch, rng):
    """As if these were more than may become floats at once."""
    X = rng.integers(0, 200, size=(600, 8, 8, 8))
    monkeypatch.setattr(tauten.data.stored, "AT_ONCE", 8 * X.size - 1)
    return X, X[:, 0].sum(axis=(1, 2)) + rng.standard_t(2, size=600)


@pytest.mark.parametrize("dtype", [np.int16, np.uint8])
def test_many_integers_are_their_floats(dtype, counts, same_pilot):
    X, y = counts[0].astype(dtype), counts[1]
    assert stored(X[1:]) is None
    whole = tt.TensorRegressor(rank=1).fit(counts[0].astype(float), y)
    parts = tt.TensorRegressor(rank=1, memory="400kB").fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)


def test_many_integers_never_are_floats_all_at_once(counts):
    X, y = counts[0].astype(np.int16), counts[1]
    model = tt.TensorRegressor(rank=1, memory="400kB")
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.size / 2
