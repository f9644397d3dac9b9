"""Standard errors from the slope and the scatter of the gradients at the fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import block_diag

from .._array import to_numpy
from ..exceptions import IntervalsWarning
from ..problem import Problem
from ..tucker import Affine, Tucker
from .base import leverage
from .contrasts import contrast_columns, contrasts
from .jacobians import entry_variances, linear_jacobian

SINGULAR = 1e-8  # relative to the largest: a slope below this is rounding
UNKNOWN = 1e-6  # share of an entry's gradient along steps the data say nothing about
STRAY = 0.5  # standard errors that a fit may lie from the zero of its gradient


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


def standard_errors(variances: np.ndarray, lost: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Square roots of variances; infinite where the data do not tell.

    There the squared derivative along the steps that they say nothing about, `lost`, is more than
    rounding of that along all steps, `whole`.
    """
    return np.where(lost > UNKNOWN * whole, np.inf, np.sqrt(np.maximum(variances, 0.0)))


def sandwich_errors(problem: Problem, theta: Tucker) -> list[np.ndarray]:
    """Standard errors of A and, if there are any, of the vector coefficients at X = 0."""
    matrix, unknown = covariance(problem, theta)
    point, whole = theta, np.eye(len(matrix))
    if problem.loss.one_hot:
        point = contrasts(theta)
        unknown, whole = (contrast_columns(theta, a) for a in (unknown, whole))
        matrix = contrast_columns(theta, contrast_columns(theta, matrix).T)

    def errors(variances: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        lost, total = variances(unknown @ unknown.T), variances(whole @ whole.T)
        return standard_errors(variances(matrix), lost, total)

    found = [errors(lambda a: entry_variances(point, a))]
    if isinstance(point, Affine):
        rows = linear_jacobian(point, problem.design.center)
        linear = errors(lambda a: np.einsum("ij,jk,ik->i", rows, a, rows))
        found.append(linear.reshape(point.linear.shape))
    return found


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
