"""Linear systems of the blocks: which steps move A, and how far a robust gradient's zero is off.

They are in coordinates along the steps that move A (:attr:`Tucker.tangent`), K of them: the others
only rotate or rescale factors against the core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._array import Array, namespace, quiet, to_numpy
from ..tucker import Tucker, unfold


def expected_error(theta: Tucker, slope: Array, moment: Array) -> float:
    """Expected ``‖Â - A‖²_F`` of a robust gradient's zero, at a point in canonical form.

    From the asymptotic covariance ``M⁻¹ V M⁻ᵀ`` of the coordinates, for M the `slope` of the mean
    of the bent per-sample gradients, and V, `moment`, its covariance.
    """
    xp = namespace(theta.core)
    inverse = xp.linalg.inv(tangent_system(theta, slope))
    variances = xp.sum((inverse @ tangent_part(theta, moment)) * inverse, axis=1)
    free = [p - r for p, r in zip(theta.shape, theta.rank, strict=True)]
    squares = squared_moves(theta, free)
    return float(xp.sum(squares * variances[: squares.shape[0]]))


def expected_error_of_entries(theta: Tucker, slope: Array, moment: Array) -> float:
    """The same from diagonals, as if every entry of the blocks were estimated alone.

    Exact, but for steps that do not move A, where the gradient's entries are not correlated, as
    with white covariates. An entry that nothing depends on is known.
    """
    squares = to_numpy(squared_moves(theta, theta.shape))
    moment, slope = (to_numpy(a)[: squares.size] for a in (moment, slope))
    with quiet():
        variances = moment / slope**2
    return float(squares @ np.where(moment == 0, 0.0, variances))


def squared_moves(theta: Tucker, rows: Sequence[int]) -> Array:
    """``‖dA‖²`` for a unit step of each entry of the core, and of so many rows of each factor.

    At a point in canonical form, where they add up.
    """
    xp = namespace(theta.core)
    squares = [xp.ones(math.prod(theta.rank), dtype=theta.core.dtype)]
    for k, count in enumerate(rows):
        sizes = xp.sum(unfold(theta.core, k) ** 2, axis=1)
        squares.append(xp.reshape(xp.ones((count, 1), dtype=sizes.dtype) * sizes, (-1,)))
    return xp.concat(squares)


def tangent_part(theta: Tucker, matrix: Array) -> Array:
    """``Bᵀ M B`` (K, K) of a matrix of all blocks, flattened."""
    return theta.tangent.inward(theta.tangent.inward(matrix).T).T


def tangent_system(theta: Tucker, matrix: Array) -> Array:
    """``Bᵀ M B`` made invertible.

    The small ridge, in the units of each entry and of its block, keeps unidentified directions
    where they are: those of an excessive rank too, which have no curvature at all. It is that of M:
    along directions that the data say nothing of, the part has no units.
    """
    xp = namespace(matrix)
    diagonal = xp.abs(xp.linalg.diagonal(matrix))
    parts = [xp.reshape(part, (-1,)) for part in theta.split(diagonal)]
    level = xp.concat([xp.ones_like(part) * xp.mean(part) for part in parts])
    tiny = xp.finfo(matrix.dtype).smallest_normal  # separable classes may have no curvature at all
    ridge = 1e-7 * diagonal + 1e-10 * level + float(tiny)
    return tangent_part(theta, matrix + xp.eye(matrix.shape[0], dtype=matrix.dtype) * ridge)
