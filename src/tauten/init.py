"""Starting points. Each is a function of a problem and a rank that returns a point.

==============  ===========================================================================
name            what it does
==============  ===========================================================================
``spectral``    low-rank part of the robust gradient at zero (truncated cross-moment)
``iht``         that, then robust hard thresholding until it settles: the default
``random``      random orthonormal factors and core, with the norm of the default start
``decompose``   PCA: low-rank part of the winsorised data: the default there
==============  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._array import Array, like, namespace, quiet, to_numpy
from ._checks import check_theta
from .designs import Covariate, Direct
from .problem import Problem
from .robust import Adaptive
from .robust.huber import score_scale
from .robust.thresholds import MAD
from .tucker import Affine, Tucker, hooi, hosvd, multi_mode_dot

Start = Callable[[Problem, Sequence[int], np.random.Generator], Tucker]


def start(init: Any, problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Return a starting point by name, or check and complete the given one.

    Parameters
    ----------
    init : str or Tucker
        A name above, ``"auto"``, or a point.
    problem : Problem
    rank : sequence of int
    rng : Generator
        Used by ``"random"`` only.
    """
    if isinstance(init, Tucker):
        check_theta(init, tensor_shape(problem), "init")
        return with_linear(problem, init.map(lambda block: like(block, problem.data.y)))
    starts = STARTS[type(problem.design)]
    if isinstance(init, str) and init == "auto":
        init = problem.design.init
    if not isinstance(init, str) or init not in starts:
        raise ValueError(
            f"init must be a Tucker point, 'auto' or one of {', '.join(sorted(starts))} for this "
            f"model; got {init!r}"
        )
    return starts[init](problem, rank, rng)


def iht(
    problem: Problem,
    rank: Sequence[int],
    rng: np.random.Generator | None = None,
    *,
    n_iter: int = 30,
    tol: float = 1e-3,
) -> Tucker:
    """Hard thresholding from zero on shrunk samples and Huber scores.

    Each iteration steps along the gradient, projected on the tangent space at the current tensor,
    with the exact step of the reweighted quadratic, and cuts the result back to the rank.
    """
    theta = with_linear(problem, _zero(problem, rank))
    omega = float(np.median(problem.pilot(theta).norms())) or np.inf
    for t in range(n_iter):
        nu = 1.345 * score_scale(problem.pilot(theta)) if problem.loss.residual else np.inf
        problem = replace(problem, robust=Adaptive(omega, nu, np.inf).calibrate())
        gradient, linear = problem.tensor_gradient(theta)
        direction = hooi(gradient, rank, n_iter=5).full() if t == 0 else tangent(theta, gradient)
        size = float(namespace(gradient).sum(direction**2))
        curvature = problem.tensor_curvature(theta, direction)
        if not curvature > 0:
            break
        point = hosvd(theta.full() - size / curvature * direction, rank)
        change = point.distance(theta) / max(point.norm(), 1e-300)
        theta = replace(theta, core=point.core, factors=point.factors)
        if linear is not None:
            theta = theta.with_blocks([*theta.blocks[:-1], theta.blocks[-1] - linear])
        if change < tol:
            break
    return theta


def spectral(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """First step of :func:`iht`: the low-rank part of the robust gradient at zero."""
    return iht(problem, rank, n_iter=1)


def random(problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Random orthonormal factors and a random core, of the norm of the model's default start."""
    scale = STARTS[type(problem.design)][problem.design.init](problem, rank, rng)
    shapes = zip(scale.shape, scale.rank, strict=True)
    factors = [np.linalg.qr(rng.standard_normal((p, r)))[0] for p, r in shapes]
    core = rng.standard_normal(scale.rank)
    core *= scale.norm() / np.linalg.norm(core)
    reference = scale.core
    return replace(
        scale, core=like(core, reference), factors=tuple(like(u, reference) for u in factors)
    )


def decompose(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """Low-rank part (HOOI) of the data of PCA, robustly averaged over the replicates.

    With three replicates or more the average is the entrywise median. With fewer, entries are
    winsorised at one robust standard deviation and divided by the share of entries that this left
    alone (and that are observed), which undoes the shrinkage to first order.
    """
    Y = to_numpy(problem.data.y)
    observed = np.isfinite(Y)
    if Y.shape[0] >= 3:
        seen = observed.any(axis=0)
        average = np.where(seen, np.nanmedian(np.where(seen, Y, 0.0), axis=0), 0.0)
        return hooi(like(average / max(seen.mean(), 1e-300), problem.data.y), rank)
    scale = MAD * np.nanmedian(np.abs(Y)) or np.inf
    kept = np.mean(observed & (np.abs(np.where(observed, Y, 0.0)) <= scale))
    winsorised = np.where(observed, np.clip(np.where(observed, Y, 0.0), -scale, scale), 0.0)
    return hooi(like(winsorised.mean(axis=0) / max(kept, 1e-300), problem.data.y), rank)


STARTS: dict[type, dict[str, Start]] = {
    Covariate: {"iht": iht, "spectral": spectral, "random": random},
    Direct: {"decompose": decompose, "random": random},
}


def tangent(theta: Tucker, tensor: Array) -> Array:
    """Project a tensor on the tangent space of the Tucker manifold at a point.

    ``P(G) = G x_j U_jU_jᵀ + Σ_k (G x_{j≠k} U_jᵀ S_(k)⁺ S_(k)) x_k (I - U_kU_kᵀ) ...``, for
    orthonormal factors.
    """
    xp = namespace(tensor)
    point = theta.orthonormal()
    down = [u.T for u in point.factors]
    total = multi_mode_dot(multi_mode_dot(tensor, down), point.factors)
    for k, u in enumerate(point.factors):
        others = [None if j == k else m for j, m in enumerate(down)]
        partial = multi_mode_dot(tensor, others)
        core = xp.reshape(xp.moveaxis(point.core, k, 0), (point.rank[k], -1))
        wide = xp.reshape(xp.moveaxis(partial, k, 0), (u.shape[0], -1))
        moved = (wide - u @ (u.T @ wide)) @ (xp.linalg.pinv(core) @ core)
        shape = (u.shape[0], *(r for j, r in enumerate(point.rank) if j != k))
        back = xp.moveaxis(xp.reshape(moved, shape), 0, k)
        ups = [None if j == k else m for j, m in enumerate(point.factors)]
        total = total + multi_mode_dot(back, ups)
    return total


def tensor_shape(problem: Problem) -> tuple[int, ...]:
    """Shape of the coefficient tensor A of a problem."""
    X, y = problem.data.X, problem.data.y
    return tuple(y.shape[1:]) if X is None else (*X.shape[1:], *y.shape[1:])


def with_linear(problem: Problem, theta: Tucker) -> Tucker:
    """Add the vector coefficients a problem needs: the first, the intercept, at y's location."""
    Z, y = problem.data.Z, problem.data.y
    if Z is None or isinstance(theta, Affine):
        return theta
    responses = to_numpy(problem.data.sample(2000).y)
    location = np.median(responses, axis=0) if problem.loss.residual else responses.mean(axis=0)
    linear = np.zeros((Z.shape[1], *y.shape[1:]))
    if bool(namespace(Z).all(Z[:, 0] == 1)):
        # The link of a mean at the edge of its domain (a class or a count that these responses
        # lack) is infinite; log 2n stands for a share of less than one in n.
        far = np.log(2 * len(responses))
        with quiet():
            link = to_numpy(problem.loss.link(like(location, y)))
        linear[0] = np.nan_to_num(link, nan=0.0, posinf=far, neginf=-far)
    return Affine(theta.core, theta.factors, like(linear, y))


def _zero(problem: Problem, rank: Sequence[int]) -> Tucker:
    y = problem.data.y
    shape = tensor_shape(problem)
    factors = [like(np.eye(p, r), y) for p, r in zip(shape, rank, strict=True)]
    return Tucker(like(np.zeros(tuple(rank)), y), tuple(factors))
