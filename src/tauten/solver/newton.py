"""Newton's steps."""

from __future__ import annotations

import math

import numpy as np

from .._array import Array, namespace, ratio, to_numpy
from ..data.threads import BLAS
from ..manifold import manifold_curvature
from ..problem import Asked, Gradient, Problem, tangent_part, tangent_system
from ..tucker import Tucker, unfold
from .loop import Solver
from .result import Kept, Progress

BISECTIONS = 2  # the trusted share of a Hessian is found to a quarter: closer, fits take more steps
# Steps tell how far the end of the way is if they shrink to a quarter or less, from this on.
FAST, NEARBY = 0.25, 0.1
# Steps, relative to A: one after which a tensor is no longer that of the point, and one after which
# the next is too long to be trusted with it.
STALE, DISTANT = 0.02, 0.5
TRUSTED = 0.1  # least share of the Gauss-Newton matrix that a Hessian must have in any direction


class Newton(Solver, name="newton"):
    """Gauss-Newton (iteratively reweighted least squares) steps: a handful of iterations.

    Solves ``Bᵀ M B x = -Bᵀ g`` for a step ``B x``, with g the robust gradient, M its Gauss-Newton
    matrix and B a basis of the steps that move A: those with ``U_kᵀ dU_k = 0``, the others only
    rotate factors.
    For effective dimensions up to a few thousand, as M is factored.

    Parameters
    ----------
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, solver=tt.solver.Newton(tol=1e-8)).fit(data.X, data.y)
    >>> model.result_.converged
    True
    """

    curvature = True
    stretches = True

    def gauge(self, theta: Tucker) -> Tucker:
        """Orthonormal factors, all-orthogonal core."""
        return theta.canonical()

    def needs(self, progress: Progress) -> Asked:
        """A matrix, where none is kept; and the tensor, where it will be of use.

        Without one there is no use for a correction either, but to tell what bends take of a matrix
        that is to be kept. The tensor is of no use after a step so long that the next will hardly
        be trusted with it. Where it is kept, the last one serves while steps are short, and shrink
        as Newton's do; such runs begin without, as the first step is a long one.
        """
        if progress.kept is not None:
            return Asked()
        size, begun = progress.trail[-1].norm(), progress.moved < math.inf
        last = progress.moved if begun else progress.before  # that of the run before
        if progress.tensor is not None:
            slow = begun and last > FAST * progress.before
            return Asked(curvature=True, correction=True, tensor=slow or last > STALE * size)
        near = last <= DISTANT * size or (last == math.inf and not progress.keeps)
        tensor = near and progress.reach > 0
        return Asked(curvature=True, correction=tensor or progress.thrifty, tensor=tensor)

    def remaining(self, progress: Progress) -> float:
        """The rest of steps that shrink by the ratio of the last two; Newton's shrink faster yet.

        The last step, where they are long or shrink slowly, and in thrifty runs, whose steps are
        not Newton's.
        """
        change, size = progress.history[-1].change, progress.trail[-1].norm()
        before = progress.before / size if size else math.inf
        if before < math.inf and len(progress.history) > 1:  # the intercept may settle later than A
            before = min(before, progress.history[-2].change)
        if progress.thrifty or not 0 < before <= NEARBY or change > FAST * before:
            return change
        return change**2 / (before - change)

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, progress: Progress
    ) -> Tucker:
        """One Newton step where it can be trusted, else one of Gauss-Newton.

        No longer than A or the core's own part of it.
        """
        xp = namespace(theta.core)
        with BLAS.all_for(theta.d_eff**3):
            direction = self._direction(theta, gradient, progress)
        length = tangent_norm(theta, direction)
        longest = max(theta.norm(), float(xp.linalg.vector_norm(direction.core)))
        shrink = longest / max(longest, length, 1e-300)
        new = theta.map(lambda x, d: x + shrink * d, direction)
        # Where data say little of a row of a factor, a step of that length multiplies A.
        while longest < farthest(theta, new) and longest < new.distance(theta) < math.inf:
            new = theta.map(lambda x, n: (x + n) / 2, new)
        return new

    def _direction(self, theta: Tucker, gradient: Gradient, progress: Progress) -> Tucker:
        """By a new matrix, or by one that is kept; then no longer than such steps are trusted."""
        if progress.kept is None:
            tensor = progress.tensor if gradient.tensor is None else gradient.tensor
            progress.tensor = tensor if progress.keeps else None
            direction, system = _direction(theta, gradient, tensor, progress.reach)
            if progress.thrifty:
                lost = _lost(gradient.curvature, gradient.correction)
                progress.kept = Kept(theta, system, lost)
            return direction
        direction = _kept_direction(theta, gradient.blocks, progress.kept)
        shrink = progress.reach * theta.norm() / max(tangent_norm(theta, direction), 1e-300)
        return direction.map(lambda d: shrink * d) if shrink < 1 else direction


def _lost(curvature: Array, correction: Array) -> float:
    """What bends take of the curvature of an entry, on average."""
    xp = namespace(curvature)
    whole, steep = (xp.linalg.diagonal(m) for m in (curvature, curvature + correction))
    return 1 - float(xp.mean(ratio(steep, whole)))


def _kept_direction(theta: Tucker, gradient: Tucker, kept: Kept) -> Tucker:
    """A step by the system of an old point: entries mean the same once factors are turned."""
    turns = kept.point.turns_to(theta)
    there = _solved(kept.point, kept.system, gradient.rotate([q.T for q in turns]))
    step = theta.horizontal(there.rotate(turns).flat()[:, None])
    return theta.with_blocks(theta.split(step[:, 0]))


def _solved(theta: Tucker, system: Array, gradient: Tucker) -> Tucker:
    """The step that a system makes of a gradient."""
    right = -theta.tangent.inward(gradient.flat()[:, None])
    step = theta.tangent.outward(namespace(system).linalg.solve(system, right))
    return theta.with_blocks(theta.split(step[:, 0]))


def _direction(
    theta: Tucker, gradient: Gradient, tensor: Array | None, reach: float
) -> tuple[Tucker, Array]:
    """Newton's step with as much of the Hessian's rest as can be trusted, and its system.

    The rest is what the Gauss-Newton matrix lacks: slopes of bent scores below their weights, and
    the curvature of the set of low-rank tensors. A share of it is trusted if it leaves a tenth of
    the Gauss-Newton matrix in every direction, and a step within `reach` of A; the largest such is
    found by bisection. Without a `tensor`, the gradient with respect to A here or not far from
    here, it is Gauss-Newton's.
    """

    def solved(system: Array) -> tuple[Tucker, Array]:
        return _solved(theta, system, gradient.blocks), system

    safe = tangent_system(theta, gradient.curvature)
    if tensor is None or not reach > 0:
        return solved(safe)
    rest = gradient.correction + manifold_curvature(theta, tensor)
    rest = tangent_part(theta, rest)

    safe_sum, rest_sum = (to_numpy(m + m.T) for m in (safe, rest))  # what their forms depend on

    def trusted(share: float) -> tuple[Tucker, Array] | None:
        if not _positive((1 - TRUSTED) * safe_sum + share * rest_sum):
            return None
        found = solved(safe + share * rest)
        return found if tangent_norm(theta, found[0]) <= reach * theta.norm() else None

    if (whole := trusted(1.0)) is not None:
        return whole
    best, low, high = None, 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (found := trusted(middle)) is None:
            high = middle
        else:
            best, low = found, middle
    return solved(safe) if best is None else best


def _positive(matrix: np.ndarray) -> bool:
    """Whether a symmetric matrix is positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def farthest(old: Tucker, new: Tucker) -> float:
    """A bound of the distance of two points, much cheaper than the distance: nan if not finite.

    A is a product of blocks: what moves them by ``d`` moves it by less than
    ``Π (‖x‖ + ‖d‖) - Π ‖x‖``.
    """
    norm, order = namespace(old.core).linalg.vector_norm, 1 + old.order
    pairs = zip(old.blocks[:order], new.blocks[:order], strict=True)
    sizes, moves = zip(*((float(norm(x)), float(norm(n - x))) for x, n in pairs), strict=True)
    return math.prod(map(sum, zip(sizes, moves, strict=True))) - math.prod(sizes)


def tangent_norm(theta: Tucker, direction: Tucker) -> float:
    """Norm of the change of A that a horizontal direction makes, to first order."""
    xp = namespace(theta.core)
    squares = float(xp.sum(direction.core**2))
    for k, d in enumerate(direction.factors):
        squares += float(xp.sum((d @ unfold(theta.core, k)) ** 2))
    return math.sqrt(squares)
