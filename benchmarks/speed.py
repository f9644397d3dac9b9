"""How fast a pass and a fit are, as ratios against a limit or a rival measured in the same run.

python benchmarks/speed.py passes     one pass against one streaming read of X, on 1 and 2 threads
python benchmarks/speed.py scaling    cost in n, p, r and threads
python benchmarks/speed.py fits       whole fits, errors and memory, against other libraries
python benchmarks/speed.py memory     extra memory of a fit
python benchmarks/speed.py sharing    cross-validation, bootstrap and ranks against one fit
python benchmarks/speed.py large      fits of many parameters, by solver
python benchmarks/speed.py steps      how many steps a fit takes, by loss
python benchmarks/speed.py prior      what Jeffreys' prior adds to fits of two classes

``--write`` keeps the results in benchmarks/results/ and the table in docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import threadpoolctl
from rivals import METHODS, apart, regression

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
CASES = {  # name: samples, shape of each, ranks
    "n=8, 10³, r=1 (calls alone)": (8, (10, 10, 10), 1),
    "n=500, 10³, r=1 (in cache)": (500, (10, 10, 10), 1),
    "n=500, 10³, r=3 (in cache)": (500, (10, 10, 10), 3),
    "n=6400, 10³, r=1": (6400, (10, 10, 10), 1),
    "n=2000, 30³, r=3": (2000, (30, 30, 30), 3),
    "n=450, 150², r=5, logistic": (450, (150, 150), 5),
    "n=300, 12⁴, r=2": (300, (12, 12, 12, 12), 2),
    "n=2000, 30²→30, r=3": (2000, (30, 30, 30), 3),
    "n=2000, 30³, r=3, PCA": (2000, (30, 30, 30), 3),
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
    """One streaming read of X: its product with a vector, by halves.

    By ``dot``: while ``@`` makes fewer than 500 numbers, the other thread waits.
    """
    parts = np.array_split(X.reshape(len(X), -1), threads)
    ones = np.ones(parts[0].shape[1], X.dtype)
    if threads == 1:
        return lambda: np.dot(parts[0], ones)
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda part: np.dot(part, ones), parts))


def problem_of(name, dtype, threads):
    from tauten import Tucker
    from tauten.data import Rows
    from tauten.designs import Covariate, Direct
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
    if "PCA" in name:
        data, design = Rows(None, X, threads=threads), Direct()
    else:
        data, design = Rows(X, y, threads=threads), Covariate()
    return X, Problem(data, loss, design, Truncate(1.0).calibrate()), theta


def passes(seconds):
    rows = []
    for name in CASES:
        row = {"case": name}
        for threads in (1, 2):
            X, problem, theta = problem_of(name, np.float64, threads)
            with problem.data.at_work():  # as in a fit
                read, one = fastest(
                    [reader(X, threads), lambda p=problem, t=theta: p.gradient(t)], seconds
                )
            row |= {f"read {threads}": read, f"pass {threads}": one, f"ratio {threads}": one / read}
        X, problem, theta = problem_of(name, np.float32, 2)
        with problem.data.at_work():
            (single,) = fastest([lambda p=problem, t=theta: p.gradient(t)], seconds)
        row["float32"] = single / row["pass 2"]
        rows.append(row)
        print(f"{name:30} {row['ratio 1']:.2f} {row['ratio 2']:.2f} {row['pass 2']:.2f} ms")
    return rows


def scaling(seconds):
    from tauten import Tucker
    from tauten.data import Rows
    from tauten.data.threads import BLAS
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
    passes = [gradient(*case) for case in (base, *changes.values())]
    X = rng.normal(size=(2000, 20, 20, 20))
    with BLAS.single():  # as in a fit
        *times, read, shared = fastest([*passes, reader(X, 1), reader(X, 2)], 5 * seconds)
    rows = [
        {"change": name, "time": t / times[0]} for name, t in zip(changes, times[1:], strict=True)
    ]
    return [*rows, {"change": "twice the threads, reading alone", "time": shared / read}]


# Data sets, one for each seed: our time depends on them, TensorLy's on its random start as well.
# Others are run on the first three.
RUNS = {"tauten": 21, "squares": 21, "tensorly": 21}
TOO_SLOW = ("descent", "torch", "huber")  # with 27,000 coefficients: minutes to hours
SIZES = {"n=500, 10³, r=3": "500,10,3", "n=2000, 30³, r=3": "2000,30,3"}


def fits(seconds):
    """Fits of the same data sets, the methods taking turns."""
    rows = []
    for size, numbers in SIZES.items():
        methods = [name for name in METHODS if not (name in TOO_SLOW and "30³" in size)]
        if find_spec("torch") is None and "torch" in methods:
            print("torch is not installed: pip install 'tauten[torch]' for its rows")
            methods.remove("torch")
        runs = {method: [] for method in methods}
        for seed in range(max(RUNS.values())):
            for method in methods:
                if seed < RUNS.get(method, 3):
                    runs[method].append(apart(method, numbers, "float64", seed))
        for method in methods:
            found = beside(runs[method], runs["tauten"])
            rows.append({"size": size, "method": METHODS[method]} | found)
            print(rows[-1], flush=True)
    return rows


def beside(runs, own):
    """Medians of runs, and how they compare with ours of the same data."""
    found = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    ours = {name: np.array([run[name] for run in own[: len(runs)]]) for name in own[0]}
    seconds, error = found["seconds"], found["error"]
    return {
        "seconds": float(np.median(seconds)),
        "from": float(seconds.min()),
        "to": float(seconds.max()),
        "times slower": float(np.median(seconds / ours["seconds"])),
        "on average": float(seconds.mean() / ours["seconds"].mean()),
        "error": float(np.median(error)),
        "error / ours": float(np.exp(np.mean(np.log(error / ours["error"])))),
        "memory": float(np.median(found["memory"])),
    }


KINDS = {"float64": 1, "float32": 2, "int16": 4}  # numbers in the bytes of a double


def memory(seconds):
    """Extra memory of a fit of 400 MB, in units of X."""
    rows = []
    for dtype, many in KINDS.items():
        row = {"X": f"{dtype}, n={1850 * many}, 30³, 400 MB"}
        for method in ("tauten", "tensorly"):
            if method == "tauten" or dtype == "float64":  # what TensorLy computes in
                row[method] = apart(method, f"{1850 * many},30,3", dtype)["memory"]
        rows.append({"X": row["X"], "tauten": row["tauten"], "TensorLy": row.get("tensorly")})
        print(rows[-1])
    own = apart("pca", "1850,30,3")["memory"]
    rows.append({"X": "float64, n=1850, 30³, 400 MB, PCA", "tauten": own, "TensorLy": None})
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
                lambda X=X, y=y: tt.TensorRegressor("auto").fit(X, y),
            ],
            seconds,
        )
        passes = [fit.result_.n_passes, model("cv").result_.n_passes]
        ranked = tt.TensorRegressor("auto").fit(X, y)
        tried = len(ranked.rank_path_.ranks)
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
            {
                "size": size,
                "work": f"{tried} ranks by BIC",
                "fits": times[3] / times[0],
                "passes": ranked.result_.n_passes,
            },
        ]
    return rows


def large(seconds):
    """Fits of many parameters by solver, with white and with correlated covariates."""
    import tauten as tt

    rows = []
    for n, p, r, names in (
        (6000, 12, 6, ("newton", "anderson", "scaled")),
        (20000, 20, 8, ("newton", "anderson")),
    ):
        for covariates in ("white", "correlated"):
            X, y, truth = regression(n, p, r)
            if covariates == "correlated":
                y -= np.tensordot(X, truth, 3)
                correlate(X)
                y += np.tensordot(X, truth, 3)
            fits = {}

            def fit(name, X=X, y=y, r=r, fits=fits):
                with warnings.catch_warnings(action="ignore"):  # how it ended is in the table
                    fits[name] = tt.TensorRegressor(r, solver=name).fit(X, y)

            times = fastest([partial(fit, name) for name in names], seconds)
            newton = fits[names[0]].coef_
            rows += [
                {
                    "size": f"n={n}, {p}³, r={r}, d_eff={fits[name].tucker_.d_eff}",
                    "covariates": covariates,
                    "solver": name,
                    "time": took / times[0],
                    "passes": fits[name].result_.n_passes,
                    "difference of A": tt.metrics.relative_error(fits[name].coef_, newton),
                }
                for name, took in zip(names, times, strict=True)
            ]
    return rows


def correlate(X):
    """Make neighbours along each mode of the samples alike, by 0.7, in place."""
    for mode in range(1, X.ndim):
        rows = np.moveaxis(X, mode, 0)
        for i in range(1, len(rows)):
            rows[i] *= (1 - 0.7**2) ** 0.5
            rows[i] += 0.7 * rows[i - 1]


def steps(seconds):
    """Steps that fits of weak signals take, with the whole Hessian and without; a dozen seeds."""
    from tauten.data import Rows
    from tauten.datasets import simulate, truth
    from tauten.designs import Covariate
    from tauten.init import start
    from tauten.losses import Loss
    from tauten.problem import Problem
    from tauten.solver import Newton
    from tauten.solver.result import Progress

    class GaussNewton(Newton):
        def step(self, problem, theta, gradient, progress):
            return super().step(problem, theta, gradient, Progress(reach=0.0))

    rows = []
    for name in ("squared", "logistic", "poisson", "gamma"):
        runs = []
        for seed in range(12):
            weak = truth((8, 8, 8), 2, reading="random", norm=1.0, rng=seed)
            data = simulate(weak, 800, covariate_order=3, loss=name, rng=seed)
            problem = Problem(Rows(data.X, data.y), Loss.get(name), Covariate())
            theta = start("iht", problem, weak.rank, np.random.default_rng(0))
            runs.append([s(n_iter=200).run(problem, theta) for s in (GaussNewton, Newton)])
        taken = np.array([[run.n_iter for run in pair] for pair in runs])
        ended = [[r.theta for r in pair] for pair in runs if all(r.converged for r in pair)]
        gap = max(new.distance(old) / old.norm() for old, new in ended)
        row = {"loss": name}
        for column, method in enumerate(("Gauss-Newton", "Newton")):
            low, middle, high = np.percentile(taken[:, column], [0, 50, 100])
            row[method] = f"{middle:g} ({low:g} to {high:g})"
        rows.append(row | {"largest difference of A": gap})
    return rows


def prior(seconds):
    """Fits of two classes with few samples, with Jeffreys' prior and without; ridges chosen."""
    import tauten as tt

    rows = []
    for n, p, r in ((300, 40, 3), (600, 100, 5)):
        target = tt.datasets.truth((p, p), r, reading="random", norm=3.0, rng=0)
        data = tt.datasets.simulate(target, n, covariate_order=2, loss="logistic", rng=0)

        def fit(ridge, reduce_bias, data=data, r=r):
            options = {"ridge": ridge, "reduce_bias": reduce_bias, "random_state": 0}
            with warnings.catch_warnings(action="ignore"):  # a plain fit may have no end
                return tt.TensorClassifier(r, **options).fit(data.X, data.y)

        model = fit("auto", True)
        kinds = ("auto", True), ("auto", False), (model.ridge_, True)
        chosen, plain, given = fastest([partial(fit, *kind) for kind in kinds], seconds)
        rows.append(
            {
                "size": f"n={n}, {p}², r={r}, d_eff={model.tucker_.d_eff}",
                "with the prior / without": chosen / plain,
                "ridge chosen / given": chosen / given,
            }
        )
    return rows


def table(rows):
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [
            "" if v is None else f"{v:.3g}" if isinstance(v, float) else v for v in row.values()
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


STUDIES = {
    "passes": passes,
    "scaling": scaling,
    "fits": fits,
    "memory": memory,
    "sharing": sharing,
    "large": large,
    "steps": steps,
    "prior": prior,
}


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], help="by default all")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each comparison")
    parser.add_argument("--write", action="store_true", help="keep the results and the tables")
    parser.add_argument("--json", action="store_true", help="print the results as JSON alone")
    options = parser.parse_args()
    for name in options.studies or STUDIES:
        limit = 1 if name in {"passes", "scaling"} else None  # these bring their own threads
        with threadpoolctl.threadpool_limits(limit, user_api="blas"):
            rows = STUDIES[name](options.seconds)
        print(json.dumps(rows) if options.json else f"\n{table(rows)}\n")
        if options.write:
            keep(name, rows)


if __name__ == "__main__":
    main()
