"""Entries of A and vector coefficients, and their derivatives by the blocks of a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .._array import namespace
from ..designs import Covariate
from ..tucker import Affine, Tucker

CHUNK_SIZE = 2**18  # numbers per block of entries of A


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
    for entries in entry_chunks(theta, width**2):
        columns, values = entry_jacobian(theta, entries)
        square = matrix[columns[:, :, None], columns[:, None, :]]
        parts.append(np.einsum("ia,iab,ib->i", values, square, values))
    return np.concatenate(parts).reshape(theta.shape)


def entry_chunks(theta: Tucker, width: int) -> Iterator[np.ndarray]:
    """Indices of the entries of A, as many at a time as have CHUNK_SIZE numbers."""
    total, size = math.prod(theta.shape), max(1, CHUNK_SIZE // width)
    for low in range(0, total, size):
        yield np.arange(low, min(low + size, total))


def entries_of(theta: Tucker, entries: np.ndarray) -> np.ndarray:
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
