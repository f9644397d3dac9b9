"""A scheduler that dies: errors in words, not fits that wait for ever."""

import subprocess
import sys
import threading
import time

import dask.array as da
import pytest
from distributed import Client

import tauten as tt
from ports import free_port


@pytest.fixture
def scheduler():
    """A scheduler in a process of its own; it has no workers, so that work waits."""
    port = free_port()
    words = ["dask", "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    process = subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL)
    try:
        with Client(f"tcp://127.0.0.1:{port}", timeout=60):
            yield process
            process.kill()
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 80, shape=(4, 3), rng=0)


def fails_to_fit(data, match):
    model = tt.TensorRegressor(rank=1)
    with pytest.raises(ConnectionError, match=match):
        model.fit(da.from_array(data.X, chunks=(40, 4, 3)), data.y)
    assert not hasattr(model, "coef_")


def kill_once_work_waits(scheduler, client):
    """Two blocks are loaded first; what is sent after them, a fit waits for."""
    deadline = time.monotonic() + 60
    while len(client.futures) <= 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    scheduler.kill()


def test_a_scheduler_that_dies_during_a_fit(scheduler, data):
    threading.Thread(target=kill_once_work_waits, args=[scheduler, Client.current()]).start()
    fails_to_fit(data, r"work sent to dask was lost: .*scheduler.* with checkpoint=path a fit goes")


def test_a_scheduler_that_is_dead(scheduler, data):
    client = Client.current()
    scheduler.kill()
    deadline = time.monotonic() + 60
    while client.status == "running" and time.monotonic() < deadline:
        time.sleep(0.01)
    fails_to_fit(data, "dask scheduler cannot be reached: the client .* connect to a running sched")
