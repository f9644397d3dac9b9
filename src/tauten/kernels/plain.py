"""The sweep in array code: the reference, and what every array library but numpy uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._array import Array, column, flat, matmul, matrix_of, namespace, reshape
from ..data.base import few
from ..tucker import multi_mode_dot, sweep


def project(
    X: Array,
    factors: Sequence[Array],
    *,
    center: Array | None = None,
    scale: Array | None = None,
    partials: bool = True,
) -> list[Array]:
    """Projections of a batch: see :func:`tauten.kernels.project`."""

    def projections(X: Array) -> list[Array]:
        if not partials:
            return [multi_mode_dot(X, [u.T for u in factors], first=1)]
        xbar, parts = sweep(X, factors)
        return [xbar, *parts]

    return _moved(projections, X, center, scale)


def derivatives(
    X: Array,
    factors: Sequence[Array],
    core: Array,
    *,
    center: Array | None = None,
    scale: Array | None = None,
    beside: Array | None = None,
) -> Array:
    """Derivatives of a batch: see :func:`tauten.kernels.derivatives`."""

    def blocks(X: Array) -> list[Array]:
        xbar, parts = sweep(X, factors)
        return [xbar, *(_contract(part, core, k) for k, part in enumerate(parts))]

    found = _moved(blocks, X, center, scale)
    return flat(found if beside is None else [*found, beside])


def derivatives_and_sum(
    X: Array, factors: Sequence[Array], core: Array, score: Array, **options: Array | None
) -> tuple[Array, Array]:
    """The same and a sum: see :func:`tauten.kernels.derivatives_and_sum`."""
    total = matmul(score, matrix_of(X, 1))
    return derivatives(X, factors, core, **options), reshape(total, tuple(X.shape[1:]))


def norms(X: Array, center: Array | None) -> Array:
    """Norms of a batch, a few samples at a time: see :func:`tauten.kernels.norms`."""
    xp = namespace(X)

    def some(X: Array) -> Array:
        rows = matrix_of(X if center is None else X - center, 1)
        return xp.sqrt(xp.vecdot(rows, rows))  # half the time of vector_norm

    return xp.concat([some(rows) for rows in few(X)])


def _moved(
    fn: Callable[[Array], list[Array]], X: Array, center: Array | None, scale: Array | None
) -> list[Array]:
    """What a linear function makes of each sample, centred and scaled: X itself is not touched."""
    arrays = fn(X)
    if center is not None:
        arrays = [a - c for a, c in zip(arrays, fn(center[None, ...]), strict=True)]
    if scale is not None:
        arrays = [a * column(scale, a.ndim) for a in arrays]
    return arrays


def _contract(part: Array, core: Array, mode: int) -> Array:
    """``P_(k) S_(k)ᵀ`` of each sample: contract every mode but one with the core."""
    xp = namespace(part)
    first, matrix = xp.moveaxis(part, mode + 1, 1), matrix_of(xp.moveaxis(core, mode, 0), 1)
    return xp.reshape(matrix_of(first, 2) @ matrix.T, (*first.shape[:2], core.shape[mode]))
