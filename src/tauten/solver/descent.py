"""Steps along the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._array import Array, matrix_of, namespace
from .._checks import check_number
from ..problem import Gradient, Problem
from ..tucker import Tucker, unfold
from .loop import Solver
from .result import Progress


class GradientDescent(Solver, name="gd"):
    """Algorithm 1 of the paper, literally: all blocks step from the same iterate.

    ``U_k ← U_k - η G_k - η a U_k (U_kᵀ U_k - b² I)``, ``S ← S - η G_0``.

    Parameters
    ----------
    step_size : float
        η.
    a, b : float
        Weight of the balancing term, and the scale that it pulls the factors to.
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> solver = tt.solver.GradientDescent(step_size=0.05, n_iter=200)
    >>> model = tt.TensorRegressor(rank=1, solver=solver).fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.2
    True
    """

    def __init__(
        self,
        step_size: float = 1e-3,
        a: float = 1.0,
        b: float = 1.0,
        n_iter: int = 300,
        tol: float = 0.0,
    ) -> None:
        super().__init__(n_iter, tol)
        self.step_size = step_size
        self.a = a
        self.b = b

    def check(self) -> None:
        """Raise unless the parameters make sense."""
        super().check()
        check_number("step_size", self.step_size)
        check_number("a", self.a, zero=True)
        check_number("b", self.b)

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, progress: Progress
    ) -> Tucker:
        """One iteration of Algorithm 1."""
        new = list(theta.map(lambda x, g: x - self.step_size * g, gradient.blocks).blocks)
        for k, pull in enumerate(theta.imbalance(self.b), start=1):
            new[k] = new[k] - self.step_size * self.a * pull
        return theta.with_blocks(new)


class ScaledDescent(Solver, name="scaled"):
    """Gradient descent in the whitened gauge: as fast as the covariates' conditioning allows.

    With orthonormal factors, ``S ← S - h G_0`` and
    ``U_k ← U_k - h (I - U_k U_kᵀ) G_k (S_(k) S_(k)ᵀ)⁻¹``, h the inverse of the largest curvature:
    of the loss at any entry for PCA (with all entries observed this is a Gauss-Newton step), by
    power iterations with covariates. :class:`tauten.solver.Anderson` takes far fewer steps.

    Parameters
    ----------
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, solver="scaled").fit(data.X, data.y)
    >>> model.result_.converged
    True
    """

    def __init__(self, n_iter: int = 300, tol: float = 1e-5) -> None:
        super().__init__(n_iter, tol)

    def gauge(self, theta: Tucker) -> Tucker:
        """Orthonormal factors, all-orthogonal core."""
        return theta.canonical()

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, progress: Progress
    ) -> Tucker:
        """One whitened step."""
        precondition = whitening(problem, theta)
        direction = precondition(gradient.blocks)
        h = pace(problem, theta, precondition, direction, gradient.pseudo)
        return theta.map(lambda x, d: x - h * d, direction)


def pace(
    problem: Problem,
    theta: Tucker,
    precondition: Callable[[Tucker], Tucker],
    start: Tucker,
    pseudo: tuple[Array, Array] | None = None,
) -> float:
    """Inverse of the largest curvature, preconditioned; looked for from a direction.

    `pseudo` are pseudo-observations, if known: see :meth:`Problem.curvature_map`.
    """
    if problem.data.X is None:
        level = float(namespace(theta.core).max(problem.entry_curvature(theta)))
    else:
        along = problem.curvature_map(theta, pseudo)
        level = largest_eigenvalue(lambda d: precondition(along(d)), start)
    return 1 / max(level, np.finfo(np.float64).tiny)


def whitening(problem: Problem, theta: Tucker) -> Callable[[Tucker], Tucker]:
    """Return the map of a gradient to the step that would be right for white covariates."""
    whitened = whitener(theta)

    def precondition(gradient: Tucker) -> Tucker:
        blocks = whitened(gradient)
        if problem.data.Z is not None:
            blocks.append(matrix_solve(problem.gram, gradient.blocks[-1]))
        return gradient.with_blocks(blocks)

    return precondition


def whitener(theta: Tucker) -> Callable[[Tucker], list[Array]]:
    """The map of a gradient to G_0 and ``(I - U_k U_kᵀ) G_k (S_(k) S_(k)ᵀ)⁺`` of each factor."""
    xp = namespace(theta.core)
    cores = [unfold(theta.core, k) for k in range(theta.order)]
    inverses = [xp.linalg.pinv(s @ s.T, rtol=1e-10) for s in cores]

    def whitened(gradient: Tucker) -> list[Array]:
        triples = zip(theta.factors, gradient.factors, inverses, strict=True)
        return [gradient.core, *((g - u @ (u.T @ g)) @ inverse for u, g, inverse in triples)]

    return whitened


def matrix_solve(matrix: Array, tensor: Array) -> Array:
    """Pseudo-inverse of a matrix times the first mode of a tensor."""
    xp = namespace(tensor)
    return xp.reshape(xp.linalg.pinv(matrix) @ matrix_of(tensor, 1), tensor.shape)


def largest_eigenvalue(apply: Callable[[Tucker], Tucker], start: Tucker, n_iter: int = 6) -> float:
    """Largest eigenvalue of a linear map on points, by power iterations."""
    vector, level = start, 0.0
    for _ in range(n_iter):
        size = _length(vector)
        if not size > 0:
            return level
        vector = apply(vector.map(lambda x, s=size: x / s))
        level = _length(vector)
    return level


def _length(point: Tucker) -> float:
    xp = namespace(point.core)
    return math.sqrt(sum(float(xp.sum(block**2)) for block in point.blocks))
