"""Linear systems of the blocks: which steps move A, and how far a robust gradient's zero is off."""

from __future__ import annotations

from .._array import Array, namespace
from ..tucker import Tucker, unfold


def expected_error(theta: Tucker, slope: Array, moment: Array) -> float:
    """Expected ``‖Â - A‖²_F`` of a robust gradient's zero, at a point in canonical form.

    From the asymptotic covariance of the flattened blocks, ``M⁺ V M⁺ᵀ`` along steps that move A,
    for M the `slope` of the mean of the bent per-sample gradients, and V, `moment`, its covariance.
    """
    xp = namespace(theta.core)
    inverse = theta.horizontal(xp.linalg.inv(horizontal_system(theta, slope)))
    variances = xp.sum((inverse @ moment) * inverse, axis=1)
    scales = [xp.ones_like(theta.core)]
    for k, u in enumerate(theta.factors):  # a move of column r of U_k moves A by its core slice
        scales.append(xp.ones_like(u) * xp.sum(unfold(theta.core, k) ** 2, axis=1))
    squares = xp.concat([xp.reshape(s, (-1,)) for s in scales])
    return float(xp.sum(squares * variances[: squares.shape[0]]))


def horizontal_part(theta: Tucker, matrix: Array) -> Array:
    """``P M P``, for P the projection on the steps that move A."""
    return theta.horizontal(theta.horizontal(matrix).T).T


def horizontal_system(theta: Tucker, matrix: Array) -> Array:
    """``P M P`` made invertible, for P the projection on the steps that move A.

    The other directions get any curvature: what it multiplies is projected away. The small ridge,
    in the units of each entry and of its block, keeps unidentified directions where they are: those
    of an excessive rank too, which have no curvature at all.
    """
    xp = namespace(matrix)
    eye = xp.eye(matrix.shape[0], dtype=matrix.dtype)
    diagonal = xp.abs(xp.linalg.diagonal(matrix))
    parts = [xp.reshape(part, (-1,)) for part in theta.split(diagonal)]
    level = xp.concat([xp.ones_like(part) * xp.mean(part) for part in parts])
    tiny = xp.finfo(matrix.dtype).smallest_normal  # separable classes may have no curvature at all
    ridge = 1e-7 * diagonal + 1e-10 * level + float(tiny)
    return horizontal_part(theta, matrix) + level * (eye - theta.horizontal(eye)) + eye * ridge
