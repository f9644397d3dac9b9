"""What the intervals of coefficients and of factors share."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import stats

from .._array import to_numpy
from ..data import Chunk
from ..problem import Problem
from ..tucker import Tucker


@dataclass(frozen=True, eq=False)
class Intervals:
    """Confidence intervals of the coefficient tensor, entry by entry.

    Attributes
    ----------
    estimate, stderr, lower, upper : array
        Of the shape of ``coef_``. By the sandwich, a standard error is infinite where the data do
        not tell the coefficient; the bootstrap leaves such a coefficient where it is.
    level : float
        Confidence of each interval.
    method : str
    intercept, covariate_coef : Intervals, optional
        The same for ``intercept_`` and ``covariate_coef_``, where the model has them.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    >>> found = model.confidence_intervals(data.X, data.y, level=0.9)
    >>> found.stderr.shape, found.intercept.stderr.shape
    ((10, 10, 10), ())
    """

    estimate: np.ndarray
    stderr: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    method: str
    intercept: Intervals | None = None
    covariate_coef: Intervals | None = None


def leverage(problem: Problem, theta: Tucker) -> tuple[int, float]:
    """Return the number of samples, and the share ``K / N`` of their noise that the fit swallows.

    K counts the free parameters, ``Σ r_k (p_k - r_k) + Π r_k`` and the vector coefficients; N the
    observed response entries. Samples of weight zero do not count. ``n (1 - K / N)`` are the
    degrees of freedom left: n - K for scalar responses, and n - p for unrestricted regressions on
    p covariates, however many responses each sample has.
    """
    free = sum(r * (p - r) for p, r in zip(theta.shape, theta.rank, strict=True))
    free += theta.sizes[0] + sum(theta.sizes[1 + theta.order :])

    def counts(chunk: Chunk) -> list[int]:
        y = to_numpy(chunk.y)
        used = np.ones(len(y), bool) if chunk.weight is None else to_numpy(chunk.weight) > 0
        return [int(used.sum()), int(np.isfinite(y[used]).sum())]

    n, entries = problem.data.map_sum(counts)
    if entries <= free or n < 2:
        raise ValueError(
            f"standard errors need more observations than free parameters, and two samples or "
            f"more; got {entries} response entries in {n} sample(s), and {free} parameters. Use a "
            f"smaller rank or more samples"
        )
    return n, free / entries


def quantile(problem: Problem, theta: Tucker, tail: float) -> float:
    """Quantile of Student's t with this upper tail, by the degrees of freedom left."""
    n, share = leverage(problem, theta)
    return float(stats.t.isf(tail, n * (1 - share)))


def check_level(level: Any) -> None:
    """Raise unless it is a confidence."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}")


def in_numpy(theta: Tucker) -> Tucker:
    """The point in double precision: slopes are inverted."""
    return theta.map(lambda block: to_numpy(block).astype(np.float64))
