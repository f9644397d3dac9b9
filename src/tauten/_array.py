"""The only file that knows array libraries.

Everything else asks :func:`namespace` for the functions of the library its arrays come from
(numpy, torch, cupy, array-api-strict, ...) and keeps to the array API standard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate, chain
from types import ModuleType
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np

Array = Any  # an array of any library that follows the array API standard

# Since 2.1, which has this function, numpy follows the standard itself: no wrappers are needed.
NUMPY: ModuleType = np if hasattr(np, "cumulative_sum") else array_api_compat.numpy
FEW_ROWS = 64  # of a triangular matrix that is inverted without cutting it


def namespace(*arrays: Array) -> ModuleType:
    """Return the array-API module that the arrays belong to; ``None`` and scalars are skipped."""
    for array in arrays:
        if type(array) is not np.ndarray:
            break
    else:  # the common case, asked thousands of times
        return NUMPY
    found = array_api_compat.array_namespace(*(a for a in arrays if a is not None))
    return NUMPY if found is array_api_compat.numpy else found


def is_numpy(array: Array) -> bool:
    """Whether an array is numpy's own, so that compiled code may take it."""
    return isinstance(array, np.ndarray)


def is_foreign(value: Any) -> bool:
    """Whether a value is an array in memory of another library than numpy."""
    if is_numpy(value) or not array_api_compat.is_array_api_obj(value):
        return False
    return not array_api_compat.is_dask_array(value)


def like(value: Any, reference: Array) -> Array:
    """Return `value` as an array of the library, dtype and device of `reference`."""
    if is_numpy(reference):  # asked for each chunk
        return np.asarray(value, dtype=reference.dtype)
    xp = namespace(reference)
    device = array_api_compat.device(reference)
    return xp.asarray(value, dtype=reference.dtype, device=device)


def to_numpy(array: Array) -> np.ndarray:
    """Return a numpy view or copy of an array of any library."""
    if is_numpy(array):
        return array
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(array):
        return array.get()
    return np.asarray(array)


def take(array: Array, rows: slice | np.ndarray) -> Array:
    """Some samples of an array: a view, if they are a slice."""
    if isinstance(rows, slice) or is_numpy(array):
        return array[rows, ...]
    xp, device = namespace(array), array_api_compat.device(array)
    return xp.take(array, xp.asarray(rows, device=device), axis=0)


def reshape(array: Array, shape: tuple[int, ...]) -> Array:
    """An array in another shape; a view where that can be."""
    if is_numpy(array):  # the standard's wrapper costs more than the reshaping itself
        return array.reshape(shape)
    return namespace(array).reshape(array, shape)


def in_rows(batch: Array) -> Array:
    """A batch each of whose samples is in one piece of memory, as other libraries' are."""
    return np.ascontiguousarray(batch) if is_numpy(batch) else batch


def matrix_of(tensor: Array, order: int) -> Array:
    """A tensor as a matrix: its first modes by the others."""
    return reshape(tensor, (math.prod(tensor.shape[:order]), math.prod(tensor.shape[order:])))


def flat(blocks: Iterable[Array]) -> Array:
    """Per-sample blocks flattened side by side; a batch of one is repeated for every sample."""
    parts = [matrix_of(block, 1) for block in blocks]
    xp, n = namespace(*parts), max(part.shape[0] for part in parts)
    if any(part.shape[0] < n for part in parts):
        parts = [xp.broadcast_to(part, (n, part.shape[1])) for part in parts]
    return xp.concat(parts, axis=1)


def matmul(left: Array, right: Array) -> Array:
    """Product of two matrices, or of one and a vector, made while other threads run.

    numpy's own ``@`` stops them all where it makes fewer than 500 numbers, however long that takes;
    ``dot`` does not, but copies what is not in one piece.
    """
    if is_numpy(left) and is_numpy(right) and left.flags.forc and right.flags.forc:
        return np.dot(left, right)
    return left @ right


def product(batch: Array, matrix: Array, shape: tuple[int, ...]) -> Array:
    """Each sample, flattened, times a matrix; the result in the given shape."""
    return reshape(matmul(matrix_of(batch, 1), matrix), (batch.shape[0], *shape))


def pair_products(left: Array, right: Array) -> Array:
    """``L_i R_iᵀ`` of each pair of samples (n, p, m) and (n, q, m); a batch of one serves all."""
    if _run_along_samples(left, right):
        return _products_along_samples(left, right)
    if is_numpy(left) and right.shape[0] == 1 and _samples_fastest(left):
        return np.matmul(right[0], left.transpose(1, 2, 0)).transpose(2, 0, 1)
    if is_numpy(right) and left.shape[0] == 1 and _samples_fastest(right):
        return np.matmul(left[0], right.transpose(1, 2, 0)).transpose(2, 1, 0)
    xp = namespace(left, right)
    return xp.matmul(left, xp.matrix_transpose(right))


def flat_pair_products(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """The same of several batches, flattened side by side."""
    if not all(_run_along_samples(*pair) for pair in pairs):
        return flat(pair_products(*pair) for pair in pairs)
    sizes, n = [left.shape[1] * right.shape[1] for left, right in pairs], pairs[0][0].shape[0]
    rows = np.empty((sum(sizes), n), np.result_type(*chain.from_iterable(pairs)))
    for (left, right), end, size in zip(pairs, accumulate(sizes), sizes, strict=True):
        place = rows[end - size : end].reshape(left.shape[1], right.shape[1], n)
        _products_along_samples(left, right, out=place.transpose(2, 0, 1))
    return rows.T


def _products_along_samples(
    left: np.ndarray, right: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    pair = (a if _samples_fastest(a) else np.asfortranarray(a) for a in (left, right))
    return np.einsum("ipm,iqm->ipq", *pair, out=out)


def _run_along_samples(left: Array, right: Array) -> bool:
    """Whether products of pairs are best made of many samples at once: matmul would hop."""
    batches = is_numpy(left) and min(left.shape[0], right.shape[0]) > 1
    return batches and (_samples_fastest(left) or left.shape[2] == 1)


def _samples_fastest(array: np.ndarray) -> bool:
    return array.strides[0] == array.itemsize


def summed(array: Array, axis: int | None = None) -> Array:
    """Sum over an axis, or over all; `np.sum` takes longer to begin than to add a few numbers."""
    if is_numpy(array):
        return np.add.reduce(array, axis=axis)
    return namespace(array).sum(array, axis=axis)


def column(vector: Array, ndim: int) -> Array:
    """A vector shaped to broadcast along axis 0 of an array of `ndim` axes."""
    return reshape(vector, (-1,) + (1,) * (ndim - 1))


def ratio(above: Array, below: Array, *, otherwise: Array | float = 1.0) -> Array:
    """Quotient where the denominator is not zero, `otherwise` elsewhere."""
    if is_numpy(below):  # dividing by the few zeros too, and mending, is a third of the time
        with quiet():
            out = np.asarray(above / below)
        np.copyto(out, otherwise, where=below == 0)
        return out
    xp = namespace(below)
    safe = xp.where(below != 0, below, xp.ones_like(below))
    return xp.where(below != 0, above / safe, like(otherwise, below))


def inverse_root(matrix: Array) -> Array:
    """R with ``RᵀR = M⁻¹``, for M symmetric and positive definite; nan where M is not."""
    xp = namespace(matrix)
    try:
        return _triangular_inverse(xp.linalg.cholesky(matrix))
    except (np.linalg.LinAlgError, RuntimeError):  # torch's is one of the latter
        return matrix * math.nan


def _triangular_inverse(lower: Array) -> Array:
    """Inverse of a lower triangular matrix, by products of its quarters: these are quicker."""
    xp, half = namespace(lower), lower.shape[0] // 2
    if 2 * half < FEW_ROWS:
        return xp.linalg.inv(lower)
    first = _triangular_inverse(lower[:half, :half])
    last = _triangular_inverse(lower[half:, half:])
    across = -last @ (lower[half:, :half] @ first)
    top = xp.concat([first, lower[:half, half:]], axis=1)
    return xp.concat([top, xp.concat([across, last], axis=1)], axis=0)


def clip(array: Array, bound: Any) -> Array:
    """Entrywise truncation ``T(x, bound) = sgn(x) min(|x|, bound)`` of the paper's section 2.3.

    `bound` is a number or an array that broadcasts against `array`.
    """
    if isinstance(bound, float) and bound == math.inf:
        return array
    if is_numpy(array) and not is_numpy(bound):  # the standard's wrapper takes twice as long
        return array.clip(-bound, bound)
    if is_numpy(array):  # and so does numpy's clip where bounds differ
        bound = bound.astype(array.dtype, copy=False)  # else they make float32 data float64
        low = np.maximum(array, -bound)
        return np.minimum(low, bound, out=low if is_numpy(low) else None)  # of a number: a scalar
    xp = namespace(array)
    bound = xp.broadcast_to(like(bound, array), array.shape)
    return xp.clip(array, -bound, bound)


def safe_exp(x: Array) -> tuple[Array, Array, Array]:
    """Exponential continued by its tangent line beyond c, with its first two derivatives.

    c is half the logarithm of the largest float: sums of such values do not overflow. A fit that
    comes that far is wrong anyway, but it must see finite numbers.
    """
    xp = namespace(x)
    c = float(np.log(xp.finfo(x.dtype).max)) / 2
    below = xp.exp(xp.minimum(x, like(c, x)))
    beyond = xp.maximum(x - c, xp.zeros_like(x))
    return below * (1 + beyond), below, xp.where(beyond > 0, xp.zeros_like(x), below)


def quiet() -> AbstractContextManager[None]:
    """Silence numpy's floating-point warnings where overflow is looked for and reported."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")
