"""Fits on worker processes: killed, added, remote."""

import os
import random
import signal
import socket
import threading
import time
from contextlib import suppress

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, Event, LocalCluster, Status, wait

import tauten as tt
from tauten.data import blocks, tasks
from tauten.data.base import spacing
from tauten.data.tasks import computed, persisted, places


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )
    with Client(cluster) as client:
        yield client
    with suppress(KeyError):  # dask may hear twice that a killed worker has gone
        cluster.close()


def block(seed):
    """Some samples, made where they are: if they are lost, they are made again."""
    return np.random.default_rng(seed).normal(size=(250, 10, 10, 10))


@pytest.fixture(scope="module", name="X")
def samples():
    made = [dask.delayed(block)(seed) for seed in range(4)]
    parts = [da.from_delayed(b, (250, 10, 10, 10), dtype=float) for b in made]
    return da.concatenate(parts)


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(0)
    signal = np.concatenate([block(seed)[:, 0, 0, 0] for seed in range(4)])
    return signal + rng.standard_t(2, size=1000)


@pytest.fixture(scope="module")
def expected(y):
    return fit(np.concatenate([block(seed) for seed in range(4)]), y)


def fit(X, y):
    """Long enough for something to happen meanwhile."""
    return tt.TensorRegressor(rank=1, solver="newton:n_iter=8,tol=0.0").fit(X, y).coef_


def test_the_answer_is_the_one_in_memory(client, X, y, expected):
    np.testing.assert_allclose(fit(X, y), expected, rtol=0, atol=1e-8)


def loaded_at(client, workers, y):
    """Samples whose blocks are loaded, each on a worker given by its number."""
    client.wait_for_workers(2)  # one may have been killed a moment ago
    there = list(client.nthreads())  # as the scheduler knows them now
    made = [client.submit(block, i, workers=there[w], pure=False) for i, w in enumerate(workers)]
    parts = [da.from_delayed(dask.delayed(b), (250, 10, 10, 10), dtype=float) for b in made]
    data = blocks.Blocks(da.concatenate(parts), y, memory=2**20)
    wait(data._blocks)
    return data


@pytest.mark.parametrize("threads", [1, 2])
def test_a_task_goes_over_what_a_thread_of_a_worker_holds(client, y, monkeypatch, threads):
    """And adds it up before it travels."""
    data, asked = loaded_at(client, [0, 1, 0, 0, 0], np.append(y, y[:250])), []
    who = client.who_has(data._blocks)
    holders = [who[block.key] for block in data._blocks]
    monkeypatch.setattr(blocks, "computed", lambda task: [asked.append(task), computed(task)][1])
    if threads > 1:
        monkeypatch.setattr(blocks, "threads_of_workers", lambda: {h: 2 for (h,) in holders})
    assert data.map_sum(_count) == [1250]
    layers, needs = asked[0].dask.layers, asked[0].dask.get_all_dependencies()
    found = {}
    for key in needs:
        if key.startswith("tauten-sum"):
            held = sorted(int(need.rpartition("-")[2]) for need in needs[key])
            found[tuple(held)] = layers[key].annotations
    groups = [(0, 2, 3, 4), (1,)] if threads == 1 else [(0, 3), (2, 4), (1,)]
    assert found == {
        group: {"workers": [*holders[group[0]]], "allow_other_workers": True} for group in groups
    }


def test_samples_do_not_go_through_the_scheduler(client, y, monkeypatch):
    """Unless their workers cannot be reached from here."""
    data, before = loaded_at(client, [0, 1, 0, 1], y), client.run_on_scheduler(_gathered)
    direct = data.sample(20)
    assert client.run_on_scheduler(_gathered) == before
    data._samples.clear()
    data._looked_at.clear()
    monkeypatch.setattr(socket, "create_connection", _unreachable)
    tasks._answers.cache_clear()
    around = data.sample(20)
    tasks._answers.cache_clear()
    assert client.run_on_scheduler(_gathered) == before + 1
    np.testing.assert_array_equal(direct.X, around.X)
    whole = np.concatenate([block(i) for i in range(4)])
    np.testing.assert_array_equal(direct.X, whole[:: spacing(len(whole), 20)])


def _gathered(dask_scheduler):
    """How often the scheduler was asked for what workers hold, since this was first called."""
    if not hasattr(dask_scheduler, "tauten_asked"):
        dask_scheduler.tauten_asked, gather = 0, dask_scheduler.handlers["gather"]

        def counted(*args, **kwargs):
            dask_scheduler.tauten_asked += 1
            return gather(*args, **kwargs)

        dask_scheduler.handlers["gather"] = counted
    return dask_scheduler.tauten_asked


def _unreachable(place, timeout):
    raise TimeoutError(f"{place} did not answer in {timeout} s")


def test_work_asks_for_the_worker_that_holds_its_block(client, y, monkeypatch):
    """A wish: another worker does it where that one is gone."""
    data, made = loaded_at(client, [0, 0, 1, 0], y), []

    def recorded(*asked, **options):
        made.extend(asked)
        return computed(*asked, **options)

    monkeypatch.setattr(blocks, "computed", recorded)
    data.each("y", len)
    data.sample(20)
    made.append(data.map_rows(lambda chunk: chunk.y))
    layers = {name: layer for task in made for name, layer in task.dask.layers.items()}
    holders = client.who_has(data._blocks)
    for name in ("each", "pick", "rows"):
        wishes = {
            int(key.rpartition("-")[2]): layer.annotations
            for key, layer in layers.items()
            if key.startswith(f"tauten-{name}-")
        }
        for i, loaded in enumerate(data._blocks):
            assert wishes[i] == {"workers": [*holders[loaded.key]], "allow_other_workers": True}


def test_samples_stay_where_they_are(client, y):
    """dask would rather move a small block than wait for a busy worker."""
    data = loaded_at(client, [0, 0, 1, 1], y)
    before = client.who_has(data._blocks)
    for _ in range(3):
        assert data.map_sum(_slow_count) == [1000]
    assert client.who_has(data._blocks) == before


def test_where_work_is_that_is_not_done_yet(client):
    (done,) = persisted([dask.delayed(_count)(_Samples)])
    wait(done)
    (late,) = persisted([dask.delayed(_told)()])
    assert places([late, done])[0] is None
    assert places([late, done])[1] in client.scheduler_info()["workers"]
    Event("go").set()


class _Samples:
    y = (1.0,)


def _count(chunk):
    return [len(chunk.y)]


def _told():
    Event("go").wait(60)


def _slow_count(chunk):
    time.sleep(0.2)
    return [len(chunk.y)]


@pytest.mark.parametrize("runs", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_a_worker_is_killed(runs, client, X, y, expected):
    fit(X, y)
    rng, begin = random.Random(0), time.perf_counter()
    fit(X, y)
    long = time.perf_counter() - begin
    for _ in range(runs):
        killer = threading.Timer(rng.uniform(0, long), _kill, [rng.choice(_pids(client))])
        killer.start()
        found = fit(X, y)
        killer.join()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_a_worker_is_added(client, X, y, expected):
    adder = threading.Timer(0.3, client.cluster.scale, [3])
    adder.start()
    found = fit(X, y)
    adder.join()
    client.wait_for_workers(3, timeout=60)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    client.cluster.scale(2)


def test_nothing_is_left_on_the_workers(client, X, y):
    fit(X, y)
    deadline = time.monotonic() + 20
    while client.run_on_scheduler(_held) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert client.run_on_scheduler(_held) == []


def _pids(client):
    """The two workers' processes, once dask watches over both.

    Now and then it gives up one that was killed, and is asked for another.
    """
    while True:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            watched = [nanny for nanny in client.cluster.workers.values() if _runs(nanny)]
            if len(watched) == len(client.nthreads()) == 2:
                return [nanny.pid for nanny in watched]
            time.sleep(0.05)
        client.cluster.scale(1)
        client.cluster.scale(2)


def _runs(nanny):
    process = nanny.process
    return nanny.status == Status.running and process and process.status == Status.running


def _kill(pid):
    with suppress(ProcessLookupError):  # dask may have replaced it meanwhile
        os.kill(pid, signal.SIGKILL)


def _held(dask_scheduler):
    return [key for key in dask_scheduler.tasks if str(key).startswith("tauten")]
