"""Coordinates along the steps that move a Tucker tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .._array import Array, namespace, reshape


class Tangent:
    """An orthonormal basis B of the steps with ``U_kᵀ dU_k = 0``, which is never formed.

    The others only rotate or rescale factors against the core. Each factor is turned by a
    reflection that brings its columns to the first r_k rows: the entries of the other rows are the
    coordinates, and all entries of the other blocks.

    Parameters
    ----------
    bases : sequence of arrays (p_k, r_k)
        Orthonormal bases of the factors' columns.
    shapes : sequence of tuples
        Of all blocks of the point: the core, the factors, others.

    Examples
    --------
    >>> import numpy as np
    >>> tangent = Tangent([np.array([[0.6], [0.8]])], [(1,), (2, 1)])
    >>> tangent.outward(np.eye(tangent.size)).round(9) + 0.0
    array([[ 1. ,  0. ],
           [ 0. , -0.8],
           [ 0. ,  0.6]])
    """

    def __init__(self, bases: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> None:
        self._reflections = [_reflection(q) for q in bases]
        self._sizes = [math.prod(shape) for shape in shapes]
        self._counts = list(self._sizes)  # coordinates of each block
        self._counts[1 : 1 + len(bases)] = [(p - r) * r for p, r in (q.shape for q in bases)]
        self.size = sum(self._counts)

    def inward(self, columns: Array) -> Array:
        """Coordinates of columns of flattened blocks, projected on such steps: ``Bᵀ c``."""

        def turned(wide: Array, y: Array, f: Array) -> Array:
            r = y.shape[1]
            return wide[r:, :] - y[r:, :] @ (f @ wide)

        return self._by_block(columns, self._sizes, turned)

    def outward(self, columns: Array) -> Array:
        """Columns of flattened blocks from such coordinates: ``B x``."""

        def turned(wide: Array, y: Array, f: Array) -> Array:
            r = y.shape[1]
            move = f[:, r:] @ wide
            return namespace(wide).concat([-y[:r, :] @ move, wide - y[r:, :] @ move], axis=0)

        return self._by_block(columns, self._counts, turned)

    def _by_block(
        self, columns: Array, sizes: Sequence[int], turned: Callable[..., Array]
    ) -> Array:
        """Turn the rows of each factor, so many, as a matrix of its own; the other rows stay."""
        parts, start, m = [], 0, columns.shape[1]
        for k, size in enumerate(sizes):
            part = columns[start : start + size, :]
            start += size
            if 1 <= k <= len(self._reflections):
                y, f = self._reflections[k - 1]
                r = y.shape[1]
                wide = turned(reshape(part, (size // r, r * m)), y, f)
                part = reshape(wide, (wide.shape[0] * r, m))
            parts.append(part)
        return namespace(columns).concat(parts, axis=0)


def _reflection(q: Array) -> tuple[Array, Array]:
    """Y and F of a reflection ``I - Y F`` that brings orthonormal columns Q to the first r rows.

    With ``A Σ Bᵀ`` the first rows of Q, and E the first columns of the unit matrix,
    ``Y = -Q B Aᵀ - E`` and ``F = (I + A Σ Aᵀ)⁻¹ Yᵀ``.
    """
    xp, (p, r) = namespace(q), q.shape
    a, sizes, bt = xp.linalg.svd(q[:r, :], full_matrices=False)
    y = -(q @ (bt.T @ a.T)) - xp.eye(p, r, dtype=q.dtype)
    return y, (a / (1 + sizes)) @ (a.T @ y.T)
