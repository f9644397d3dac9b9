"""Hard thresholding: gradient steps from zero, each cut back to the ranks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._array import Array, namespace
from .._walks import side_by_side
from ..problem import PILOT_SIZE, Problem, block_gradients, tensor_gradients
from ..solver.descent import whitener
from ..tucker import Tucker, hooi, hosvd, multi_mode_dot
from .base import tame, with_linear, zero

Sight = tuple[Problem, Tucker, int]  # a problem as a start sees it, from where, in which step
# Rounds of alternating least squares that a tensor is cut to its ranks in, and how much more of it
# the last one must have found, relatively, for another.
CUTS, WORTH = 5, 1e-3
START_SIZE = 250  # samples that residual scale and length of a step are taken from, good to 7%


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
    return ihts([problem], [rank], n_iter=n_iter, tol=tol)[0]


def ihts(
    problems: Sequence[Problem],
    ranks: Sequence[Sequence[int]],
    *,
    n_iter: int = 20,
    tol: float = 1e-2,
    thetas: Sequence[Tucker] | None = None,
    whole: bool = False,
) -> list[Tucker]:
    """:func:`iht` of problems on the same samples, side by side: a step of all is one pass.

    From zero, or from given points with orthonormal factors. With `whole`, steps are along the
    whole gradient: see :func:`_walk`.
    """
    begun: Sequence[Tucker | None] = thetas or [None] * len(ranks)
    each = zip(problems, ranks, begun, strict=True)
    walks = [_walk(*one, n_iter=n_iter, tol=tol, whole=whole) for one in each]

    def answer(asked: dict[int, Sight]) -> Iterator[tuple[int, tuple[Any, Array | None]]]:
        tamed, thetas, steps = zip(*asked.values(), strict=True)
        if steps[0] > 0:
            gradients = tensor_gradients if whole else block_gradients
            return zip(asked, gradients(tamed, thetas), strict=True)
        ones = {id(problem): i for i, problem in enumerate(problems)}  # zero has no rank
        at = [[column[i] for i in ones.values()] for column in (tamed, thetas)]
        found = dict(zip(ones, tensor_gradients(*at), strict=True))
        return ((i, found[id(problems[i])]) for i in asked)

    return side_by_side(walks, answer)


def _walk(
    problem: Problem,
    rank: Sequence[int],
    theta: Tucker | None,
    *,
    n_iter: int,
    tol: float,
    whole: bool,
) -> Generator[Sight, tuple[Any, Array | None], Tucker]:
    """Yields points whose gradient it needs: at zero of the full tensor, then of the blocks.

    With `whole`, of the full tensor always, and steps are along all of it: a component that the
    first step took for noise is found in a few more, where tangent steps would creep past it.
    """
    near = partial(hooi, n_iter=CUTS, tol=WORTH)
    cut, led = (near, hosvd) if whole else (hosvd, near)  # with `whole`, a lead tells lengths alone
    first = 0 if theta is None else 1
    theta = with_linear(problem, zero(problem, rank)) if theta is None else theta
    samples = problem.data.sample(PILOT_SIZE).thin(START_SIZE)
    for t in range(first, first + n_iter):
        pilot = problem.pilot(theta, samples)
        tamed = tame(problem, pilot)
        gradient, linear = yield tamed, theta, t
        # No direction is tangent to zero: there it is the whole gradient.
        tangential = t > 0 and not whole
        lead = tangent(theta, gradient) if tangential else led(gradient, rank).full()
        size = float(namespace(lead).sum(lead**2))
        curvature = pilot.tensor_curvature(tamed.robust, lead)
        if not curvature > 0:
            break
        direction = gradient if whole else lead
        point = cut(theta.full() - size / curvature * direction, rank)
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


def tangent(theta: Tucker, gradient: Tucker) -> Array:
    """Projection of the full tensor's gradient on the tangent space of the Tucker manifold.

    ``P(G) = G x_j U_jU_jᵀ + Σ_k (I - U_kU_kᵀ) G_k (S_(k)S_(k)ᵀ)⁺ S_(k) x_{j≠k} U_j``, from the
    gradients ``G x_j U_jᵀ`` of the core and G_k of the factors, which need to be orthonormal: the
    gradient G itself is never formed.
    """
    core, *moves = whitener(theta)(gradient)
    total = multi_mode_dot(core, theta.factors)
    for k, moved in enumerate(moves):
        factors = [moved if j == k else u for j, u in enumerate(theta.factors)]
        total = total + multi_mode_dot(theta.core, factors)
    return total
