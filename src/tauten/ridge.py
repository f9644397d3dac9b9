"""The ridge ``½ λ ‖A‖²_F``: a fit of more parameters than the samples can tell."""

from __future__ import annotations

import math

from ._array import Array, flat, namespace
from .tucker import Tucker, multi_mode_dot, unfold


def ridge_gradient(theta: Tucker) -> Tucker:
    """Gradient of ``½ ‖A‖²_F`` in each block; other coefficients are left alone.

    Examples
    --------
    >>> import numpy as np
    >>> theta = Tucker(np.full((1, 1), 3.0), [np.ones((1, 1)), 2 * np.ones((1, 1))])
    >>> ridge_gradient(theta).core
    array([[12.]])
    """
    xp = namespace(theta.core)
    grams = [u.T @ u for u in theta.factors]
    blocks = [multi_mode_dot(theta.core, grams)]
    blocks += [u @ m for u, m in zip(theta.factors, _slices(theta, grams), strict=True)]
    return theta.with_blocks([*blocks, *(xp.zeros_like(b) for b in theta.blocks[len(blocks) :])])


def ridge_curvature(theta: Tucker) -> Array:
    """Its Gauss-Newton matrix ``JᵀJ``, J the derivative of A, along the steps that move A.

    Those have ``U_kᵀ dU_k = 0`` (:meth:`Tucker.horizontal`), so that no two blocks mix.
    """
    xp = namespace(theta.core)
    grams = [u.T @ u for u in theta.factors]
    core = xp.ones((1, 1), dtype=theta.core.dtype)
    for gram in grams:
        core = _kronecker(core, gram)
    parts = [core]
    for p, m in zip(theta.shape, _slices(theta, grams), strict=True):
        parts.append(_kronecker(xp.eye(p, dtype=m.dtype), m))
    for block in theta.blocks[len(parts) :]:
        size = math.prod(block.shape)
        parts.append(xp.zeros((size, size), dtype=block.dtype))
    return _block_diagonal(parts)


def ridge_coordinates(theta: Tucker, rows: Array) -> tuple[Array, Array]:
    """Derivatives along the steps that move A, in coordinates in which its matrix is the identity.

    And those in the other coefficients, which it leaves alone.

    Parameters
    ----------
    theta : Tucker
    rows : array (n, D)
        Derivatives in all blocks, flattened.
    """
    grams = [u.T @ u for u in theta.factors]
    blocks = theta.split(theta.horizontal(rows.T).T)
    parts = [multi_mode_dot(blocks[0], [_inverse_root(gram) for gram in grams], first=1)]
    parts += [b @ _inverse_root(m) for b, m in zip(blocks[1:], _slices(theta, grams), strict=False)]
    return flat(parts), rows[:, theta.d_eff :]


def _inverse_root(matrix: Array) -> Array:
    """``M^-½``; of an excessive rank, which moves nothing, any large number will do."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    least = 1e-10 * float(values[-1]) + float(xp.finfo(matrix.dtype).smallest_normal)
    return (vectors / xp.sqrt(xp.clip(values, min=least))) @ vectors.T


def _slices(theta: Tucker, grams: list[Array]) -> list[Array]:
    """Inner products of the core's slices in each mode, as parts of A."""
    found = []
    for k in range(theta.order):
        others = [None if j == k else gram for j, gram in enumerate(grams)]
        found.append(unfold(theta.core, k) @ unfold(multi_mode_dot(theta.core, others), k).T)
    return found


def _kronecker(a: Array, b: Array) -> Array:
    xp = namespace(a, b)
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    return xp.reshape(a[:, None, :, None] * b[None, :, None, :], shape)


def _block_diagonal(parts: list[Array]) -> Array:
    xp, dtype = namespace(*parts), parts[0].dtype
    rows = []
    for i, part in enumerate(parts):
        n = part.shape[0]
        row = [
            part if i == j else xp.zeros((n, o.shape[1]), dtype=dtype) for j, o in enumerate(parts)
        ]
        rows.append(xp.concat(row, axis=1))
    return xp.concat(rows, axis=0)
