"""Passes over the samples: chunks, threads, and what they share with linear algebra."""

import contextlib
import gc
import threading
import time
import weakref

import joblib
import numpy as np
import pytest
import threadpoolctl

import tauten as tt
import tauten.data.rows
from tauten.data import Rows, Samples, available_threads, threads
from tauten.kernels import norms


@pytest.fixture
def many(monkeypatch):
    """Every pass is worth threads."""
    monkeypatch.setattr(tauten.data.rows, "WORTH_THREADS", 0)


def sums(rows):
    return rows.map_sum(lambda c: (c.X.sum(axis=0), c.y @ c.y, c.y.shape[0]))


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_threads_do_not_matter(many, rng, n, threads):
    X, y = rng.normal(size=(n, 4)), rng.normal(size=n)
    rows = Rows(X, y, chunk=3, threads=threads)
    total, square, count = sums(rows)
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-12, atol=1e-12)
    assert square == pytest.approx(y @ y)
    assert count == n
    np.testing.assert_array_equal(rows.map_rows(lambda c: c.y), y)
    assert rows.reads.passes == 2


def test_same_bits_for_the_same_threads(many, rng):
    X, y = rng.normal(size=(1000, 7)), rng.normal(size=1000)
    totals = [sums(Rows(X, y, chunk=11, threads=3))[0] for _ in range(5)]
    assert all(np.array_equal(totals[0], t) for t in totals)


def test_passes_use_the_threads_they_were_given(many, rng):
    names = Rows(rng.normal(size=(40, 2)), np.ones(40), chunk=1, threads=2)
    seen = set()
    barrier = threading.Barrier(2, timeout=20)  # only passed if two threads are in it at once

    def visit(chunk):
        if chunk.start in (0, 20):
            barrier.wait()
        seen.add(threading.current_thread().name)
        return (1,)

    assert names.map_sum(visit) == [40]
    assert len(seen) == 2


def test_other_work_is_spread_over_the_same_threads(many, rng):
    rows = Rows(rng.normal(size=(40, 2)), np.ones(40), chunk=1, threads=2)
    barrier = threading.Barrier(2, timeout=20)  # only passed if two threads are in it at once
    assert rows.spread(lambda share: barrier.wait() >= 0 and share, [3, 1, 2, 4]) == [3, 1, 2, 4]
    alone, here = Rows(np.ones((1, 2)), np.ones(1), threads=2), threading.current_thread()
    assert alone.spread(lambda share: threading.current_thread() is here, [1, 2]) == [True] * 2


def test_threads_do_about_overflow_what_their_caller_does(many):
    rows = Rows(np.full((40, 2), 1e300), np.ones(40), chunk=5, threads=2)

    def square(chunk):
        return (float(np.sum(chunk.X**2)),)

    with np.errstate(over="ignore"):
        assert rows.map_sum(square) == [np.inf]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        rows.map_sum(square)


def test_shares_go_to_who_is_free():
    team, at_work = threads.Team(2), threading.Event()

    def wait_for_the_others(share):
        if share == 0:
            assert at_work.wait(20)  # until all others are done, by one thread
        elif share == 5:
            at_work.set()
        return -share

    assert team.map(wait_for_the_others, range(6)) == [0, -1, -2, -3, -4, -5]


def test_no_share_is_begun_after_an_error():
    team, begun = threads.Team(2), []

    def fail(share):
        begun.append(share)
        raise IndexError("no")  # as a queue does that has no more

    with pytest.raises(IndexError, match="no"):
        team.map(fail, range(50))
    assert len(begun) <= 2
    assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]


def test_work_may_be_shared_within_work():
    team = threads.Team(2)

    def outer(share):
        return sum(team.map(lambda one: share * one, range(4)))

    assert team.map(outer, range(5)) == [0, 6, 12, 18, 24]


def test_nobody_works_on_where_helpers_cannot_be_found(monkeypatch):
    team, done = threads.Team(3), []
    pool = team._pool()
    submit, asked = pool.submit, []

    def second_fails(work):
        asked.append(work)
        if len(asked) == 2:
            raise RuntimeError("can't start new thread")
        return submit(work)

    monkeypatch.setattr(pool, "submit", second_fails)
    with pytest.raises(RuntimeError, match="can't start"):
        team.map(lambda share: time.sleep(0.05) or done.append(share), range(40))
    count = len(done)
    assert count < 40
    time.sleep(0.2)
    assert len(done) == count


def test_an_error_does_not_keep_samples_alive():
    class Sample:
        pass

    left = []

    def fail(share):
        sample = Sample()
        left.append(weakref.ref(sample))
        raise ValueError("no")

    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            threads.Team(2).map(fail, range(2))
        assert [ref() for ref in left] == [None] * len(left)
    finally:
        gc.enable()


def test_arrays_as_responses_are_worth_threads_earlier():
    X, here = np.zeros((1500, 900)), threading.current_thread()  # ten megabytes

    def done_here(y):
        return Rows(X, y, threads=2).map_sum(lambda _: (threading.current_thread() is here,))[0]

    assert done_here(np.zeros(1500))
    assert not done_here(np.zeros((1500, 4)))


def test_small_data_use_one_thread(rng):
    rows = Rows(rng.normal(size=(40, 2)), np.ones(40), chunk=1, threads=8)
    here = threading.current_thread()
    rows.map_sum(lambda c: (threading.current_thread() is here or pytest.fail("a thread"),))


def test_threads_respect_limits():
    with threadpoolctl.threadpool_limits(1):
        assert available_threads() == 1


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, 4), (1, 1), (3, 3), (9, 4), (-1, 4), (-2, 3), (-9, 1)]
)
def test_n_jobs_counts_threads_that_there_are(n_jobs, expected, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(threads.BLAS, "threads", lambda: 8)
    assert available_threads(n_jobs) == expected


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_bad_n_jobs(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs must be a number of threads.*; got"):
        tt.TensorPCA(rank=1, n_jobs=n_jobs).fit(np.eye(3))


def blas():
    """How many threads each library of linear algebra has."""
    pools = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


def test_a_failing_chunk_raises_and_lifts_the_limit(many, rng):
    before = blas()
    rows = Rows(rng.normal(size=(40, 2)), np.ones(40), chunk=5, threads=2)
    inside = []

    def fail(chunk):
        inside.extend(blas())
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        rows.map_sum(fail)
    assert set(inside) == {1}
    assert blas() == before


@pytest.mark.parametrize(
    ("n", "shape", "width", "expected"),
    [
        (500, (10, 10, 10), 117, 500),
        (6400, (10, 10, 10), 117, 1600),
        (6400, (10, 10, 10), 31, 3200),  # of a lower rank less is made
        (2000, (30, 30, 30), 297, 250),
        (450, (150, 150), 1525, 75),  # of few large modes more is projected
        (450, (150, 150), None, 113),
        (2000, (30, 30, 30), 27_297, 59),  # in PCA scores are as large as samples
        (3000, (10_000,), 20_000, 79),
        (3, (400,) * 3, None, 1),
        (300_000, (6, 6), 29, 15_000),  # so many are enough, however small they are
        (3000, (12, 12), 1800, 750),  # where much is made of small samples
    ],
)
def test_chunks_are_even(n, shape, width, expected):
    X = np.broadcast_to(0.0, (n, *shape))
    sizes = []
    Rows(X, np.zeros(n), threads=1).map_sum(lambda c: (sizes.append(len(c.y)) or 0,), width)
    assert sizes[0] == expected
    assert sum(sizes) == n
    assert sizes[0] - sizes[-1] < len(sizes)


@pytest.mark.parametrize(("n", "expected"), [(6400, 8), (3200, 6), (102_400, 32)])
def test_there_are_chunks_for_every_thread(n, expected):
    X = np.broadcast_to(0.0, (n, 10, 10, 10))
    chunks = Rows(X, np.zeros(n), threads=8).map_sum(lambda chunk: (1,), 31)
    assert chunks == [expected]  # of 4 MB or more, or as many as are in cache


def test_chunks_of_large_responses_are_small():
    sizes = []
    rows = Rows(np.zeros((4000, 3)), np.broadcast_to(0.0, (4000, 40, 40)), threads=1)
    rows.map_sum(lambda chunk: (sizes.append(len(chunk.y)) or 0,), 1700)
    assert sizes == [667] * 5 + [665]


def test_norms_are_kept_for_chunks_of_each_size(monkeypatch, rng):
    monkeypatch.setattr(tauten.data.rows, "SMALL_CHUNK", 1)
    monkeypatch.setattr(tauten.data.rows, "CACHED", 8 * 40)
    X, sizes = rng.normal(size=(40, 3)), []
    rows, expected = Rows(X, np.zeros(40), threads=1), np.sqrt((X**2).sum(axis=1)).sum()

    def sums(chunk):
        sizes.append(len(chunk.y))
        return (chunk.norms(None, norms).sum(),)

    for width in (1, 4, 1, 8):
        assert rows.map_sum(sums, width)[0] == pytest.approx(expected, rel=1e-14)
    assert set(sizes) == {40, 10, 5}


def test_norms_of_centred_samples(rng):
    X, center = rng.normal(size=(50, 60, 70)), rng.normal(size=(60, 70))
    chunk = Rows(X, np.zeros(50)).sample(50)
    expected = np.sqrt(((X - center) ** 2).sum(axis=(1, 2)))
    found = chunk.norms(center, norms)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert chunk.norms(center.copy(), norms) is found
    assert chunk.norms(None, norms) is not found


def test_norms_of_all_samples_are_known_to_every_chunk(many, rng):
    X, center = rng.normal(size=(50, 6, 7)), rng.normal(size=(6, 7))
    rows, asked = Rows(X, np.zeros(50), chunk=11, threads=2), []
    rows.sample(10)  # looked at before, and kept
    whole = rows.norms(center, norms)
    assert rows.reads.passes == 0.16  # every seventh
    np.testing.assert_allclose(whole, np.sqrt(((X - center) ** 2).sum(axis=(1, 2))), rtol=1e-12)

    def anew(X, center):
        asked.append(len(X))
        return norms(X, center)

    picked = np.array([3, 1])
    for data in (rows, rows.reweight(np.ones(50))):
        found = data.map_rows(lambda chunk: chunk.norms(center, anew))
        np.testing.assert_array_equal(found, whole)
        np.testing.assert_array_equal(data.sample(10).norms(center, anew), whole[::7])
        np.testing.assert_array_equal(data.take(picked).norms(center, anew), whole[picked])
    assert not asked
    assert rows.map_rows(lambda chunk: chunk.norms(None, anew)) is not None
    assert sum(asked) == 50  # around another centre
    np.testing.assert_array_equal(Samples.norms(rows, center, anew), whole)  # as of any samples


@pytest.mark.parametrize(("n", "runs"), [(7, [0, 3, 6]), (10, [0, 3, 6, 9]), (40, [0, 18, 37])])
def test_runs_of_neighbours_are_evenly_spread(rng, n, runs):
    X, weight = rng.normal(size=(n, 3)), rng.uniform(size=n)
    found = Rows(X, np.arange(n), None, weight).sample(n).runs(10, 3)
    assert [run.start for run in found] == runs
    rows = np.concatenate([run.y for run in found])
    assert len(rows) == (n if n <= 10 else 9)
    assert len(set(rows.tolist())) == len(rows)
    for run in found:
        assert run.X.base is not None  # a view
        np.testing.assert_array_equal(run.X, X[run.y])
        np.testing.assert_array_equal(run.weight, weight[run.y])


@pytest.mark.parametrize(("n", "kept"), [(7, 7), (10, 10), (11, 6), (20, 10), (21, 7), (95, 9)])
def test_thinned_samples_are_evenly_spread(rng, n, kept):
    X, Z, weight = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.uniform(size=n)
    thin = Rows(X, np.arange(n), Z, weight).sample(n).thin(10)
    rows = thin.y
    assert len(rows) == kept
    assert len(set(np.diff(rows))) <= 1
    for mine, theirs in ((thin.X, X), (thin.Z, Z), (thin.weight, weight)):
        np.testing.assert_array_equal(mine, theirs[rows])
