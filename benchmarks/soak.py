"""A soak: random fits, saves, loads and resumed descents in one process, for a long time.

    python benchmarks/soak.py --minutes 60

Prints the memory in use over time and every error that the library did not mean to raise.
"""

import argparse
import collections
import gc
import os
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.monotonic()
    end, step = begin + 60 * options.minutes, 60 * options.minutes / 10
    counts, errors, shown, seed = collections.Counter(), 0, begin, options.seed
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", NotConvergedWarning)
    warnings.simplefilter("ignore", IntervalsWarning)
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            try:
                counts[turn(np.random.default_rng(seed), folder)] += 1
            except Exception:
                errors += 1
                print(f"seed {seed}:\n{traceback.format_exc()}", flush=True)
            seed += 1
            if time.monotonic() >= shown:
                gc.collect()
                minutes = (time.monotonic() - begin) / 60
                done = sum(counts.values())
                line = (
                    f"{minutes:6.1f} min   {done:7d} turns   {memory():7.1f} MB   {errors} errors"
                )
                print(line, flush=True)
                shown += step
    print(*(f"{count:7d}  {what}" for what, count in counts.most_common()), sep="\n")
    print(f"{errors} errors, {memory():.1f} MB")


if __name__ == "__main__":
    main()
