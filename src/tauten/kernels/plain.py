"""The sweep in array code: the reference, and what every array library but numpy uses."""

from __future__ import annotations

from collections.abc import Sequence

from .._array import Array, column, matrix_of, namespace
from ..tucker import multi_mode_dot, sweep


def project(
    X: Array,
    factors: Sequence[Array],
    *,
    core: Array | None = None,
    center: Array | None = None,
    scale: Array | None = None,
    partials: bool = True,
) -> list[Array]:
    """Projections of a batch: see :func:`tauten.kernels.project`."""
    arrays = _all(X, factors, core, partials)
    if center is not None:  # projections are linear: X itself is not touched
        middle = _all(center[None, ...], factors, core, partials)
        arrays = [a - c for a, c in zip(arrays, middle, strict=True)]
    if scale is not None:
        arrays = [a * column(scale, a.ndim) for a in arrays]
    return arrays


def _all(X: Array, factors: Sequence[Array], core: Array | None, partials: bool) -> list[Array]:
    if not partials:
        return [multi_mode_dot(X, [u.T for u in factors], first=1)]
    xbar, parts = sweep(X, factors)
    if core is not None:
        parts = [_contract(part, core, k) for k, part in enumerate(parts)]
    return [xbar, *parts]


def _contract(part: Array, core: Array, mode: int) -> Array:
    """``P_(k) S_(k)ᵀ`` of each sample: contract every mode but one with the core."""
    xp = namespace(part)
    first, matrix = xp.moveaxis(part, mode + 1, 1), matrix_of(xp.moveaxis(core, mode, 0), 1)
    return xp.reshape(matrix_of(first, 2) @ matrix.T, (*first.shape[:2], core.shape[mode]))
