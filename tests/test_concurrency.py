"""Threads, processes and both: the same bits, no more threads than allowed, no deadlock."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import threadpoolctl

import tauten as tt
import workers
from forks import forks, in_a_fork, needs_fork
from tauten.data import Rows, available_threads, threads
from tauten.estimators import glm
from tauten.init import thresholding

SEEDS = (0, 1, 2)
SMALL = (200, 4, 4)

needs_cores = pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core")


@pytest.fixture
def two_threads():
    """As on a machine with two cores to spare, whatever the environment of the tests says."""
    with threadpoolctl.threadpool_limits(2):
        yield


def large_rows(threads=None):
    X = np.broadcast_to(1.0, workers.LARGE)
    return Rows(X, np.ones(workers.LARGE[0]), threads=threads)


def names_of_threads(rows, together=1):
    """Who goes over the samples; `together` chunks wait for each other, so on as many threads."""
    seen, barrier = set(), threading.Barrier(together, timeout=60)

    def visit(chunk):
        barrier.wait()
        seen.add(threading.current_thread().name)
        return (0,)

    rows.map_sum(visit)
    return seen


# ------------------------------------------------- the same bits


def test_fits_in_parallel_threads():
    with threadpoolctl.threadpool_limits(1):
        serial = [workers.bits(seed) for seed in SEEDS]
        with ThreadPoolExecutor(len(SEEDS)) as pool:
            assert list(pool.map(workers.bits, SEEDS)) == serial


def test_fits_in_parallel_threads_that_have_threads_themselves(two_threads):
    """A fit holds linear algebra to one thread, for the others too: they differ in rounding."""
    serial = [workers.fit(seed).coef_ for seed in SEEDS[:2]]
    limits = threadpoolctl.threadpool_limits  # some of the limits are of a thread, not of all
    with ThreadPoolExecutor(2, initializer=limits, initargs=(2,)) as pool:
        parallel = [model.coef_ for model in pool.map(workers.fit, SEEDS[:2])]
    np.testing.assert_allclose(parallel, serial, rtol=1e-10, atol=1e-10)


@forks
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, marks=[] if method == "fork" else pytest.mark.slow)  # each imports all
        for method in multiprocessing.get_all_start_methods()
    ],
)
def test_fits_in_parallel_processes(method):
    serial = [workers.bits(seed, SMALL) for seed in SEEDS]
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        parallel = list(pool.map(workers.bits, SEEDS, [SMALL] * len(SEEDS), timeout=120))
    assert parallel == serial


def test_a_model_shared_by_threads_for_predictions():
    X, y = workers.problem(0, SMALL)
    model = workers.fit(0, SMALL)
    X.setflags(write=False)
    expected, before = model.predict(X), pickle.dumps(model)
    barrier = threading.Barrier(4, timeout=60)

    def predict(_):
        barrier.wait()
        return [(model.predict(X), model.score(X, y)) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        answers = [answer for found in pool.map(predict, range(4)) for answer in found]
    assert all(np.array_equal(predicted, expected) for predicted, _ in answers)
    assert len({score for _, score in answers}) == 1
    assert pickle.dumps(model) == before


# ------------------------------------------------- no more threads than allowed


@needs_cores
def test_threads_that_live_on_leave_the_limits_to_others():
    """The first of two passes sets the limit, the last one lifts it: both in threads that stay."""
    with ThreadPoolExecutor(2) as pool:
        inside, done = threading.Event(), threading.Event()

        def first():
            with threads.BLAS.single():
                inside.set()
                done.wait(60)

        def last():
            inside.wait(60)
            with threads.BLAS.single():
                done.set()
                earlier.result(60)

        earlier = pool.submit(first)
        pool.submit(last).result(60)
        for size in (2, 1):
            with threadpoolctl.threadpool_limits(size):
                assert available_threads() == size


def threads_of_blas():
    pools = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


@needs_cores
def test_a_fit_keeps_linear_algebra_to_one_thread_between_its_passes(two_threads, monkeypatch):
    """Those of OpenBLAS spin after use: they would be in the way of the next pass."""
    seen = {"start": [], "steps": [], "end": []}

    def watch(owner, name, where):
        work = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *a: seen[where].append(threads_of_blas()) or work(*a)
        )

    def found(*names):
        threads = [seen[name] for name in names]
        assert all(threads)
        assert threads_of_blas() == {2}
        return {size for one in threads for pools in one for size in pools}

    watch(thresholding, "tangent", "start")
    watch(tt.solver.Newton, "step", "steps")
    watch(glm, "linear_at_origin", "end")
    X, y = workers.problem(0)
    model = tt.TensorRegressor(rank=1, init="iht").fit(X, y)
    assert found("start", "steps", "end") == {1}
    seen["steps"].clear()
    model.confidence_intervals(X, y, method="bootstrap", n_boot=2)
    assert found("steps") == {1}
    seen["start"].clear(), seen["steps"].clear()
    tt.TensorRegressor(rank=1, init="iht").fit(*workers.problem(0, SMALL))
    assert found("start", "steps") == {1}  # they would wait for each other on a busy machine


@needs_cores
def test_large_linear_algebra_has_all_threads(two_threads):
    with threads.BLAS.all_for(1e12):
        assert threads_of_blas() == {2}
    with threads.BLAS.single():
        with threads.BLAS.all_for(1e6):
            assert threads_of_blas() == {1}
        with threads.BLAS.all_for(1e12):
            assert threads_of_blas() == {2}
        assert threads_of_blas() == {1}
        with pytest.raises(RuntimeError, match="no"), threads.BLAS.all_for(1e12):
            raise RuntimeError("no")
        assert threads_of_blas() == {1}
    assert threads_of_blas() == {2}


@needs_cores
def test_limits_of_linear_algebra_hold_for_passes(two_threads):
    assert len(names_of_threads(large_rows(), together=2)) == 2
    with threadpoolctl.threadpool_limits(1):
        assert names_of_threads(large_rows()) == {threading.current_thread().name}


@needs_cores
def test_a_pass_elsewhere_does_not_change_how_many_threads_there_are(two_threads):
    """While one fit holds linear algebra to one thread, another begins: same threads, same bits."""
    before, during = available_threads(), []
    large_rows().map_sum(lambda chunk: (during.append(available_threads()) or 0,))
    assert before == 2
    assert set(during) == {before}


@needs_cores
@pytest.mark.parametrize("model", [tt.TensorRegressor, tt.TensorClassifier, tt.TensorPCA])
def test_one_job_makes_no_thread(model, two_threads, monkeypatch):
    """Nor does a prediction; of two jobs the second is a thread, or this test would say nothing."""
    X, y = workers.problem(0)
    y = y > np.median(y) if model is tt.TensorClassifier else y
    options = {"replicates": True} if model is tt.TensorPCA else {}
    options |= {"rank": 1, "robust": "none", "solver": "gd:n_iter=1,tol=0"}
    monkeypatch.setattr(threads, "ThreadPoolExecutor", lambda *a, **k: pytest.fail("a thread"))
    fitted = model(n_jobs=1, **options).fit(X, y)
    fitted.transform(X) if model is tt.TensorPCA else fitted.predict(X)
    with pytest.raises(pytest.fail.Exception, match="a thread"):
        model(n_jobs=2, **options).fit(X, y)


@needs_cores
def test_same_bits_for_the_same_jobs(two_threads):
    """Two are all that there are: to ask for them, for all or for more is the same."""
    found = [workers.bits(0, n_jobs=n_jobs) for n_jobs in (2, 2, None, 7)]
    assert len(set(found)) == 1
    assert workers.bits(0, n_jobs=1) == workers.bits(0, n_jobs=-2)


@pytest.mark.slow
def test_workers_of_joblib_share_the_cores(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = joblib.cpu_count()
    found = joblib.Parallel(cores)(joblib.delayed(workers.threads)() for _ in range(2 * cores))
    assert set(found) == {1}


# ------------------------------------------------- forks


@forks
@needs_fork
def test_fork_with_live_threads(two_threads):
    rows = large_rows()
    together = min(2, joblib.cpu_count())
    expected, passes = workers.bits(0), names_of_threads(rows, together)
    found = in_a_fork(lambda: (workers.bits(0), names_of_threads(rows, together)))
    assert found == (expected, passes)  # the same data, and threads of the child's own


@forks
@needs_fork
@needs_cores
def test_fork_in_the_middle_of_a_pass(two_threads):
    """The child has no part in a limit that is set for threads it does not have."""
    inside, done = threading.Event(), threading.Event()

    def wait(chunk):
        inside.set()
        return (0 if done.wait(60) else pytest.fail("never told to go on"),)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(large_rows(threads=2).map_sum, wait)
        assert inside.wait(60)
        try:
            found = in_a_fork(lambda: (blas_threads(), blas_threads_in_a_pass(), blas_threads()))
        finally:
            done.set()
        running.result(60)
    assert found == ({2}, {1}, {2})
    assert blas_threads() == {2}


def blas_threads():
    pools = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def blas_threads_in_a_pass():
    seen = set()
    large_rows().map_sum(lambda chunk: (seen.update(blas_threads()) or 0,))
    return seen
