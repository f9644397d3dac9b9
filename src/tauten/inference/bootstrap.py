"""Standard errors and quantiles from refits with random weights."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .._array import to_numpy
from .._progress import Count, ignore
from ..exceptions import IntervalsWarning
from ..problem import Problem
from ..solver import Result
from ..solver.choice import solver_for
from ..solver.loop import run_together
from ..tucker import Affine, Tucker
from .contrasts import contrasts
from .jacobians import entries_of, entry_chunks, linear_at_origin

TOGETHER = 16  # bootstrap replicates that share their passes over the data


def bootstrap(
    problem: Problem,
    theta: Tucker,
    *,
    n_boot: int = 200,
    solver: Any = "auto",
    rng: np.random.Generator | int | None = None,
    report: Count = ignore,
) -> list[Tucker]:
    """Refit with independent exponential weights of mean one on the samples, starting at the fit.

    Weights of mean and variance one imitate new samples, as resampling does, but no sample is ever
    lost: a design that is barely large enough stays so.

    Parameters
    ----------
    problem, theta, n_boot, solver, rng, report
        As for :func:`intervals`.

    Returns
    -------
    list of Tucker
        One point per replicate: A is never stored in full.
    """
    rng, data = np.random.default_rng(rng), problem.data
    solver = solver_for(solver, problem, theta)
    given = np.ones(data.n) if data.weight is None else to_numpy(data.weight)

    def replicate() -> Problem:
        weight = data.like(given * rng.exponential(size=data.n))
        return replace(problem, data=data.reweight(weight))

    results: list[Result] = []
    while len(results) < n_boot:
        report(len(results), n_boot)
        batch = [replicate() for _ in range(min(TOGETHER, n_boot - len(results)))]
        results += run_together(solver, batch, [theta] * len(batch))
    report(n_boot, n_boot)
    failed = [result for result in results if not result.converged]
    if failed:
        warnings.warn(
            f"{len(failed)} of {n_boot} replicates did not converge, the last one: "
            f"{failed[-1].reason}",
            IntervalsWarning,
            stacklevel=2,
        )
    return [result.theta for result in results]


def bootstrap_errors(
    problem: Problem, points: list[Tucker], tail: float
) -> tuple[list[np.ndarray], list[Any]]:
    """Standard deviations and quantiles, some entries of A at a time."""
    if problem.loss.one_hot:
        points = [contrasts(p) for p in points]

    def summary(draws: np.ndarray) -> np.ndarray:
        return np.stack([draws.std(axis=0, ddof=1), *np.quantile(draws, (tail, 1 - tail), axis=0)])

    first = points[0]
    chunks = entry_chunks(first, len(points) + math.prod(first.rank))
    parts = [summary(np.stack([entries_of(p, chunk) for p in points])) for chunk in chunks]
    found = [np.concatenate(parts, axis=1).reshape(3, *first.shape)]
    if isinstance(first, Affine):
        center = problem.design.center
        draws = [linear_at_origin(p, center) for p in points if isinstance(p, Affine)]
        found.append(summary(np.stack(draws)))
    return [f[0] for f in found], [f[1:] for f in found]
