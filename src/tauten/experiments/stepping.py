"""Algorithm 1 on many lanes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..solver.loop import GROWTH
from .lanes import Blocks, Lanes, Stack, clip_lanes, gradients, sweep


def robust_gradient(stack: Stack, lanes: Lanes) -> Blocks:
    """Mean over the samples of the truncated per-sample gradients, block by block."""
    if stack.X is None and np.isfinite(lanes.nu).any():
        return _bent_entries(stack, lanes)
    sums: Blocks = []
    for rows, parts in gradients(stack, lanes):
        bent = [clip_lanes(part, lanes.tau) for part in parts]
        chunk = [_total(part, lanes.weight, rows) for part in bent]
        sums = [a + b for a, b in zip(sums, chunk, strict=True)] if sums else chunk
    if lanes.weight is None:
        return [s / stack.n for s in sums]
    count = lanes.weight.sum(axis=-1)
    return [s / count.reshape(*count.shape, *(1,) * (s.ndim - 2)) for s in sums]


def _bent_entries(stack: Stack, lanes: Lanes) -> Blocks:
    """Model IV with entries of ``A - Y_i`` bent at ν: their mean is projected, as τ = ∞."""
    if np.isfinite(lanes.tau).any():
        raise ValueError("in PCA a lane bends residuals (nu) or gradients (tau), not both")
    core, *factors = lanes.blocks
    full = lanes.full()
    mean = np.zeros_like(full)
    weight = np.ones((*core.shape, stack.n)) if lanes.weight is None else lanes.weight
    share = weight / weight.sum(axis=-1, keepdims=True)
    for rows, swept, _ in stack.chunks():
        score = np.empty_like(swept)
        for m, nu in enumerate(lanes.nu):
            np.subtract(full[:, m, ..., None], swept, out=score)
            np.clip(score, -nu, nu, out=score)
            mean[:, m] += np.einsum("b...n,bn->b...", score, share[:, m, rows])
    out = [np.empty_like(core), *(np.empty_like(u) for u in factors)]
    for m in range(core.shape[1]):
        sbar, parts = sweep(mean[:, m, ..., None], [u[:, m : m + 1] for u in factors])
        out[0][:, m] = sbar[:, 0, 0]
        for block, part in zip(out[1:], parts, strict=True):
            block[:, m] = core[:, m, None] * part[:, 0, :, 0]
    return out


def _total(part: np.ndarray, weight: np.ndarray | None, rows: slice) -> np.ndarray:
    if weight is None:
        return part.sum(axis=-1)
    w = weight[:, :, rows]
    return np.sum(part * w.reshape(*w.shape[:2], *(1,) * (part.ndim - 3), -1), axis=-1)


@dataclass(frozen=True)
class Descent:
    """Where Algorithm 1 ended.

    Attributes
    ----------
    lanes : Lanes
        The last iterates, of a lane that ran away its last one before.
    diverged : array (B, M) of bool
    errors : array (window, B, M)
        ``‖A^(t) - A*‖²`` in the last iterations.
    """

    lanes: Lanes
    diverged: np.ndarray
    errors: np.ndarray


def descend(
    stack: Stack,
    lanes: Lanes,
    truth: np.ndarray,
    *,
    step: float,
    a: float = 1.0,
    b: float = 1.0,
    n_iter: int = 300,
    window: int = 1,
) -> Descent:
    """Run Algorithm 1 on every lane: see :func:`tauten.robust_gradient_descent`.

    Parameters
    ----------
    stack : Stack
    lanes : Lanes
        Where to start.
    truth : array (p_1, ..., p_d)
        A*, to measure the errors of the last iterations.
    step, a, b, n_iter
        η, a, b and T of the paper.
    window : int
        How many last iterations to measure.
    """
    largest = GROWTH * np.maximum(lanes.norms(), 1.0)
    diverged, errors = np.zeros(largest.shape, dtype=bool), []
    with np.errstate(over="ignore", invalid="ignore"):  # runaways are looked for
        for t in range(n_iter):
            gradient = robust_gradient(stack, lanes)
            new = [x - step * g for x, g in zip(lanes.blocks, gradient, strict=True)]
            for k, u in enumerate(lanes.blocks[1:], start=1):
                new[k] = new[k] - step * a * u * (np.sum(u**2, axis=-1, keepdims=True) - b**2)
            moved = replace(lanes, blocks=new)
            diverged = diverged | ~(moved.norms() < largest)  # nan is not smaller
            lanes = replace(lanes, blocks=_unless(diverged, new, lanes.blocks))
            if t >= n_iter - window:
                errors.append(squared_errors(lanes, truth))
            if diverged.all():
                break
    return Descent(lanes, diverged, np.array(errors or [squared_errors(lanes, truth)]))


def squared_errors(lanes: Lanes, truth: np.ndarray) -> np.ndarray:
    """``‖A - A*‖²`` of every lane, (B, M)."""
    gap = (lanes.full() - truth).reshape(*lanes.blocks[0].shape, -1)
    return np.sum(gap**2, axis=-1)


def _unless(diverged: np.ndarray, new: Blocks, old: Blocks) -> Blocks:
    def stay(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(diverged.reshape(*diverged.shape, *(1,) * (x.ndim - 2)), y, x)

    return [stay(x, y) for x, y in zip(new, old, strict=True)]
