"""Confidence intervals of A and of the vector coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._checks import check_number
from .._progress import Count, ignore
from ..problem import Problem
from ..tucker import Affine, Tucker
from .base import Intervals, check_level, in_numpy, quantile
from .bootstrap import bootstrap, bootstrap_errors
from .contrasts import contrasts
from .jacobians import linear_at_origin
from .sandwich import sandwich_errors

METHODS = ("sandwich", "bootstrap", "percentile")


def intervals(
    problem: Problem,
    theta: Tucker,
    *,
    level: float = 0.95,
    method: str = "sandwich",
    n_boot: int = 200,
    solver: Any = "auto",
    rng: np.random.Generator | int | None = None,
    report: Count = ignore,
) -> Intervals:
    """Return confidence intervals at a fitted point.

    Parameters
    ----------
    problem : Problem
        With the data and the calibrated robustifier of the fit.
    theta : Tucker
        The fit.
    level : float
        Confidence of each interval, in (0, 1).
    method : {"sandwich", "bootstrap", "percentile"}
        ``estimate ± q stderr``, q a quantile of Student's t and stderr by :func:`covariance` or
        by :func:`bootstrap`; or the quantiles of the bootstrap.
    n_boot : int
        Replicates.
    solver : str or Solver
        For the replicates.
    rng : Generator, int or None
        For the weights of the replicates.
    report : callable
        Told how many replicates are done, and of how many.

    Notes
    -----
    With several classes only differences between classes are identified. The coefficients are then
    centred over the classes: the estimates have mean zero along the last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from tauten.data import Rows
    >>> from tauten.designs import Covariate
    >>> from tauten.losses import Squared
    >>> y = np.array([1.0, 2.0, 3.0, 6.0])  # a mean: its standard error is s / √n
    >>> problem = Problem(Rows(np.ones((4, 1)), y), Squared(), Covariate())
    >>> found = intervals(problem, Tucker(np.array([3.0]), [np.ones((1, 1))]))
    >>> float(found.stderr[0]), float(np.std(y, ddof=1) / 2)
    (1.080, 1.080)
    """
    check_level(level)
    _check_method(method, n_boot)
    theta, tail = in_numpy(theta), (1 - level) / 2
    q = quantile(problem, theta, tail)
    estimates = _targets(problem, theta)
    if method == "sandwich":
        errors = sandwich_errors(problem, theta)
    else:
        points = bootstrap(problem, theta, n_boot=n_boot, solver=solver, rng=rng, report=report)
        errors, bounds = bootstrap_errors(problem, points, tail)
    if method != "percentile":
        bounds = [(e - q * s, e + q * s) for e, s in zip(estimates, errors, strict=True)]
    parts = [
        Intervals(e, s, low, high, level, method)
        for e, s, (low, high) in zip(estimates, errors, bounds, strict=True)
    ]
    return _assemble(parts, intercept=problem.design.center is not None)


def _targets(problem: Problem, theta: Tucker) -> list[np.ndarray]:
    """What intervals are for: A and, if there are any, the vector coefficients at X = 0."""
    point = contrasts(theta) if problem.loss.one_hot else theta
    if not isinstance(point, Affine):
        return [point.full()]
    return [point.full(), linear_at_origin(point, problem.design.center)]


def _assemble(parts: list[Intervals], *, intercept: bool) -> Intervals:
    """Hang the vector coefficients' intervals on those of A."""
    coef, linear = parts[0], parts[1] if len(parts) > 1 else None
    if linear is None:
        return coef
    others = _rows(linear, slice(int(intercept), None))
    return replace(
        coef,
        intercept=_rows(linear, 0) if intercept else None,
        covariate_coef=others if len(others.estimate) else None,
    )


def _rows(found: Intervals, rows: slice | int) -> Intervals:
    arrays = {name: getattr(found, name)[rows] for name in ("estimate", "stderr", "lower", "upper")}
    return replace(found, **arrays)


def _check_method(method: Any, n_boot: Any) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    check_number("n_boot", n_boot, integer=True)
    if n_boot < 2:
        raise ValueError(f"n_boot must be at least 2; got {n_boot}")
