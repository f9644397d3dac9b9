"""Hard thresholding: gradient steps from zero, each cut back to the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import Array, namespace
from ..problem import PILOT_SIZE, Problem
from ..tucker import Tucker, hooi, hosvd, multi_mode_dot
from .base import tame, with_linear, zero

START_SIZE = 500  # samples that residual scale and length of a step are taken from, good to 5%


def iht(
    problem: Problem,
    rank: Sequence[int],
    rng: np.random.Generator | None = None,
    *,
    n_iter: int = 20,
    tol: float = 1e-2,
) -> Tucker:
    """Hard thresholding from zero on shrunk samples and Huber scores.

    Each iteration steps along the gradient, projected on the tangent space at the current tensor,
    with the exact step of the reweighted quadratic, and cuts the result back to the rank.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="iht").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """
    theta = with_linear(problem, zero(problem, rank))
    samples = problem.data.sample(PILOT_SIZE).thin(START_SIZE)
    for t in range(n_iter):
        pilot = problem.pilot(theta, samples)
        tamed = tame(problem, pilot)
        gradient, linear = tamed.tensor_gradient(theta)
        direction = hooi(gradient, rank, n_iter=5).full() if t == 0 else tangent(theta, gradient)
        size = float(namespace(gradient).sum(direction**2))
        curvature = pilot.tensor_curvature(tamed.robust, direction)
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
    """First step of :func:`iht`: the low-rank part of the robust gradient at zero.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="spectral").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """
    return iht(problem, rank, n_iter=1)


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
