"""The gradients and Algorithm 1 from their definitions, slowly: what the library is held against.

Nothing here comes from the library. Each sample's whole gradient tensor is formed and projected
with explicit Kronecker products, and each sample is robustified by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax


@dataclass(frozen=True)
class Loss:
    """Value, first and second derivative, entry by entry."""

    value: Callable[..., np.ndarray]
    score: Callable[..., np.ndarray]
    curvature: Callable[..., np.ndarray]
    residual: bool = False

    bound: Callable[..., np.ndarray] | None = None

    def weight(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Curvature of a quadratic above the loss; for one of the residual, score over residual."""
        if self.bound is not None:
            return self.bound(eta, y)
        curvature = self.curvature(eta, y)
        if not self.residual:
            return curvature
        with np.errstate(invalid="ignore"):
            return np.where(eta == y, curvature, self.score(eta, y) / (eta - y))


def huber(nu: float) -> Loss:
    return Loss(
        lambda eta, y: np.where(
            abs(eta - y) <= nu, (eta - y) ** 2 / 2, nu * abs(eta - y) - nu**2 / 2
        ),
        lambda eta, y: np.where(abs(eta - y) <= nu, eta - y, nu * np.sign(eta - y)),
        lambda eta, y: np.where(abs(eta - y) <= nu, 1.0, 0.0),
        residual=True,
    )


LOSSES = {
    "squared": Loss(
        lambda eta, y: (y - eta) ** 2 / 2,
        lambda eta, y: -(y - eta),
        lambda eta, y: np.ones(y.shape),
        residual=True,
    ),
    "huber": huber(1.345),
    "logistic": Loss(
        lambda eta, y: np.logaddexp(0, eta) - y * eta,
        lambda eta, y: expit(eta) - y,
        lambda eta, y: expit(eta) * expit(-eta),
        bound=lambda eta, y: (
            abs(1 - y - expit(eta)) * expit(eta) * expit(-eta)
            + abs(y - expit(eta)) * np.tanh(eta / 2) / (2 * eta)
        ),
    ),
    "multinomial": Loss(
        lambda eta, y: -y * log_softmax(eta, axis=-1),
        lambda eta, y: softmax(eta, axis=-1) - y,
        lambda eta, y: softmax(eta, axis=-1) - softmax(eta, axis=-1) ** 2,
        bound=lambda eta, y: softmax(eta, axis=-1),
    ),
    "poisson": Loss(
        lambda eta, y: np.exp(eta) - y * eta,
        lambda eta, y: np.exp(eta) - y,
        lambda eta, y: np.exp(eta),
    ),
    "gamma": Loss(
        lambda eta, y: y / np.exp(eta) + eta,
        lambda eta, y: 1 - y / np.exp(eta),
        lambda eta, y: y / np.exp(eta),
    ),
}


@dataclass(frozen=True)
class Steps:
    """What a robustifier does to one sample: its covariate, its score, each block's gradient."""

    shrink: Callable[[np.ndarray], float] = lambda x: 1.0
    score: Callable[[np.ndarray], np.ndarray] = lambda s: s
    sample: Callable[[np.ndarray, int], np.ndarray] = lambda g, k: g
    reduce: Callable[[Sequence[np.ndarray]], np.ndarray] = lambda means: means[0]
    n_blocks: int = 1


PLAIN = Steps()


def truncation(x: np.ndarray, tau: Any) -> np.ndarray:
    return np.sign(x) * np.minimum(np.abs(x), tau)


def of_block(tau: Any, k: int) -> Any:
    return tau[k] if isinstance(tau, list) else tau


def truncate(tau: Any) -> Steps:
    return Steps(sample=lambda g, k: truncation(g, of_block(tau, k)))


def residual_truncation(nu: float) -> Steps:
    return Steps(score=lambda s: truncation(s, nu))


def shrinkage(omega: float) -> Callable[[np.ndarray], float]:
    def factor(x: np.ndarray) -> float:
        norm = np.sqrt(np.sum(x**2))
        return omega / norm if norm > omega else 1.0

    return factor


def normclip(tau: Any) -> Steps:
    def sample(g: np.ndarray, k: int) -> np.ndarray:
        norm = np.sqrt(np.sum(g**2))
        return g * of_block(tau, k) / norm if norm > of_block(tau, k) else g

    return Steps(sample=sample)


def catoni(tau: Any) -> Steps:
    def sample(g: np.ndarray, k: int) -> np.ndarray:
        scale = np.broadcast_to(of_block(tau, k), g.shape)
        out = np.empty_like(g)
        for i in np.ndindex(g.shape):
            if np.isinf(scale[i]):  # the limit
                out[i] = g[i]
                continue
            t = g[i] / scale[i]
            inside = abs(t) <= np.sqrt(2)
            out[i] = scale[i] * (t - t**3 / 6 if inside else np.sign(t) * 2 * np.sqrt(2) / 3)
        return out

    return Steps(sample=sample)


def median_of_means(n_blocks: int) -> Steps:
    return Steps(reduce=lambda means: np.median(means, axis=0), n_blocks=n_blocks)


def hodges_lehmann(n_blocks: int) -> Steps:
    def reduce(means: Sequence[np.ndarray]) -> np.ndarray:
        pairs = [(a + b) / 2 for a, b in combinations_with_replacement(means, 2)]
        return np.median(pairs, axis=0)

    return Steps(reduce=reduce, n_blocks=n_blocks)


def adaptive(omega: float, nu: float, tau: Any) -> Steps:
    return Steps(shrinkage(omega), residual_truncation(nu).score, truncate(tau).sample)


def unfold(tensor: np.ndarray, k: int) -> np.ndarray:
    """Mode-k matricisation, first index fastest."""
    return np.reshape(np.moveaxis(tensor, k, 0), (tensor.shape[k], -1), order="F")


def kronecker(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Kronecker product over decreasing j."""
    out = np.ones((1, 1))
    for matrix in reversed(matrices):
        out = np.kron(out, matrix)
    return out


def full(core: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """The whole tensor, by its first-index-fastest vectorisation."""
    vector = kronecker(factors) @ core.ravel(order="F")
    return np.reshape(vector, [len(u) for u in factors], order="F")


@dataclass(frozen=True)
class Sample:
    """One sample at a point: its linear predictor, loss and gradients, raw and bent."""

    eta: np.ndarray
    value: float
    score: np.ndarray
    tensor: np.ndarray
    raw: list[np.ndarray]
    bent: list[np.ndarray]


@dataclass(frozen=True)
class Gradient:
    """The robust gradient, mean loss and share of changed entries per block; and the samples."""

    blocks: list[np.ndarray]
    value: float
    truncated: list[float]
    samples: list[Sample]


@dataclass(frozen=True)
class Point:
    """A point (S, U_1, ..., U_d[, linear]) with its whole tensor and its Kronecker products."""

    blocks: Sequence[np.ndarray]

    def __post_init__(self) -> None:
        core, order = self.blocks[0], self.blocks[0].ndim
        factors = self.blocks[1 : 1 + order]
        skipped = [[u for j, u in enumerate(factors) if j != k] for k in range(order)]
        object.__setattr__(self, "core", core)
        object.__setattr__(self, "tensor", full(core, factors))
        object.__setattr__(self, "all", kronecker(factors))
        object.__setattr__(self, "all_but", [kronecker(others) for others in skipped])

    def partial_gradients(self, tensor: np.ndarray) -> list[np.ndarray]:
        """Gradients of S and of every U_k, given the gradient of the whole tensor."""
        vector = self.all.T @ tensor.ravel(order="F")
        return [
            np.reshape(vector, self.core.shape, order="F"),
            *(
                unfold(tensor, k) @ others @ unfold(self.core, k).T
                for k, others in enumerate(self.all_but)
            ),
        ]


def sample_at(
    point: Point,
    sample: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    loss: Loss,
    steps: Steps,
) -> Sample:
    x, y, z = sample
    factor, share = steps.shrink(x), 1.0
    if loss.residual:
        x, y = x * factor, y * factor
        z = None if z is None else z * factor
    else:
        share = factor**2
    eta = np.asarray(np.tensordot(x, point.tensor, axes=x.ndim))
    if z is not None:
        eta = eta + np.tensordot(z, point.blocks[-1], axes=1)
    score = steps.score(np.where(np.isnan(y), 0.0, share * loss.score(eta, y)))
    tensor = np.multiply.outer(x, score)
    raw = point.partial_gradients(tensor)
    if z is not None:
        raw.append(np.multiply.outer(z, score))
    bent = [steps.sample(g, k) for k, g in enumerate(raw)]
    value = share * float(np.nansum(loss.value(eta, y)))
    return Sample(eta, value, score, tensor, raw, bent)


def gradient(
    blocks: Sequence[np.ndarray],
    X: np.ndarray | None,
    y: np.ndarray,
    loss: Loss,
    steps: Steps = PLAIN,
    *,
    Z: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    center: np.ndarray | float = 0.0,
) -> Gradient:
    """Robust gradient at the point (S, U_1, ..., U_d[, linear]); X=None is PCA."""
    n, point = len(y), Point(blocks)
    weight = np.ones(n) if weight is None else weight
    covariates = np.ones(n) if X is None else X - center
    if X is None:
        steps = Steps(lambda x: 1.0, steps.score, steps.sample, steps.reduce, steps.n_blocks)
    samples = [
        sample_at(
            point, (np.asarray(covariates[i]), y[i], None if Z is None else Z[i]), loss, steps
        )
        for i in range(n)
    ]
    means = []
    for b in range(steps.n_blocks):
        members = range(b, n, steps.n_blocks)
        total = sum(weight[i] for i in members)
        means.append(
            [
                sum(weight[i] * samples[i].bent[k] for i in members) / total
                for k in range(len(blocks))
            ]
        )
    return Gradient(
        [steps.reduce([mean[k] for mean in means]) for k in range(len(blocks))],
        sum(w * s.value for w, s in zip(weight, samples, strict=True)) / sum(weight),
        [float(np.mean([s.bent[k] != s.raw[k] for s in samples])) for k in range(len(blocks))],
        samples,
    )


def influence(robust: Gradient, plain: Gradient) -> np.ndarray:
    """How much shorter each sample's gradient became: from zero, not at all, to one."""
    shares = []
    for bent, raw in zip(robust.samples, plain.samples, strict=True):
        kept, whole = (
            np.sqrt(sum(np.sum(g**2) for g in blocks)) for blocks in (bent.bent, raw.raw)
        )
        shares.append(1 - min(kept / whole, 1.0) if whole else 0.0)
    return np.array(shares)


def horizontal_basis(blocks: Sequence[np.ndarray], order: int) -> np.ndarray:
    """Orthonormal basis of the steps with U_kᵀ dU_k = 0; core and linear coefficients are free."""
    columns = []
    for k, block in enumerate(blocks):
        if 1 <= k <= order:
            outside = np.linalg.svd(block)[0][:, block.shape[1] :]
            moves = np.kron(outside, np.eye(block.shape[1]))
        else:
            moves = np.eye(block.size)
        above = sum(b.size for b in blocks[:k])
        below = sum(b.size for b in blocks[k + 1 :])
        columns.append(np.pad(moves, ((above, below), (0, 0))))
    return np.hstack(columns)


def algorithm1(
    blocks: Sequence[np.ndarray],
    X: np.ndarray | None,
    y: np.ndarray,
    loss: Loss,
    *,
    tau: Any,
    step: float,
    a: float,
    b: float,
    n_iter: int,
) -> tuple[list[list[np.ndarray]], list[Gradient]]:
    """Algorithm 1 as printed. Return the iterates, the start included, and their gradients."""
    iterates, gradients = [list(blocks)], []
    for _ in range(n_iter):
        point = iterates[-1]
        G = gradient(point, X, y, loss, truncate(tau))
        new = [point[0] - step * G.blocks[0]]
        for U, g in zip(point[1:], G.blocks[1:], strict=True):
            new.append(U - step * g - step * a * U @ (U.T @ U - b**2 * np.eye(U.shape[1])))
        iterates.append(new)
        gradients.append(G)
    return iterates, gradients


def tensor_jacobian(blocks, order):
    """Derivative of vec(A) with respect to all blocks: A is linear in each."""
    shape, columns = tuple(len(u) for u in blocks[1 : 1 + order]), []
    for k, block in enumerate(blocks):
        for index in np.ndindex(block.shape):
            unit = np.zeros(block.shape)
            unit[index] = 1.0
            parts = [unit if j == k else b for j, b in enumerate(blocks)]
            moved = full(parts[0], parts[1 : 1 + order]) if k <= order else 0.0
            columns.append(np.broadcast_to(moved, shape).ravel())
    return np.stack(columns, axis=1)


def tangent(blocks, order, tensor):
    """A tensor projected on the span of the derivatives of A by each entry of each block."""
    u, s, _ = np.linalg.svd(tensor_jacobian(blocks, order), full_matrices=False)
    u = u[:, s > 1e-9 * s[0]]
    return (u @ (u.T @ tensor.ravel())).reshape(tensor.shape)
