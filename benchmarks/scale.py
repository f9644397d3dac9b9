"""Bigger than memory, and on worker processes: what it costs.

    python benchmarks/scale.py disk --size 8e9 --memory 1GB
    python benchmarks/scale.py dask
    python benchmarks/scale.py scheduler

`disk` fits X of `size` bytes in a process whose address space is too small to hold it; its time is
compared with reading the file as often. `dask` compares two worker processes with one and dask with
a fit in memory, and weighs what travels. `scheduler` times passes of 1,000 empty tasks.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

import tauten as tt

SHAPE, CHUNK = (20, 20, 20), 128


def write(path: Path, size: float) -> int:
    """Write X, a block at a time, and y; return the number of samples."""
    n = int(size / 8 / np.prod(SHAPE)) // CHUNK * CHUNK
    rng, y = np.random.default_rng(0), np.empty(n)
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n, *SHAPE), chunks=(CHUNK, *SHAPE), dtype=float)
        for low in range(0, n, CHUNK):
            block = rng.standard_normal((CHUNK, *SHAPE))
            X[low : low + CHUNK] = block
            y[low : low + CHUNK] = block[:, 0, 0, 0] + rng.standard_t(2, size=CHUNK)
        file["y"] = y
    return n


def read(path: Path) -> float:
    """Seconds that one read of X takes."""
    begin = time.perf_counter()
    with h5py.File(path) as file:
        X = file["X"]
        block = np.empty((16 * CHUNK, *SHAPE))
        for low in range(0, len(X), len(block)):
            high = min(low + len(block), len(X))
            X.read_direct(block, np.s_[low:high], np.s_[: high - low])
    return time.perf_counter() - begin


def fit_file(path: Path, memory: str, space: int) -> None:
    """Fit X in this process, which may have `space` bytes of addresses; print what it took."""
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with h5py.File(path) as file:
        begin = time.perf_counter()
        model = tt.TensorRegressor(rank=1, memory=memory).fit(file["X"], file["y"])
        seconds = time.perf_counter() - begin
    rss = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"seconds": seconds, "passes": model.result_.n_passes, "rss": rss}
    print(json.dumps(found | {"coef": float(model.coef_[0, 0, 0])}))


def disk(size: float, memory: str, space: float, folder: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "x.h5"
        n = write(path, size)
        print(f"X: {n} samples of {SHAPE}, {path.stat().st_size / 1e9:.2f} GB on disk")
        before = read(path)
        command = [sys.executable, __file__, "fit-file", str(path), memory, str(int(space))]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        once = min(before, read(path))
    print(f"address space {space / 1e9:.1f} GB, memory={memory}: A[0, 0, 0] = {found['coef']:.3f}")
    print(f"peak RSS {found['rss'] / 1e6:.0f} MB")
    print(f"{found['passes']:.2f} passes in {found['seconds']:.1f} s; one read {once:.2f} s")
    print(f"time over that of reading as often: {found['seconds'] / found['passes'] / once:.2f}")


def seconds(work, repeats: int = 3) -> float:
    """Least time of several."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def cluster(n_workers: int):
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
    )


def travelled(client) -> int:
    """Bytes that the workers have sent to each other and to the driver."""

    def sent(dask_worker):
        return sum(entry["total"] for entry in dask_worker.transfer_outgoing_log)

    return sum(client.run(sent).values())


def on_dask(n: int) -> None:
    import dask.array as da
    from distributed import Client

    X = np.random.default_rng(0).standard_normal((n, *SHAPE))
    y = X[:, 0, 0, 0] + np.random.default_rng(1).standard_t(2, size=n)

    def fit(samples):
        return tt.TensorRegressor(rank=3, init="spectral").fit(samples, y)

    memory = seconds(lambda: fit(X), 2)
    print(f"in memory, n={n}: {memory:.2f} s, {fit(X).result_.n_passes:.2f} passes")
    times = {}
    for workers in (1, 2):
        with cluster(workers) as place, Client(place) as client:
            rows = n // 8
            blocks = da.random.default_rng(0).standard_normal(X.shape, chunks=(rows, *SHAPE))
            blocks = blocks.persist()
            fit(blocks)
            before = travelled(client)
            times[workers] = seconds(lambda samples=blocks: fit(samples), 2)
            moved = (travelled(client) - before) / 2
            passes = fit(blocks).result_.n_passes
            print(f"{workers} worker(s): {times[workers]:.2f} s, {passes:.2f} passes")
            print(f"  {moved / passes / 1e3:.0f} kB a pass between workers")
    print(f"2 workers against 1: {times[1] / times[2]:.2f} times as fast")
    print(f"dask (2 workers) against memory: {times[2] / memory:.2f} times the time")


def scheduler(tasks: int) -> None:
    import dask.array as da
    from distributed import Client

    from tauten.data import Blocks

    with cluster(2) as place, Client(place):
        X = da.zeros((tasks, 2, 2), chunks=(1, 2, 2))
        blocks = Blocks(X, np.zeros(tasks), memory=2**20)
        blocks.map_sum(_nothing)
        took = seconds(lambda: blocks.map_sum(_nothing))
    print(f"a pass of {tasks} empty tasks: {took:.2f} s, {1e3 * took / tasks:.2f} ms a task")


def _nothing(chunk):
    return [np.zeros(1000)]  # a gradient of a thousand parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["disk", "dask", "scheduler", "fit-file"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--size", type=float, default=8e9)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--space", type=float, default=3e9)
    parser.add_argument("--folder")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=1000)
    options = parser.parse_args()
    if options.what == "disk":
        disk(options.size, options.memory, options.space, options.folder)
    elif options.what == "fit-file":
        fit_file(Path(options.rest[0]), options.rest[1], int(options.rest[2]))
    elif options.what == "dask":
        on_dask(options.n)
    else:
        scheduler(options.tasks)


if __name__ == "__main__":
    main()
