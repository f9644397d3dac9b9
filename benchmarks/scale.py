"""Bigger than memory, and on worker processes: what it costs.

    python benchmarks/scale.py disk --size 8e9 --memory 1GB
    python benchmarks/scale.py dask --n 20000 --side 20
    python benchmarks/scale.py dask --n 160000 --side 10
    python benchmarks/scale.py dask --n 20000 --side 20 --rank 8
    python benchmarks/scale.py dask --n 20000 --side 30 --responses 10
    python benchmarks/scale.py dask --n 60000 --side 30 --responses 10 --rank 5
    python benchmarks/scale.py dask --n 120000 --side 30 --responses 10 --rank 5 --blocks 16
    python benchmarks/scale.py traffic
    python benchmarks/scale.py scheduler

`disk` fits X of `size` bytes in a process whose address space is too small to hold it; its time is
compared with reading the file as often. `dask` compares two worker processes with one, and both
with a fit in memory; and, as the limit of the machine, Newton passes of one block in two processes
at once, which know nothing of each other, with those in one. `traffic` weighs what a pass moves.
`scheduler` times passes of 1,000 empty tasks.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import h5py
import numpy as np

import tauten as tt
from tauten.solver.choice import choose

SHAPE, CHUNK = (20, 20, 20), 128
RANK, LARGE_RANK = 3, 8  # of a fit; the latter of a point of a thousand parameters
TURNS = 3
LIMIT, ROBUST = 5.0, tt.robust.Truncate()  # seconds of passes, and what they bend


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


def seconds(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def touch() -> None:
    """Write a gigabyte of new memory, and free it.

    A virtual machine may give free memory back to its host; whoever needs it next waits for it.
    """
    np.empty(2**27).fill(1.0)


def cluster(n_workers: int, threads: int = 1):
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address="127.0.0.1:0",
    )


def block(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Some samples: the same here and on a worker."""
    return np.random.default_rng(seed).standard_normal(shape)


def on_workers(shape: tuple[int, ...], blocks: int):
    """X of several blocks of a shape, made on the workers and kept there."""
    import dask
    import dask.array as da
    from distributed import wait

    parts = [dask.delayed(block)(seed, shape) for seed in range(blocks)]
    X = da.concatenate([da.from_delayed(part, shape, dtype=float) for part in parts]).persist()
    wait(X)
    return X


def alone(shape: tuple[int, ...], of_y: tuple[int, ...], rank: int) -> float:
    """Middle of the seconds of Newton passes over one block, for some seconds."""
    X = block(0, shape)
    theta = tt.datasets.truth((*shape[1:], *of_y), rank, reading="random", rng=0)
    y = np.random.default_rng(1).standard_t(2, size=(len(X), *of_y))
    rows = tt.data.Rows(X, y, threads=1)
    problem = tt.problem.Problem(rows, tt.losses.Squared(), tt.designs.Covariate(), ROBUST)
    problem, times, end = problem.calibrate(theta), [], time.perf_counter() + LIMIT
    with tt.data.threads.BLAS.single():
        while time.perf_counter() < end or len(times) < TURNS:
            times.append(seconds(lambda: problem.gradient(theta, curvature=True)))
    return float(np.median(times))


def limit(client, *case) -> float:
    """How many times as fast as one process two are that share nothing but the machine."""
    workers = list(client.scheduler_info()["workers"])

    def slowest(some: list[str]) -> float:
        work = [client.submit(alone, *case, workers=worker, pure=False) for worker in some]
        return max(client.gather(work))

    return 2 * slowest(workers[:1]) / slowest(workers)


def on_dask(n: int, side: int, rank: int, responses: int, blocks: int) -> None:
    """The default fit in memory, on one worker process and on two, in turn; least times.

    Memory is touched before each, so that all of them find some that is there.
    """
    from distributed import Client

    of_x, of_y = ((side,) * 2, (responses,)) if responses else ((side,) * 3, ())
    shape = (n // blocks, *of_x)
    X = np.concatenate([block(seed, shape) for seed in range(blocks)])
    target = tt.datasets.truth((*of_x, *of_y), rank, reading="random", rng=0).full()
    noise = np.random.default_rng(0).standard_t(2, size=(len(X), *of_y))
    y = np.tensordot(X, target, axes=len(of_x)) + noise
    found, times, touches = [], {"memory": [], 1: [], 2: []}, []

    def fit(samples) -> None:
        model = tt.TensorRegressor(rank=rank).fit(samples, y)
        found.append((model.coef_, model.result_.n_passes))

    def timed(samples) -> float:
        touches.append(seconds(touch))
        return seconds(lambda: fit(samples))

    with ExitStack() as stack:
        clients = [stack.enter_context(Client(stack.enter_context(cluster(w)))) for w in (1, 2)]
        for turn in range(TURNS):
            times["memory"].append(timed(X))
            for workers, client in enumerate(clients, start=1):
                with client.as_current():
                    samples = on_workers(shape, blocks)
                    times[workers].append(timed(samples))
                    del samples
            print(f"turn {turn + 1}:", {k: round(t[-1], 2) for k, t in times.items()}, flush=True)
        most = limit(clients[1], shape, of_y, rank)
    coefs, passes = zip(*found, strict=True)
    apart = max(float(np.abs(coef - coefs[0]).max()) for coef in coefs)
    memory, one, two = (min(t) for t in times.values())
    sizes = f"samples of {of_x}, responses of {of_y}"
    print(f"n = {n}, {sizes}, passes {min(passes):.2f} to {max(passes):.2f}")
    print(f"largest difference of A {apart:.1e}")
    print(f"in memory, {tt.data.available_threads()} thread(s): {memory:.2f} s")
    print(f"2 workers against 1: {two:.2f} s and {one:.2f} s, {one / two:.2f} times as fast")
    print(f"2 processes that share nothing, Newton passes: {most:.2f} times as fast as one")
    print(f"dask (2 workers) against memory: {two / memory:.2f} times the time")
    print(f"a new gigabyte of memory takes {min(touches):.2f} to {max(touches):.2f} s to write")


def over_the_wire() -> int:
    """Bytes that any process of this machine has sent to another through a socket so far."""
    import psutil

    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def traffic(blocks: int) -> None:
    """Bytes that a pass moves: scheduler's messages, points and sums, for several n."""
    from distributed import Client

    theta = tt.datasets.truth(SHAPE, LARGE_RANK, reading="random", rng=0)
    print(f"d_eff = {theta.d_eff}, {blocks} blocks on 2 workers")
    with cluster(2) as place, Client(place):
        for rows in (16, 64, 256):
            X, y = on_workers((rows, *SHAPE), blocks), np.zeros(rows * blocks)
            data = tt.data.Blocks(X, y, memory=2**20)
            problem = tt.problem.Problem(data, tt.losses.Squared(), tt.designs.Covariate())
            usual = choose(problem, theta).name
            for solver in (tt.solver.Anderson, tt.solver.Newton):
                curved, word = solver.curvature, ", the default" * (solver.name == usual)
                moved = least_moved(lambda c=curved, p=problem: p.gradient(theta, curvature=c))
                kilobytes = f"{moved / 1e3:8.0f} kB a pass"
                print(f"n = {len(y):5d}: {kilobytes}, {solver.name}{word}", flush=True)


def least_moved(work, repeats: int = 5) -> int:
    """Least bytes moved of several: heartbeats and others' traffic are in some of them."""
    work()
    moved = []
    for _ in range(repeats):
        before = over_the_wire()
        work()
        moved.append(over_the_wire() - before)
    return min(moved)


def scheduler(tasks: int) -> None:
    """What a pass costs where there is nothing to compute, and what of it the scheduler takes.

    A pass is a task for each thread: two workers with many threads stand for many workers.
    """
    import dask.array as da
    from distributed import Client

    with cluster(2, threads=-(-tasks // 2)) as place, Client(place) as client:
        X = da.zeros((tasks, 2, 2), chunks=(1, 2, 2))
        blocks = tt.data.Blocks(X, np.zeros(tasks), memory=2**20)
        blocks.map_sum(_nothing)
        before, there = time.process_time(), client.run(time.process_time)
        took = min(seconds(lambda: blocks.map_sum(_nothing)) for _ in range(TURNS))
        here = (time.process_time() - before) / TURNS
        spent = client.run(time.process_time)
    busy = sum(spent[worker] - there[worker] for worker in spent) / TURNS
    print(f"a pass of {tasks} empty tasks: {took:.2f} s, {1e3 * took / tasks:.2f} ms a task")
    print(f"of a core: scheduler and driver {here:.2f} s, the two workers {busy:.2f} s")


def _nothing(chunk):
    return [np.zeros(1000)]  # a gradient of a thousand parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["disk", "dask", "traffic", "scheduler", "fit-file"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--size", type=float, default=8e9)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--space", type=float, default=3e9)
    parser.add_argument("--folder")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--side", type=int, default=20, help="samples of side³ numbers")
    parser.add_argument("--responses", type=int, default=0, help="so many, of side² numbers")
    parser.add_argument("--rank", type=int, default=RANK)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=1000)
    options = parser.parse_args()
    if options.what == "disk":
        disk(options.size, options.memory, options.space, options.folder)
    elif options.what == "fit-file":
        fit_file(Path(options.rest[0]), options.rest[1], int(options.rest[2]))
    elif options.what == "dask":
        on_dask(options.n, options.side, options.rank, options.responses, options.blocks)
    elif options.what == "traffic":
        traffic(options.blocks)
    else:
        scheduler(options.tasks)


if __name__ == "__main__":
    main()
