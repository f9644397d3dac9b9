"""Many rank-one problems at once, sample by sample: what makes 200 replications affordable.

The experiments run :func:`tauten.robust_gradient_descent` some 10⁵ times on small data. One by one,
most of that time is the overhead of small arrays; here B data sets, and M lanes on each
(thresholds, folds, noises that share the covariates), step together and X is read once for all
lanes. The tests hold every lane against the library's own function.

Samples are the last axis, so that every product is one of matrices with long rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

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
    score = clip_lanes(mean - y, lanes.nu)
    scaled = (core * score)[:, :, None, :]
    return [xbar * score, *(part * scaled for part in parts)]


def _vector(lanes: Lanes, xbar: np.ndarray, parts: Blocks, y: np.ndarray) -> Blocks:
    """Model II: the last factor is that of the responses."""
    core, u = lanes.blocks[0][..., None], lanes.blocks[-1]
    hbar = core * xbar
    score = clip_lanes(hbar[:, :, None, :] * u[..., None] - y, lanes.nu)
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


def clip_lanes(score: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Truncate each lane, along axis 1, at its own threshold."""
    if not np.isfinite(nu).any():
        return score
    bound = nu.reshape(-1, *(1,) * (score.ndim - 2))
    return np.clip(score, -bound, bound)
