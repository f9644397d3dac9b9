"""Whole fits of this library and of others, each in a process of its own.

python benchmarks/rivals.py METHOD SIZE [DTYPE [SEED]]   time, error and extra memory, as JSON

SIZE is n,p,r: n samples of p x p x p, ranks r. The seed is of the data, and of a start at random.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

QUICK = 1.0  # seconds: fits that take less are timed when warm
METHODS = {
    "tauten": "TensorRegressor(rank=r), everything chosen from the data",
    "squares": "TensorRegressor(rank=r, robust='none', fit_intercept=False)",
    "tensorly": "TensorLy's TuckerRegressor, its defaults",
    "unpenalised": "TensorLy's without its ridge (reg_W=0)",
    "descent": "plain numpy gradient descent (VGD), 300 steps, from tauten's start",
    "torch": "per-sample gradients by torch.func.vmap, 30 truncated steps, from tauten's start",
    "ridge": "scikit-learn's Ridge on vec(X)",
    "huber": "scikit-learn's HuberRegressor on vec(X)",
}


def regression(n, p, r, dtype="float64", seed=1):
    """Normal samples, or counts, filled in part by part: nothing else was ever this large."""
    from tauten import Tucker

    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    factors = [np.linalg.qr(rng.normal(size=(p, r)))[0] for _ in range(3)]
    truth = Tucker(rng.normal(size=(r, r, r)), factors).full()
    X, y = np.empty((n, p, p, p), dtype), np.empty(n)
    for rows in np.array_split(np.arange(n), max(1, n // 100)):
        some = rng.normal(size=(len(rows), p, p, p))
        X[rows] = 100 * some if dtype.kind == "i" else some
        y[rows] = X[rows].reshape(len(rows), -1) @ truth.ravel() + rng.normal(size=len(rows))
    return X, y, truth


def fit_tauten(X, y, r):
    import tauten as tt

    return tt.TensorRegressor(rank=(r,) * 3).fit(X, y).coef_


def fit_squares(X, y, r):
    import tauten as tt

    model = tt.TensorRegressor(rank=(r,) * 3, robust="none", fit_intercept=False)
    return model.fit(X, y).coef_


def fit_pca(X, y, r):
    import tauten as tt

    return tt.TensorPCA(rank=(r,) * 3, replicates=True).fit(X).low_rank_


def fit_tensorly(X, y, r):
    from tensorly.regression import TuckerRegressor

    return TuckerRegressor([r] * 3, verbose=0).fit(X, y).weight_tensor_


def fit_unpenalised(X, y, r):
    from tensorly.regression import TuckerRegressor

    return TuckerRegressor([r] * 3, reg_W=0, verbose=0).fit(X, y).weight_tensor_


def begin(X, y, r):
    from tauten.data import Rows
    from tauten.designs import Covariate
    from tauten.init import spectral
    from tauten.losses import Squared
    from tauten.problem import Problem

    return spectral(Problem(Rows(X, y), Squared(), Covariate()), (r,) * 3)


def fit_descent(X, y, r):
    theta = begin(X, y, r)
    core, (u, v, w) = theta.core, theta.factors
    for _ in range(300):
        residual = np.einsum("nijk,ia,jb,kc,abc->n", X, u, v, w, core, optimize=True) - y
        full = np.tensordot(residual, X, axes=1) / len(y)
        steps = (
            np.einsum("ijk,ia,jb,kc->abc", full, u, v, w, optimize=True),
            np.einsum("ijk,jb,kc,abc->ia", full, v, w, core, optimize=True),
            np.einsum("ijk,ia,kc,abc->jb", full, u, w, core, optimize=True),
            np.einsum("ijk,ia,jb,abc->kc", full, u, v, core, optimize=True),
        )
        core, u, v, w = (a - 0.05 * g for a, g in zip((core, u, v, w), steps, strict=True))
    return np.einsum("abc,ia,jb,kc->ijk", core, u, v, w, optimize=True)


def fit_torch(X, y, r):
    import torch

    theta = begin(X, y, r)
    blocks = tuple(torch.tensor(np.ascontiguousarray(block)) for block in theta.blocks)
    samples, responses = torch.from_numpy(X), torch.from_numpy(y)

    def loss(blocks, x, y):
        core, u, v, w = blocks
        return (torch.einsum("ijk,ia,jb,kc,abc->", x, u, v, w, core) - y) ** 2 / 2

    gradient = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    for _ in range(30):
        found = gradient(blocks, samples, responses)
        blocks = tuple(
            b - 0.05 * torch.clamp(g, -50.0, 50.0).mean(0)
            for b, g in zip(blocks, found, strict=True)
        )
    core, u, v, w = blocks
    return torch.einsum("abc,ia,jb,kc->ijk", core, u, v, w).numpy()


def fit_ridge(X, y, r):
    from sklearn.linear_model import Ridge

    return Ridge().fit(X.reshape(len(y), -1), y).coef_.reshape(X.shape[1:])


def fit_huber(X, y, r):
    from sklearn.linear_model import HuberRegressor

    return HuberRegressor().fit(X.reshape(len(y), -1), y).coef_.reshape(X.shape[1:])


def peak_memory():
    """Most memory of this process so far, in bytes; forgotten when asked, where the system can."""
    status, forget = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not status.exists():
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = 1024 * int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1])
    forget.write_text("5")
    return peak


def measure(method, size, dtype="float64", seed="1"):
    """Time, error and extra memory (in units of X) of one fit; of a quick one, time when warm."""
    n, p, r = map(int, size.split(","))
    X, y, truth = regression(n, p, r, dtype, int(seed))
    fit = globals()[f"fit_{method}"]
    fit(X[:50], y[:50], r)  # imports and caches
    peak_memory()
    before = peak_memory()  # since then, so what there is now
    coefficients, seconds = timed(fit, seed, X, y, r)
    memory = (peak_memory() - before) / X.nbytes
    if seconds < QUICK:  # its first time is also that of new pages and threads
        seconds = float(np.median([timed(fit, seed, X, y, r)[1] for _ in range(5)]))
    error = float(np.sum((coefficients - truth) ** 2))
    return {"seconds": seconds, "error": error, "memory": memory}


def timed(fit, seed, *data):
    np.random.seed(int(seed))  # noqa: NPY002 - TensorLy's default is numpy's old generator
    begin = time.perf_counter()
    found = fit(*data)
    return found, time.perf_counter() - begin


def apart(*arguments):
    """The same in a process of its own: no one inherits memory or caches."""
    command = [sys.executable, __file__, *map(str, arguments)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure(*sys.argv[1:])))
