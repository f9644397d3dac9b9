"""A soak: random fits, saves, loads, kills and resumed fits, for a long time.

    python benchmarks/soak.py --minutes 60

Prints the memory in use over time, its slope over the second half, and every error that the library
did not mean to raise.
"""

import argparse
import collections
import gc
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

import tauten as tt
from tauten.exceptions import IntervalsWarning, NotConvergedWarning

ROBUST = ("auto", "none", "truncate", "huber", "normclip", "mom", "catoni", "cauchy", "shrink")
PAGE = os.sysconf("SC_PAGE_SIZE")
KILLS = 10  # one turn in so many is a fit in a child that is killed, and resumed here
REPORTS, SAMPLES = 10, 120  # lines printed, and measurements of the memory, over a soak


def memory():
    """Megabytes in use by this process, of those that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE / 1e6


def draw(rng):
    """A model and data for it; now and then something that it must refuse."""
    shape = tuple(rng.integers(1, 6, size=rng.integers(1, 4)))
    n = int(rng.integers(1, 200))
    X = rng.standard_t(rng.choice([1.5, 3, 30]), size=(n, *shape))
    robust = str(rng.choice(ROBUST))
    if rng.random() < 0.05:
        X.flat[rng.integers(X.size)] = rng.choice([np.nan, np.inf, 1e200])
    kind = rng.choice(["regression", "classes", "pca"])
    if kind == "pca":
        return tt.TensorPCA(1, robust=robust), (X,)
    signal = X.reshape(n, -1).sum(axis=1)
    if kind == "classes":
        return tt.TensorClassifier(1, robust=robust), (X, np.nan_to_num(signal) > 0)
    rank = "auto" if rng.random() < 0.2 else 1
    return tt.TensorRegressor(rank, robust=robust), (X, signal + rng.standard_t(1.5, size=n))


def resume(model, X, y):
    """Stop a descent in the middle and go on from there: the same as without the stop."""
    point, options = model.tucker_, {"tau": 5.0, "step": 1e-4}
    whole = tt.robust_gradient_descent(X, y, point, n_iter=6, **options)
    half = tt.robust_gradient_descent(X, y, point, n_iter=3, **options)
    rest = tt.robust_gradient_descent(X, y, half.theta, n_iter=3, **options)
    assert np.array_equal(whole.theta.full(), rest.theta.full()), "a resumed descent differs"


def turn(rng, folder):
    """One model's life. Returns what became of it."""
    model, data = draw(rng)
    try:
        model.fit(*data)
    except ValueError as error:
        return f"refused: {str(error).split(';')[0][:40]}"
    path = Path(folder) / "model.npz"
    tt.save(model, path)
    again = tt.load(path)
    use = again.transform if isinstance(model, tt.TensorPCA) else again.predict
    before = model.transform if isinstance(model, tt.TensorPCA) else model.predict
    assert np.array_equal(use(data[0]), before(data[0]), equal_nan=True), "a loaded model differs"
    assert np.isfinite(model.coef_).all(), "coefficients that are no numbers"
    if isinstance(model, tt.TensorRegressor):
        resume(model, *data)
    return "fitted"


def fit_and_save(model, data, path):
    """What a child does until it is killed."""
    while True:
        tt.save(model.fit(*data), path)


def kill_and_resume(rng, folder):
    """Kill a fit that keeps a checkpoint; what it left is whole, and leads to the same answer."""
    data = tt.datasets.make_model("I", 300, shape=(5, 4, 3), noise="t:2", rng=rng)
    robust, X, y = str(rng.choice(["auto", "truncate", "huber"])), data.X, data.y
    whole = tt.TensorRegressor(2, robust=robust).fit(X, y)
    checkpoint, path = Path(folder) / "checkpoint.npz", Path(folder) / "killed.npz"
    model = tt.TensorRegressor(2, robust=robust, checkpoint=checkpoint)
    child = multiprocessing.get_context("fork").Process(
        target=fit_and_save, args=(model, (X, y), path)
    )
    child.start()
    time.sleep(rng.uniform(0, 0.5))
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL, "a child ended by itself"
    found = "resumed" if checkpoint.exists() else "killed between fits"
    again = model.fit(X, y)
    gap = np.abs(again.coef_ - whole.coef_).max()
    assert gap <= 1e-12, f"a resumed fit differs by {gap}"
    if path.exists():
        saved = np.abs(tt.load(path).coef_ - whole.coef_).max()
        assert saved <= 1e-12, f"a killed process left a model that differs by {saved}"
    for left in Path(folder).iterdir():  # temporary files of the child, and its model
        left.unlink()
    return found


class Log:
    """What became of the turns, and how much memory there was in use."""

    def __init__(self, minutes):
        self.begin, self.seconds = time.monotonic(), 60 * minutes
        self.counts, self.errors, self.memory = collections.Counter(), 0, []

    def passed(self):
        """The share of the soak that is over."""
        return (time.monotonic() - self.begin) / self.seconds

    def error(self, seed):
        self.errors += 1
        print(f"seed {seed}:\n{traceback.format_exc()}", flush=True)

    def measure(self):
        """Measure the memory, if it is time to, and now and then print a line."""
        passed = self.passed()
        if passed * SAMPLES < len(self.memory):
            return
        gc.collect()
        self.memory.append((passed * self.seconds / 60, memory()))
        if len(self.memory) % (SAMPLES // REPORTS) == 1:
            minutes, used = self.memory[-1]
            done = sum(self.counts.values())
            print(
                f"{minutes:6.1f} min   {done:7d} turns   {used:7.1f} MB   {self.errors} errors",
                flush=True,
            )

    def summary(self):
        """Counts, errors, and the slope of the memory over the second half, with its error."""
        later = np.array(self.memory[len(self.memory) // 2 :])
        (slope, _), covariance = np.polyfit(*later.T, 1, cov=True)
        for what, count in self.counts.most_common():
            print(f"{count:7d}  {what}")
        print(
            f"{self.errors} errors, {self.memory[-1][1]:.1f} MB; in the second half memory grew by "
            f"{60 * slope:.2f} ± {60 * covariance[0, 0] ** 0.5:.2f} MB an hour"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", NotConvergedWarning)
    warnings.simplefilter("ignore", IntervalsWarning)
    log, seed = Log(options.minutes), options.seed
    with tempfile.TemporaryDirectory() as folder:
        while log.passed() < 1:
            act = kill_and_resume if seed % KILLS == KILLS - 1 else turn
            try:
                log.counts[act(np.random.default_rng(seed), folder)] += 1
            except Exception:
                log.error(seed)
            seed += 1
            log.measure()
    log.summary()


if __name__ == "__main__":
    main()
