"""Descent that learns from its last steps what the curvature is, for want of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .._array import Array, namespace
from .._checks import check_number
from ..problem import Gradient, Problem
from ..tucker import Tucker, mode_dot, multi_mode_dot, unfold
from .descent import matrix_solve, pace
from .loop import Solver
from .newton import tangent_norm
from .result import Progress

FARTHEST = 0.3  # relative to A, the longest step that is made up from several
ALIKE = 1e-3  # changes of steps that differ by less, relative to their size, say the same


class Anderson(Solver, name="anderson"):
    """Descent in the gauge where covariates are white, mixed with the last steps (Anderson).

    A plain step is that of Gauss-Newton if covariates had the covariance ``Σ_1 ⊗ ... ⊗ Σ_d`` of
    their modes and nothing were bent: a gradient, divided by matrices of the size of the modes. How
    plain steps change from one point to the next tells how they would go on, and the combination of
    the last of them that leaves least to go is taken instead (as GMRES does of linear equations);
    where more is left to go than before, they are forgotten.
    A pass adds up a gradient and nothing else, for effective dimensions too large for
    :class:`Newton`, or networks too slow for its matrix.

    Parameters
    ----------
    memory : int
        Steps that are kept; 0 takes plain steps only.
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, solver="anderson").fit(data.X, data.y)
    >>> model.result_.converged
    True
    """

    def __init__(self, memory: int = 8, n_iter: int = 300, tol: float = 1e-5) -> None:
        super().__init__(n_iter, tol)
        self.memory = memory

    def check(self) -> None:
        """Raise unless the parameters make sense."""
        super().check()
        check_number("memory", self.memory, integer=True, zero=True)

    def gauge(self, theta: Tucker) -> Tucker:
        """Orthonormal factors, all-orthogonal core."""
        return theta.canonical()

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, progress: Progress
    ) -> Tucker:
        """The plain step, mixed with those that are kept."""
        whiten = mode_whitening(problem, theta)
        direction = whiten(gradient.blocks)
        if not progress.pace:
            progress.pace = pace(problem, theta, whiten, direction, gradient.pseudo)
        plain = direction.map(lambda d: -progress.pace * d)
        kept = [_turned(pair, theta) for pair in progress.memory]
        if kept and tangent_norm(theta, plain) > tangent_norm(theta, kept[-1][1]):
            kept = []  # farther to go than before: what was learned does not hold here
        progress.memory = [*kept, (theta, plain)][max(0, len(kept) + 1 - self.memory) :]
        return mixed(theta, plain, kept, linear_scale(problem))


def mixed(
    theta: Tucker, plain: Tucker, kept: Sequence[tuple[Tucker, Tucker]], scale: float = 1.0
) -> Tucker:
    """The point after the combination of steps that leaves least to go.

    Parameters
    ----------
    theta, plain : Tucker
        A point, and the plain step from it.
    kept : sequence of pairs of Tucker
        Others, in the same gauge.
    scale : float
        What a unit of the vector coefficients counts against one of A.
    """
    new = theta.map(lambda x, f: x + f, plain)
    if not kept:
        return new
    xp, here = namespace(theta.core), _coordinates(theta, plain, scale)
    changes = [here - _coordinates(theta, step, scale) for _, step in kept]
    shares = _shares(xp.stack(changes, axis=1), here)
    for i, (point, step) in enumerate(kept):
        ends = (theta, plain, point, step)  # what is taken off is the change of where steps end
        new = new.map(lambda n, x, f, y, g, s=shares[i]: n - s * (x + f - y - g), *ends)
    move = new.map(lambda n, x: n - x, theta)
    longest = max(FARTHEST * theta.norm(), tangent_norm(theta, plain))
    shrink = min(1.0, longest / max(tangent_norm(theta, move), np.finfo(np.float64).tiny))
    return theta.map(lambda x, d: x + shrink * d, move)


def _shares(changes: Array, here: Array) -> Array:
    """How much of each change, a column, to take off so that least is left of a vector."""
    xp = namespace(here)
    sizes = xp.linalg.vector_norm(changes, axis=0)
    sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    return (xp.linalg.pinv(changes / sizes, rtol=ALIKE) @ here[:, None])[:, 0] / sizes


def _coordinates(theta: Tucker, step: Tucker, scale: float) -> Array:
    """A step in coordinates whose length is that of the change of A."""
    xp = namespace(theta.core)
    moves = [d @ unfold(theta.core, k) for k, d in enumerate(step.factors)]
    linear = [scale * block for block in step.blocks[1 + step.order :]]
    return xp.concat([xp.reshape(part, (-1,)) for part in (step.core, *moves, *linear)])


def _turned(pair: tuple[Tucker, Tucker], theta: Tucker) -> tuple[Tucker, Tucker]:
    """A point and its step with factors turned to those of another: entries then mean the same."""
    rotations = pair[0].turns_to(theta)
    return pair[0].rotate(rotations), pair[1].rotate(rotations)


def linear_scale(problem: Problem) -> float:
    """How much a unit of the vector coefficients moves predictors, over what one of A does."""
    if problem.data.Z is None:
        return 1.0

    def size(matrix: Array) -> float:
        return math.sqrt(float(namespace(matrix).linalg.trace(matrix)) / matrix.shape[0])

    return size(problem.gram) / max(math.prod(map(size, problem.spreads)), 1e-300)


def mode_whitening(problem: Problem, theta: Tucker) -> Callable[[Tucker], Tucker]:
    """Return the map of a gradient to the step that is right for covariates of that spread.

    For ``N_k = U_kᵀ Σ_k U_k`` the step of the core is ``G_0 x_k N_k⁻¹``, and that of a factor
    ``(Σ_k⁻¹ - U_k N_k⁻¹ U_kᵀ) G_k (S_(k) (⊗_{j≠k} N_j) S_(k)ᵀ)⁺``. It is returned as the step of
    the same tensor with ``U_kᵀ dU_k = 0``.
    """
    xp, core = namespace(theta.core), theta.core
    spreads = [*problem.spreads, *[None] * (theta.order - len(problem.spreads))]  # of responses
    pairs = list(zip(theta.factors, spreads, strict=True))
    grams = [u.T @ (u if spread is None else spread @ u) for u, spread in pairs]
    inverses = [xp.linalg.inv(gram) for gram in grams]
    sizes = []
    for k in range(theta.order):
        others = multi_mode_dot(core, [None if j == k else g for j, g in enumerate(grams)])
        sizes.append(xp.linalg.pinv(unfold(others, k) @ unfold(core, k).T, rtol=1e-10))

    def whiten(gradient: Tucker) -> Tucker:
        moved, factors = multi_mode_dot(gradient.core, inverses), []
        for k, (u, g) in enumerate(zip(theta.factors, gradient.factors, strict=True)):
            # Bent gradients of factors and core disagree about steps within the factors' span:
            # the core's is what counts, as everywhere.
            inside = unfold(gradient.core, k) @ unfold(core, k).T
            whole = g + u @ (inside - u.T @ g)
            white = whole if spreads[k] is None else xp.linalg.solve(spreads[k], whole)
            d = (white - u @ (inverses[k] @ inside)) @ sizes[k]
            within = u.T @ d
            moved = moved + mode_dot(core, within, k)
            factors.append(d - u @ within)
        linear = [matrix_solve(problem.gram, block) for block in gradient.blocks[1 + theta.order :]]
        return gradient.with_blocks([moved, *factors, *linear])

    return whiten
