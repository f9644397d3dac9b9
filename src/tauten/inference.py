"""Uncertainty of a fit: standard errors and confidence intervals of every coefficient.

Two ways, for the entries of A, the intercept and the vector coefficients alike
(:func:`intervals`); the factors have theirs by the first (:func:`loadings`):

===============  ================================================================================
``sandwich``     from the slope and the scatter of the (bent) gradients at the fit: one pass
``bootstrap``    refits with random weights, from the fit: no formula, `n_boot` times the work
``percentile``   the same refits; their quantiles instead of their standard deviation
===============  ================================================================================

Thresholds stay as the fit chose them. Points, replicates and covariances are in factor form: the
work per entry of A is that of a few rows of the factors, however large A is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import block_diag

from ._array import namespace, to_numpy
from ._checks import check_number
from ._progress import Count, ignore
from .data import Chunk
from .designs import Covariate
from .exceptions import IntervalsWarning
from .problem import Problem
from .solver import Result
from .solver.choice import solver_for
from .solver.loop import run_together
from .tucker import Affine, Tucker

__all__ = ["Intervals", "intervals", "loadings"]

TOGETHER = 16  # bootstrap replicates that share their passes over the data
METHODS = ("sandwich", "bootstrap", "percentile")
CHUNK_SIZE = 2**18  # numbers per block of entries of A
SINGULAR = 1e-8  # relative to the largest: a slope below this is rounding
UNKNOWN = 1e-6  # share of an entry's gradient along steps the data say nothing about
STRAY = 0.5  # standard errors that a fit may lie from the zero of its gradient


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
    >>> from tauten.losses import Squared
    >>> y = np.array([1.0, 2.0, 3.0, 6.0])  # a mean: its standard error is s / √n
    >>> problem = Problem(Rows(np.ones((4, 1)), y), Squared(), Covariate())
    >>> found = intervals(problem, Tucker(np.array([3.0]), [np.ones((1, 1))]))
    >>> float(found.stderr[0]), float(np.std(y, ddof=1) / 2)
    (1.080, 1.080)
    """
    _check(level, method, n_boot)
    theta = theta.map(lambda block: to_numpy(block).astype(np.float64))
    tail, (n, share) = (1 - level) / 2, leverage(problem, theta)
    q = float(stats.t.isf(tail, n * (1 - share)))
    estimates = _targets(problem, theta)
    if method == "sandwich":
        errors = _sandwich_errors(problem, theta)
    else:
        points = bootstrap(problem, theta, n_boot=n_boot, solver=solver, rng=rng, report=report)
        errors, bounds = _bootstrap_errors(problem, points, tail)
    if method != "percentile":
        bounds = [(e - q * s, e + q * s) for e, s in zip(estimates, errors, strict=True)]
    parts = [
        Intervals(e, s, low, high, level, method)
        for e, s, (low, high) in zip(estimates, errors, bounds, strict=True)
    ]
    return _assemble(parts, intercept=problem.design.center is not None)


def loadings(problem: Problem, theta: Tucker, *, level: float = 0.95) -> list[Intervals]:
    """Return confidence intervals of the entries of every factor, by the sandwich.

    A factor is known up to a rotation only, so an interval needs a convention: the factors are
    orthonormal, the core all-orthogonal, and a refit is first rotated to the fit. What is left,
    ``U_kᵀ dU_k = 0``, is how far the column space may lie from the fitted one, seen along each
    column. That columns whose weights are close may mix is not in it, and where a factor is square
    (r_k = p_k) nothing is left.

    Parameters
    ----------
    problem, theta, level
        As for :func:`intervals`.

    Returns
    -------
    list of Intervals
        One per mode, of the shape of its factor. With several classes, the classes' factor is
        centred over them.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 500, noise="t:1.5", rng=0)
    >>> model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    >>> [found.estimate.shape for found in model.loading_intervals(data.X, data.y)]
    [(10, 1), (10, 1), (10, 1)]
    """
    _check(level, "sandwich", 2)
    theta = theta.map(lambda block: to_numpy(block).astype(np.float64))
    n, share = leverage(problem, theta)
    q = float(stats.t.isf((1 - level) / 2, n * (1 - share)))
    matrix, unknown = covariance(problem, theta)
    point = _contrasts(theta) if problem.loss.one_hot else theta
    found = []
    for k, factor in enumerate(point.canonical().factors):
        rows = _loading_jacobian(theta.factors[k], point.factors[k], factor)
        entries = theta.split(np.arange(len(matrix)))[1 + k].ravel()
        variances = np.einsum("ij,jk,ik->i", rows, matrix[np.ix_(entries, entries)], rows)
        lost = np.sum((rows @ unknown[entries]) ** 2, axis=1) > UNKNOWN * np.sum(rows**2, axis=1)
        errors = np.where(lost, np.inf, np.sqrt(np.maximum(variances, 0.0))).reshape(factor.shape)
        ends = factor - q * errors, factor + q * errors
        found.append(Intervals(factor, errors, *ends, level, "sandwich"))
    return found


def leverage(problem: Problem, theta: Tucker) -> tuple[int, float]:
    """Return the number of samples, and the share ``K / N`` of their noise that the fit swallows.

    K counts the free parameters, ``Σ r_k (p_k - r_k) + Π r_k`` and the vector coefficients; N the
    observed response entries. Samples of weight zero do not count. ``n (1 - K / N)`` are the
    degrees of freedom left: n - K for scalar responses, and n - p for unrestricted regressions on
    p covariates, however many responses each sample has.
    """
    free = sum(r * (p - r) for p, r in zip(theta.shape, theta.rank, strict=True))
    free += sum(math.prod(b.shape) for b in (theta.core, *theta.blocks[1 + theta.order :]))

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


def covariance(problem: Problem, theta: Tucker) -> tuple[np.ndarray, np.ndarray]:
    """Sandwich covariance of the flattened blocks, and the steps that the data say nothing about.

    ``Σ = c M⁺ (1/n² Σ_i g_i g_iᵀ) M⁺ᵀ``, for g_i the bent per-sample gradients and M the mean of
    their slopes, along steps that move A. It does not ask for the noise to be normal, nor for its
    scale to be the same in all samples.

    The fit follows the noise, so that residuals are too small, on average over the samples by the
    share ``K / N`` in variance (:func:`leverage`); ``c = 1 / (1 - K / N)`` undoes it. For a scalar
    response without robustness it is the HC1 of econometrics, ``n / (n - K)``.

    The slopes take a bend to act entry by entry, and A to be well estimated: the curvature of the
    set of low-rank tensors is left out. Norm clipping, which mixes entries, is approximated.

    Parameters
    ----------
    problem : Problem
    theta : Tucker

    Returns
    -------
    matrix : array (D, D)
    unknown : array (D, m)
        Orthonormal; steps that move A but change no gradient.
    """
    if problem.robust.n_blocks_ > 1:
        raise ValueError(
            f"method='sandwich' is for gradients that are means over the samples, and "
            f"{problem.robust.name!r} takes medians of blocks; use method='bootstrap'"
        )
    slope, moment, mean = (to_numpy(a) for a in problem.scatter(theta))
    basis = _horizontal_basis(theta)
    slope = basis.T @ slope @ basis
    inverse, null = _pseudo_inverse(slope)
    reduced, step = inverse @ (basis.T @ moment @ basis) @ inverse.T, inverse @ (basis.T @ mean)
    units = np.abs(np.diag(slope))
    if np.sum(units * step**2) > STRAY**2 * np.sum(units * np.diag(reduced)):
        warnings.warn(
            "the gradient is not zero at the fit: its standard errors mean little. Pass the data "
            "that the model was fitted to, or let the solver converge",
            IntervalsWarning,
            stacklevel=2,
        )
    _, share = leverage(problem, theta)
    return basis @ reduced @ basis.T / (1 - share), basis @ null


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


def _loading_jacobian(factor: np.ndarray, point: np.ndarray, canonical: np.ndarray) -> np.ndarray:
    """Derivative of a canonical factor with respect to the factor of the fit, both flattened.

    ``dV = (I - P) C dU M``, where ``V = C U M``: C centres the classes (elsewhere it is I), M turns
    the columns to the canonical ones, and I - P leaves out what a rotation undoes.
    """
    centring = np.eye(len(factor))
    if point is not factor:
        centring -= 1 / len(factor)
    left = centring - canonical @ (canonical.T @ centring)
    left[np.abs(left) < SINGULAR] = 0.0  # where a factor is square, rounding is all that is left
    return np.kron(left, (np.linalg.pinv(point) @ canonical).T)


def linear_at_origin(theta: Affine, center: np.ndarray | None) -> np.ndarray:
    """Vector coefficients with the intercept, their first row, at X = 0 instead of at the centre.

    ``intercept = linear_0 - <A, center>``.
    """
    if center is None:
        return theta.linear
    shift = Covariate().predict(theta.tucker, center[None, ...])
    return namespace(shift).concat([theta.linear[:1, ...] - shift, theta.linear[1:, ...]])


def linear_jacobian(theta: Affine, center: np.ndarray | None) -> np.ndarray:
    """Derivative (c q, D) of :func:`linear_at_origin` with respect to the flattened blocks."""
    size = theta.linear.size
    rows = np.zeros((size, sum(b.size for b in theta.blocks)))
    rows[:, -size:] = np.eye(size)
    if center is not None:
        _, pullback = Covariate().linearise(theta.tucker, center[None])
        units = np.eye(math.prod(theta.linear.shape[1:]))
        for row, unit in zip(rows, units, strict=False):  # the intercept's rows come first
            blocks = pullback(unit.reshape(1, *theta.linear.shape[1:]))
            row[:-size] = -np.concatenate([b.ravel() for b in blocks])
    return rows


def entry_jacobian(theta: Tucker, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivative of some entries of A with respect to the flattened blocks, as sparse rows.

    Entry ``(i_1, ..., i_d)`` depends on the core, through ``∘_k U_k[i_k]``, and on one row of each
    factor, through ``S x_{j≠k} U_j[i_j]``: on ``Π r_k + Σ r_k`` numbers.

    Parameters
    ----------
    theta : Tucker
    entries : array (m,) of int
        Indices into A, flattened.

    Returns
    -------
    columns, values : arrays (m, Π r_k + Σ r_k)
        Positions among the flattened blocks, and the derivatives there.

    Examples
    --------
    >>> import numpy as np
    >>> theta = Tucker(np.array([[2.0]]), [np.array([[1.0], [3.0]]), np.array([[5.0]])])
    >>> entry_jacobian(theta, np.array([1]))  # 2 · 3 · 5
    (array([[0, 2, 3]]), array([[15., 10.,  6.]]))
    """
    index = np.unravel_index(entries, theta.shape)
    rows = [u[i] for u, i in zip(theta.factors, index, strict=True)]
    m, low = len(entries), math.prod(theta.rank)
    columns = [np.broadcast_to(np.arange(low), (m, low))]
    values = [_outer(rows)]
    for k, (u, i) in enumerate(zip(theta.factors, index, strict=True)):
        columns.append(low + i[:, None] * u.shape[1] + np.arange(u.shape[1]))
        values.append(_contract(theta.core, rows, skip=k))
        low += u.size
    return np.concatenate(columns, axis=1), np.concatenate(values, axis=1)


def entry_variances(theta: Tucker, matrix: np.ndarray) -> np.ndarray:
    """Variance of every entry of A, the diagonal of ``J Σ Jᵀ``, for Σ that of the blocks."""
    width = math.prod(theta.rank) + sum(theta.rank)
    parts = []
    for entries in _entry_chunks(theta, width**2):
        columns, values = entry_jacobian(theta, entries)
        square = matrix[columns[:, :, None], columns[:, None, :]]
        parts.append(np.einsum("ia,iab,ib->i", values, square, values))
    return np.concatenate(parts).reshape(theta.shape)


def _sandwich_errors(problem: Problem, theta: Tucker) -> list[np.ndarray]:
    """Standard errors of what :func:`_targets` returns."""
    matrix, unknown = covariance(problem, theta)
    point, whole = theta, np.eye(len(matrix))
    if problem.loss.one_hot:
        point = _contrasts(theta)
        unknown, whole = (_contrast_columns(theta, a) for a in (unknown, whole))
        matrix = _contrast_columns(theta, _contrast_columns(theta, matrix).T)

    def errors(variances: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        lost = variances(unknown @ unknown.T) > UNKNOWN * variances(whole @ whole.T)
        return np.where(lost, np.inf, np.sqrt(np.maximum(variances(matrix), 0.0)))

    found = [errors(lambda a: entry_variances(point, a))]
    if isinstance(point, Affine):
        rows = linear_jacobian(point, problem.design.center)
        linear = errors(lambda a: np.einsum("ij,jk,ik->i", rows, a, rows))
        found.append(linear.reshape(point.linear.shape))
    return found


def _bootstrap_errors(
    problem: Problem, points: list[Tucker], tail: float
) -> tuple[list[np.ndarray], list[Any]]:
    """Standard deviations and quantiles of the targets, some entries of A at a time."""
    if problem.loss.one_hot:
        points = [_contrasts(p) for p in points]

    def summary(draws: np.ndarray) -> np.ndarray:
        return np.stack([draws.std(axis=0, ddof=1), *np.quantile(draws, (tail, 1 - tail), axis=0)])

    first = points[0]
    chunks = _entry_chunks(first, len(points) + math.prod(first.rank))
    parts = [summary(np.stack([_entries(p, chunk) for p in points])) for chunk in chunks]
    found = [np.concatenate(parts, axis=1).reshape(3, *first.shape)]
    if isinstance(first, Affine):
        center = problem.design.center
        draws = [linear_at_origin(p, center) for p in points if isinstance(p, Affine)]
        found.append(summary(np.stack(draws)))
    return [f[0] for f in found], [f[1:] for f in found]


def _targets(problem: Problem, theta: Tucker) -> list[np.ndarray]:
    """What intervals are for: A and, if there are any, the vector coefficients at X = 0."""
    point = _contrasts(theta) if problem.loss.one_hot else theta
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


def _horizontal_basis(theta: Tucker) -> np.ndarray:
    """Orthonormal basis (D, K) of the steps that move A, ``U_kᵀ dU_k = 0``, block by block."""
    blocks = [np.eye(theta.core.size)]
    for u in theta.factors:
        q, _ = np.linalg.qr(u, mode="complete")
        blocks.append(np.kron(q[:, u.shape[1] :], np.eye(u.shape[1])))
    blocks += [np.eye(b.size) for b in theta.blocks[1 + theta.order :]]
    return block_diag(*blocks)


def _pseudo_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-inverse, and an orthonormal basis of the null space.

    Each entry counts in its own units, those of the diagonal: blocks differ in scale, and vector
    covariates can have any.
    """
    diagonal = np.abs(np.diag(matrix))
    units = np.sqrt(np.where(diagonal > 0, diagonal, diagonal.mean() or 1.0))
    u, s, vt = np.linalg.svd(matrix / np.outer(units, units))
    kept = s > SINGULAR * s[0]
    inverse = (vt[kept].T / s[kept]) @ u[:, kept].T / np.outer(units, units)
    null, _ = np.linalg.qr(vt[~kept].T / units[:, None])
    return inverse, null


def _contrasts(theta: Tucker) -> Tucker:
    """The point with its coefficients centred over the classes, the last mode."""
    return theta.with_blocks(_centre_classes(list(theta.blocks), theta.order))


def _contrast_columns(theta: Tucker, columns: np.ndarray) -> np.ndarray:
    """What :func:`_contrasts` makes of columns of flattened blocks."""
    ends = np.cumsum([b.size for b in theta.blocks])[:-1]
    parts = zip(theta.blocks, np.split(columns, ends), strict=True)
    blocks = [part.reshape(*b.shape, columns.shape[1]) for b, part in parts]
    centred = _centre_classes(blocks, theta.order)
    return np.concatenate([b.reshape(-1, columns.shape[1]) for b in centred])


def _centre_classes(blocks: list[np.ndarray], order: int) -> list[np.ndarray]:
    """Centre U_d along its rows, and the vector coefficients along their second axis."""
    last = blocks[order] - blocks[order].mean(axis=0)
    linear = [b - b.mean(axis=1, keepdims=True) for b in blocks[order + 1 :]]
    return [*blocks[:order], last, *linear]


def _entry_chunks(theta: Tucker, width: int) -> Iterator[np.ndarray]:
    """Indices of the entries of A, as many at a time as have CHUNK_SIZE numbers."""
    total, size = math.prod(theta.shape), max(1, CHUNK_SIZE // width)
    for low in range(0, total, size):
        yield np.arange(low, min(low + size, total))


def _entries(theta: Tucker, entries: np.ndarray) -> np.ndarray:
    """Some entries of A."""
    index = np.unravel_index(entries, theta.shape)
    rows = [u[i] for u, i in zip(theta.factors, index, strict=True)]
    return _outer(rows) @ theta.core.ravel()


def _outer(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Outer product of the m-th rows, flattened: (m, Π r_k)."""
    out = rows[0]
    for row in rows[1:]:
        out = (out[:, :, None] * row[:, None, :]).reshape(len(row), -1)
    return out


def _contract(core: np.ndarray, rows: Sequence[np.ndarray], *, skip: int) -> np.ndarray:
    """``S x_{j≠skip} u_j`` for the m-th rows u_j: (m, r_skip)."""
    others = [row for j, row in enumerate(rows) if j != skip]
    matrix = np.moveaxis(core, skip, -1).reshape(-1, core.shape[skip])
    return (_outer(others) if others else np.ones((len(rows[0]), 1))) @ matrix


def _check(level: Any, method: Any, n_boot: Any) -> None:
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    check_number("n_boot", n_boot, integer=True)
    if n_boot < 2:
        raise ValueError(f"n_boot must be at least 2; got {n_boot}")
