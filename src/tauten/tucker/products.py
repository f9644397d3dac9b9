"""Mode products, unfoldings and projections of plain arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._array import Array, namespace, reshape
from ..data.threads import BLAS


def mode_dot(tensor: Array, matrix: Array, mode: int) -> Array:
    """Mode product ``tensor x_mode matrix``: contract axis `mode` with the columns of `matrix`.

    A reshape and one (batched) matrix product; the tensor is never transposed or copied.

    Examples
    --------
    >>> import numpy as np
    >>> mode_dot(np.ones((2, 3, 4)), np.ones((5, 3)), mode=1).shape
    (2, 5, 4)
    """
    xp = namespace(tensor, matrix)
    shape = tensor.shape
    before, after = math.prod(shape[:mode]), math.prod(shape[mode + 1 :])
    if after == 1:  # a last mode as (M Xᵀ)ᵀ: twice as fast as X Mᵀ, since M has few rows
        out = xp.matmul(matrix, reshape(tensor, (before, shape[mode])).T).T
    else:
        out = xp.matmul(matrix, reshape(tensor, (before, shape[mode], after)))
    return reshape(out, (*shape[:mode], matrix.shape[0], *shape[mode + 1 :]))


def unfold(tensor: Array, mode: int) -> Array:
    """Mode-k matricisation in the paper's index order: the first of the other indices is fastest.

    Examples
    --------
    >>> import numpy as np
    >>> unfold(np.arange(8).reshape(2, 2, 2), mode=0)
    array([[0, 2, 1, 3],
           [4, 6, 5, 7]])
    """
    xp = namespace(tensor)
    others = [k for k in reversed(range(tensor.ndim)) if k != mode]
    return xp.reshape(xp.permute_dims(tensor, (mode, *others)), (tensor.shape[mode], -1))


def fold(matrix: Array, mode: int, shape: Sequence[int]) -> Array:
    """Inverse of :func:`unfold` for a tensor of the given shape.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(24).reshape(2, 3, 4)
    >>> bool((fold(unfold(x, 1), 1, x.shape) == x).all())
    True
    """
    xp = namespace(matrix)
    axes = [mode, *(k for k in reversed(range(len(shape))) if k != mode)]
    tensor = xp.reshape(matrix, tuple(shape[k] for k in axes))
    return xp.permute_dims(tensor, tuple(axes.index(k) for k in range(len(shape))))


def multi_mode_dot(tensor: Array, matrices: Sequence[Array | None], *, first: int = 0) -> Array:
    """Product with a matrix in each mode from mode `first` on; ``None`` leaves a mode as it is.

    Examples
    --------
    >>> import numpy as np
    >>> multi_mode_dot(np.ones((2, 3, 4)), [np.ones((5, 2)), None, np.ones((6, 4))]).shape
    (5, 3, 6)
    """
    for k in reversed(range(len(matrices))):  # the last mode lies together in memory
        if matrices[k] is not None:
            tensor = mode_dot(tensor, matrices[k], first + k)
    return tensor


def coordinates(tensors: Array, factors: Sequence[Array], *, first: int = 0) -> Array:
    """Coordinates of tensors in the span of orthonormal factors, from mode `first` on.

    ``Y x_k U_kᵀ``; where entries are missing (nan), the least-squares coordinates of least norm.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[2.0, np.nan], [2.0, 2.0]])
    >>> coordinates(y, [np.full((2, 1), 0.5**0.5)] * 2)
    array([[4.]])
    """
    xp = namespace(tensors, *factors)
    seen = ~xp.isnan(tensors)
    known = xp.where(seen, tensors, xp.zeros_like(tensors))
    scores = multi_mode_dot(known, [u.T for u in factors], first=first)
    if xp.all(seen):
        return scores
    # Σ φ φᵀ over the observed entries, φ the products of rows of the factors: one mode at a time.
    squares = [xp.reshape(u[:, :, None] * u[:, None, :], (u.shape[0], -1)).T for u in factors]
    gram = multi_mode_dot(xp.astype(seen, tensors.dtype), squares, first=first)
    rank, batch = scores.shape[first:], tuple(tensors.shape[:first])
    pairs = [r for r in rank for _ in range(2)]
    halves = [first + k for k in (*range(0, len(pairs), 2), *range(1, len(pairs), 2))]
    size = math.prod(rank)
    gram = xp.permute_dims(xp.reshape(gram, (*batch, *pairs)), (*range(first), *halves))
    gram = xp.reshape(gram, (*batch, size, size))
    flat = xp.reshape(scores, (*batch, size, 1))
    return xp.reshape(xp.linalg.pinv(gram) @ flat, scores.shape)


def sweep(tensors: Array, factors: Sequence[Array]) -> tuple[Array, list[Array]]:
    """All partial projections of a batch of tensors, reading the batch at most twice.

    Parameters
    ----------
    tensors : array (n, p_1, ..., p_d)
        A batch; axis 0 holds the samples.
    factors : sequence of arrays (p_k, r_k)

    Returns
    -------
    core : array (n, r_1, ..., r_d)
        ``X_i x_j U_jᵀ``.
    partials : list of arrays
        For each k, ``X_i x_{j≠k} U_jᵀ``: of shape r_j in every mode but k, where it is p_k.

    Notes
    -----
    Modes are halved as a binary tree: one read of X contracts the left half, one the right, and
    everything below works on the contracted, much smaller arrays.
    """
    order = len(factors)
    if order == 0:
        return tensors, []

    def contract(x: Array, modes: Sequence[int]) -> Array:
        for k in modes:
            x = mode_dot(x, factors[k].T, k + 1)
        return x

    def leaves(x: Array, low: int, high: int) -> list[Array]:
        if high - low == 1:
            return [x]
        middle = (low + high + 1) // 2
        left = leaves(contract(x, range(high - 1, middle - 1, -1)), low, middle)
        return left + leaves(contract(x, range(low, middle)), middle, high)

    partials = leaves(tensors, 0, order)
    return contract(partials[0], [0]), partials


def left_singular_vectors(tensor: Array, mode: int, rank: int) -> Array:
    """Leading left singular vectors of an unfolding, by the smaller of its two Gram matrices."""
    xp = namespace(tensor)
    matrix = unfold(tensor, mode)
    rows, columns = matrix.shape
    with BLAS.all_for(2 * rows * columns * min(rows, columns)):
        if rows <= columns:
            _, vectors = xp.linalg.eigh(matrix @ matrix.T)
            return xp.flip(vectors[:, rows - rank :], axis=1)
        u, _, _ = xp.linalg.svd(matrix, full_matrices=rank > columns)
        return u[:, :rank]
