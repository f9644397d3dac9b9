"""Confidence intervals of the factors."""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from ..tucker import Tucker
from .base import Intervals, check_level, in_numpy, quantile
from .contrasts import contrasts
from .sandwich import SINGULAR, covariance, standard_errors


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
    check_level(level)
    theta = in_numpy(theta)
    q = quantile(problem, theta, (1 - level) / 2)
    matrix, unknown = covariance(problem, theta)
    point = contrasts(theta) if problem.loss.one_hot else theta
    found = []
    for k, factor in enumerate(point.canonical().factors):
        rows = _loading_jacobian(theta.factors[k], point.factors[k], factor)
        entries = theta.split(np.arange(len(matrix)))[1 + k].ravel()
        variances = np.einsum("ij,jk,ik->i", rows, matrix[np.ix_(entries, entries)], rows)
        lost = np.sum((rows @ unknown[entries]) ** 2, axis=1)
        errors = standard_errors(variances, lost, np.sum(rows**2, axis=1)).reshape(factor.shape)
        ends = factor - q * errors, factor + q * errors
        found.append(Intervals(factor, errors, *ends, level, "sandwich"))
    return found


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
