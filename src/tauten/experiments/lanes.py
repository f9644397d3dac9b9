"""Algorithm 1 for many rank-one problems at once: what makes 200 replications affordable.

The experiments run :func:`tauten.robust_gradient_descent` some 10⁵ times on small data. One by one,
most of that time is the overhead of small arrays; here B data sets, and M lanes on each
(thresholds, folds, noises that share the covariates), step together and X is read once for all
lanes. The tests hold every lane against the library's own function.

Samples are the last axis, so that every product is one of matrices with long rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..solver import GROWTH
from ..tucker import Tucker

CHUNK_BYTES = 2**22  # of X: smaller chunks cost overhead, larger ones leave the cache
Blocks = list[np.ndarray]


@dataclass(frozen=True)
class Stack:
    """B data sets of one model, all of n samples.

    Parameters
    ----------
    X : array (B, n, p_1, ..., p_d0) or None
        None for PCA.
    y : array (B, L, n, ...)
        Responses; L is the number of lanes, or 1 where all lanes share them.
    logistic : bool
        Whether the responses are classes.
    """

    X: np.ndarray | None
    y: np.ndarray
    logistic: bool = False
    _chunks: list[tuple[slice, np.ndarray, np.ndarray]] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Sample size."""
        return int(self.y.shape[2])

    def chunks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield which samples, what is swept (covariates, or in PCA the tensors), responses."""
        if not self._chunks:
            swept = self.y[:, 0] if self.X is None else self.X
            step = max(1, CHUNK_BYTES // (8 * math.prod(swept.shape[2:])))
            for start in range(0, self.n, step):
                rows = slice(start, min(start + step, self.n))
                last = np.ascontiguousarray(np.moveaxis(swept[:, rows], 1, -1))
                y = np.ascontiguousarray(np.moveaxis(self.y[:, :, rows], 2, -1))
                self._chunks.append((rows, last, y))
        yield from self._chunks


@dataclass(frozen=True)
class Lanes:
    """Where the lanes are, and what their gradients are bent by.

    Parameters
    ----------
    blocks : list of arrays
        Core (B, M), then one factor (B, M, p_k) per mode.
    tau, nu : array (M,)
        Thresholds of gradient entries and of scores.
    weight : array (B, M, n), optional
        Weights of the samples.
    """

    blocks: Blocks
    tau: np.ndarray
    nu: np.ndarray
    weight: np.ndarray | None = None

    def full(self) -> np.ndarray:
        """The tensors of all lanes, (B, M, p_1, ..., p_d)."""
        core, *factors = self.blocks
        out = core
        for u in factors:
            out = out[..., None] * u.reshape(*u.shape[:2], *(1,) * (out.ndim - 2), -1)
        return out

    def norms(self) -> np.ndarray:
        """Frobenius norm of each lane's tensor, (B, M)."""
        core, *factors = self.blocks
        return np.abs(core) * math.prod(np.linalg.norm(u, axis=-1) for u in factors)

    def point(self, dataset: int, lane: int) -> Tucker:
        """One lane as a Tucker tensor."""
        core, *factors = (block[dataset, lane] for block in self.blocks)
        return Tucker(core.reshape((1,) * len(factors)), tuple(u[:, None] for u in factors))


def lanes_at(points: list[list[Tucker]], tau: object, nu: object = math.inf) -> Lanes:
    """Lanes from rank-one points, one list per data set."""
    core = np.array([[float(p.core.ravel()[0]) for p in row] for row in points])
    order = points[0][0].order
    factors = [
        np.array([[p.factors[k][:, 0] for p in row] for row in points]) for k in range(order)
    ]
    size = core.shape[1]
    return Lanes(
        [core, *factors],
        np.broadcast_to(np.asarray(tau, dtype=float), (size,)),
        np.broadcast_to(np.asarray(nu, dtype=float), (size,)),
    )


def sweep(X: np.ndarray, factors: Blocks) -> tuple[np.ndarray, Blocks]:
    """All partial projections of (B, p_1, ..., p_d, n) by the lanes' factors, d = 2 or 3.

    Returns the whole projection (B, M, n) and for each mode the partial one (B, M, p_k, n).
    """
    *left, right = factors
    B, n, q = X.shape[0], X.shape[-1], right.shape[-1]
    outer = left[0]
    for u in left[1:]:
        outer = outer[..., None] * u[:, :, None, :]
    outer = outer.reshape(*outer.shape[:2], -1)
    last = (outer @ X.reshape(B, -1, q * n)).reshape(*right.shape, n)
    rest = right.reshape(B, *(1,) * len(left), *right.shape[1:]) @ X  # (B, p_1, ..., M, n)
    if len(left) == 1:
        first = np.moveaxis(rest, 2, 1)
        return np.sum(first * left[0][..., None], axis=2), [first, last]
    u, v = left
    one = (v[:, :, None, None, :] @ rest.transpose(0, 3, 1, 2, 4))[..., 0, :]
    two = (u[:, :, None, None, :] @ rest.transpose(0, 3, 2, 1, 4))[..., 0, :]
    return np.sum(one * u[..., None], axis=2), [one, two, last]


def gradients(stack: Stack, lanes: Lanes) -> Iterator[tuple[slice, Blocks]]:
    """Per-sample partial gradients, chunk by chunk: core (B, M, n), factors (B, M, p_k, n)."""
    _core, *factors = lanes.blocks
    for rows, swept, y in stack.chunks():
        if stack.X is None:
            yield rows, _direct(lanes, *sweep(swept, factors))
        elif len(factors) == swept.ndim - 2:
            yield rows, _scalar(stack, lanes, *sweep(swept, factors), y)
        else:
            yield rows, _vector(lanes, *sweep(swept, factors[:-1]), y)


def _scalar(stack: Stack, lanes: Lanes, xbar: np.ndarray, parts: Blocks, y: np.ndarray) -> Blocks:
    """Models I and III: one response."""
    core = lanes.blocks[0][..., None]
    eta = core * xbar
    mean = 0.5 * (1 + np.tanh(eta / 2)) if stack.logistic else eta
    score = _clip(mean - y, lanes.nu)
    scaled = (core * score)[:, :, None, :]
    return [xbar * score, *(part * scaled for part in parts)]


def _vector(lanes: Lanes, xbar: np.ndarray, parts: Blocks, y: np.ndarray) -> Blocks:
    """Model II: the last factor is that of the responses."""
    core, u = lanes.blocks[0][..., None], lanes.blocks[-1]
    hbar = core * xbar
    score = _clip(hbar[:, :, None, :] * u[..., None] - y, lanes.nu)
    sbar = (u[:, :, None, :] @ score)[:, :, 0, :]
    scaled = (core * sbar)[:, :, None, :]
    return [xbar * sbar, *(part * scaled for part in parts), score * hbar[:, :, None, :]]


def _direct(lanes: Lanes, ybar: np.ndarray, parts: Blocks) -> Blocks:
    """Model IV: projections of ``A - Y_i`` are those of A less those of Y_i."""
    core, *factors = lanes.blocks
    squares = [np.sum(u**2, axis=-1) for u in factors]
    whole = math.prod(squares)
    out = [(core * whole)[..., None] - ybar]
    for u, square, part in zip(factors, squares, parts, strict=True):
        other = (core * whole / square)[..., None] * u
        out.append(core[..., None, None] * (other[..., None] - part))
    return out


def _clip(score: np.ndarray, nu: np.ndarray) -> np.ndarray:
    if not np.isfinite(nu).any():
        return score
    bound = nu.reshape(-1, *(1,) * (score.ndim - 2))
    return np.clip(score, -bound, bound)


def robust_gradient(stack: Stack, lanes: Lanes) -> Blocks:
    """Mean over the samples of the truncated per-sample gradients, block by block."""
    if stack.X is None and np.isfinite(lanes.nu).any():
        return _bent_entries(stack, lanes)
    sums: Blocks = []
    for rows, parts in gradients(stack, lanes):
        bent = [_clip(part, lanes.tau) for part in parts]
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
