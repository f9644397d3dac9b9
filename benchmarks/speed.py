"""How fast a pass and a fit are, as ratios against a limit or a rival measured in the same run.

python benchmarks/speed.py passes     one pass against one streaming read of X, on 1 and 2 threads
python benchmarks/speed.py scaling    cost in n, p, r and threads
python benchmarks/speed.py fits       whole fits, errors and memory, against other libraries
python benchmarks/speed.py sharing    cross-validation and the bootstrap against one fit

``--write`` keeps the results in benchmarks/results/ and the table in docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import threadpoolctl

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
CASES = {  # name: samples, shape of each, ranks
    "n=500, 10³, r=1 (in cache)": (500, (10, 10, 10), 1),
    "n=500, 10³, r=3 (in cache)": (500, (10, 10, 10), 3),
    "n=6400, 10³, r=1": (6400, (10, 10, 10), 1),
    "n=2000, 30³, r=3": (2000, (30, 30, 30), 3),
    "n=450, 150², r=5, logistic": (450, (150, 150), 5),
    "n=300, 12⁴, r=2": (300, (12, 12, 12, 12), 2),
    "n=2000, 30²→30, r=3": (2000, (30, 30, 30), 3),
}


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = re.search(r"model name\s*:\s*(.*)", info.read_text())[1]
    from tauten import kernels

    return f"{cpu}, Python {platform.python_version()}, numpy {np.__version__}, {kernels.in_use()}"


def fastest(functions, seconds=2.0):
    """Least time of each, in milliseconds; they take turns, so that noise meets all alike."""
    times = [np.inf] * len(functions)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - begin)
    return [1e3 * t for t in times]


def reader(X, threads):
    """One streaming read of X: its product with a vector, by halves."""
    parts = np.array_split(X.reshape(len(X), -1), threads)
    ones = np.ones(parts[0].shape[1], X.dtype)
    if threads == 1:
        return lambda: parts[0] @ ones
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda part: part @ ones, parts))


def problem_of(name, dtype, threads):
    from tauten import Tucker
    from tauten.data import Rows
    from tauten.designs import Covariate
    from tauten.losses import Loss
    from tauten.problem import Problem
    from tauten.robust import Truncate

    n, shape, r = CASES[name]
    rng = np.random.default_rng(0)
    order = 2 if "→" in name else len(shape)
    X = rng.normal(size=(n, *shape[:order])).astype(dtype)
    y = rng.integers(0, 2, size=(n, *shape[order:])).astype(dtype)
    factors = [rng.normal(size=(p, r)).astype(dtype) / p for p in shape]
    theta = Tucker(rng.normal(size=(r,) * len(shape)).astype(dtype), factors)
    loss = Loss.get("logistic" if "logistic" in name else "squared")
    data = Rows(X, y, threads=threads)
    return X, Problem(data, loss, Covariate(), Truncate(1.0).calibrate()), theta


def passes(seconds):
    rows = []
    for name in CASES:
        row = {"case": name}
        for threads in (1, 2):
            X, problem, theta = problem_of(name, np.float64, threads)
            read, one = fastest(
                [reader(X, threads), lambda p=problem, t=theta: p.gradient(t)], seconds
            )
            row |= {f"read {threads}": read, f"pass {threads}": one, f"ratio {threads}": one / read}
        X, problem, theta = problem_of(name, np.float32, 2)
        (single,) = fastest([lambda p=problem, t=theta: p.gradient(t)], seconds)
        row["float32"] = single / row["pass 2"]
        rows.append(row)
        print(f"{name:30} {row['ratio 1']:.2f} {row['ratio 2']:.2f} {row['pass 2']:.2f} ms")
    return rows


def scaling(seconds):
    from tauten import Tucker
    from tauten.data import Rows
    from tauten.designs import Covariate
    from tauten.losses import Squared
    from tauten.problem import Problem
    from tauten.robust import Truncate

    rng = np.random.default_rng(0)

    def gradient(n, p, r, threads):
        X, y = rng.normal(size=(n, p, p, p)), rng.normal(size=n)
        theta = Tucker(rng.normal(size=(r,) * 3), [rng.normal(size=(p, r)) / p for _ in range(3)])
        data = Rows(X, y, threads=threads)
        problem = Problem(data, Squared(), Covariate(), Truncate(1.0).calibrate())
        return lambda: problem.gradient(theta)

    base = (2000, 20, 2, 1)
    changes = {
        "twice the samples": (4000, 20, 2, 1),
        "twice the entries of a sample": (2000, 25, 2, 1),
        "twice the rank": (2000, 20, 4, 1),
        "twice the threads": (2000, 20, 2, 2),
    }
    times = fastest([gradient(*case) for case in (base, *changes.values())], 4 * seconds)
    return [
        {"change": name, "time": t / times[0]} for name, t in zip(changes, times[1:], strict=True)
    ]


METHODS = {
    "tauten": "TensorRegressor(rank=r), everything chosen from the data",
    "tensorly": "TensorLy's TuckerRegressor, its defaults",
    "descent": "plain numpy gradient descent (VGD), 300 steps, from tauten's start",
    "torch": "per-sample gradients by torch.func.vmap, 30 truncated steps, from tauten's start",
    "ridge": "scikit-learn's Ridge on vec(X)",
    "huber": "scikit-learn's HuberRegressor on vec(X)",
}
SIZES = {"n=500, 10³, r=3": (500, 10, 3), "n=2000, 30³, r=3": (2000, 30, 3)}


def regression(n, p, r):
    rng = np.random.default_rng(1)
    from tauten import Tucker

    factors = [np.linalg.qr(rng.normal(size=(p, r)))[0] for _ in range(3)]
    truth = Tucker(rng.normal(size=(r, r, r)), factors).full()
    X = rng.normal(size=(n, p, p, p))
    return X, X.reshape(n, -1) @ truth.ravel() + rng.normal(size=n), truth


def fit_tauten(X, y, r):
    import tauten as tt

    return tt.TensorRegressor(rank=(r,) * 3).fit(X, y).coef_


def fit_tensorly(X, y, r):
    from tensorly.regression import TuckerRegressor

    return TuckerRegressor([r] * 3, verbose=0).fit(X, y).weight_tensor_


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
    blocks = tuple(torch.tensor(block) for block in theta.blocks)
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


def one_fit(method, size):
    """Time, error and extra memory of one fit, in a process of its own; printed as JSON."""
    warnings.simplefilter("ignore")
    n, p, r = SIZES[size]
    X, y, truth = regression(n, p, r)
    fit = globals()[f"fit_{method}"]
    fit(X[:50], y[:50], r)  # imports and caches
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    coefficients = fit(X, y, r)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "seconds": seconds,
                "error": float(np.sum((coefficients - truth) ** 2)),
                "memory": (peak - before) * 1024 / X.nbytes,
            }
        )
    )


def fits(seconds):
    rows = []
    for size in SIZES:
        for method in METHODS:
            if method == "huber" and "30³" in size:
                continue  # 27,000 coefficients by a dense quasi-Newton method: hours
            command = [sys.executable, __file__, "one", method, size]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows.append({"size": size, "method": method} | json.loads(out.splitlines()[-1]))
            print(rows[-1])
        own = next(row for row in rows if row["size"] == size and row["method"] == "tauten")
        for row in rows:
            if row["size"] == size:
                row["times slower"] = row["seconds"] / own["seconds"]
    return rows


def sharing(seconds):
    import tauten as tt

    rows = []
    for size, (n, p, r) in {
        "n=500, 10³, r=3": (500, 10, 3),
        "n=2000, 20³, r=2": (2000, 20, 2),
    }.items():
        X, y, _ = regression(n, p, r)

        def model(tau, X=X, y=y, r=r):
            return tt.TensorRegressor((r,) * 3, robust=tt.robust.Truncate(tau)).fit(X, y)

        fit = model("auto")
        times = fastest(
            [
                lambda: model("auto"),
                lambda: model("cv"),
                partial(fit.confidence_intervals, X, y, method="bootstrap", n_boot=16),
            ],
            seconds,
        )
        passes = [fit.result_.n_passes, model("cv").result_.n_passes]
        rows += [
            {
                "size": size,
                "work": "cross-validation, 5 folds × 10 thresholds",
                "fits": times[1] / times[0],
                "passes": passes[1],
            },
            {
                "size": size,
                "work": "bootstrap, 16 replicates",
                "fits": times[2] / times[0],
                "passes": None,
            },
        ]
    return rows


def table(rows):
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


STUDIES = {"passes": passes, "scaling": scaling, "fits": fits, "sharing": sharing}


def keep(name, rows):
    """Results as JSON, and their table between its marks in the page."""
    (HERE / "results").mkdir(exist_ok=True)
    record = {"machine": machine(), "rows": rows}
    (HERE / "results" / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False))
    text = PAGE.read_text()
    mark = f"<!-- {name} -->"
    before, _, after = text.split(mark)
    PAGE.write_text(f"{before}{mark}\n\n{machine()}\n\n{table(rows)}\n\n{mark}{after}")


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one_fit(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], default=list(STUDIES))
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each comparison")
    parser.add_argument("--write", action="store_true", help="keep the results and the tables")
    parser.add_argument("--json", action="store_true", help="print the results as JSON alone")
    options = parser.parse_args()
    for name in options.studies:
        limit = None if name == "fits" else 1  # passes and reads bring their own threads
        with threadpoolctl.threadpool_limits(limit, user_api="blas"):
            rows = STUDIES[name](options.seconds)
        print(json.dumps(rows) if options.json else f"\n{table(rows)}\n")
        if options.write:
            keep(name, rows)
    return None


if __name__ == "__main__":
    main()
