"""Nuclear-norm penalised regression, by accelerated proximal gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._array import Array, namespace, to_numpy
from ..problem import PILOT_SIZE, Problem
from ..tucker import Tucker
from .base import tensor_shape, with_linear, zero
from .matrices import Matricisation, singular_value_threshold


def penalised(
    problem: Problem,
    level: float,
    split: Matricisation,
    theta: Tucker,
    *,
    n_iter: int = 60,
    tol: float = 1e-3,
) -> Tucker:
    """``argmin mean ℓ(<A, X_i> + Z_i γ, y_i) + level ‖mat(A)‖_nuc`` over A and γ, near enough.

    Accelerated proximal gradient (Beck and Teboulle, 2009), whose momentum is dropped when it
    points uphill (O'Donoghue and Candès, 2015). The loss is the one whose gradient the problem's
    robustifier returns: with scores truncated at ν, Huber's.

    Parameters
    ----------
    problem : Problem
    level : float
        The penalty λ.
    split : Matricisation
        Which matrix mat(A) is.
    theta : Tucker
        Where to start, as :func:`whole` writes it.
    n_iter : int
        Most passes over the data.
    tol : float
        Stop when A changes relatively by less.
    """
    norm = namespace(theta.core).linalg.vector_norm
    old = point = previous = theta
    slope, momentum, bound = None, 1.0, smoothness(problem, theta)
    for _ in range(n_iter):
        gradient, linear = problem.tensor_gradient(point)
        if slope is not None:  # not every loss has one bound for all points
            moved = max(_distance(point, previous), 1e-300)
            bound = max(bound, float(norm(gradient - slope)) / moved)
        slope, previous = gradient, point
        new = _proximal_step(point, gradient, linear, level=level, split=split, bound=bound)
        uphill = _inner(point.core - new.core, new.core - old.core) > 0
        before = 1.0 if uphill else momentum
        momentum = 1.0 if uphill else (1 + math.hypot(1, 2 * momentum)) / 2
        push = (before - 1) / momentum
        point = new.map(lambda a, b, push=push: a + push * (a - b), old)
        change, old = float(norm(new.core - old.core)), new
        if change <= tol * float(norm(new.core)):
            break
    return old


def _proximal_step(
    point: Tucker,
    gradient: Array,
    linear: Array | None,
    *,
    level: float,
    split: Matricisation,
    bound: float,
) -> Tucker:
    """A gradient step and its threshold; A and γ move at once, so each goes half its way."""
    parts = 1 if linear is None else 2
    matrix = split.of(point.core - gradient / (parts * bound))
    tensor = split.back(singular_value_threshold(matrix, level / (parts * bound)), point.shape)
    new = replace(point, core=tensor)
    if linear is None:
        return new
    return new.with_blocks([*new.blocks[:-1], new.blocks[-1] - linear / parts])


def _inner(one: Array, other: Array) -> float:
    return float(namespace(one).sum(one * other))


def _distance(one: Tucker, other: Tucker) -> float:
    pairs = zip(one.blocks, other.blocks, strict=True)
    return math.sqrt(sum(_inner(a - b, a - b) for a, b in pairs))


def smoothness(problem: Problem, theta: Tucker) -> float:
    """Largest curvature of the mean loss over directions of A, on the pilot's samples.

    The largest weight of a sample times the largest eigenvalue of ``mean x_i x_iᵀ``, by a few power
    iterations from the gradient.
    """
    chunk, design = problem.data.sample(PILOT_SIZE), problem.design
    kernel, scale = problem.kernel, problem.kernel.shrink(chunk)[1]
    view = kernel.inner(theta, theta.core, chunk)  # theta is :func:`whole`: A is its core
    score = kernel.score(view)
    norm = namespace(score).linalg.vector_norm
    weight = float(namespace(score).max(problem.loss.weight(view.eta, view.y)))
    tensor, largest = design.adjoint(score, chunk.X, scale), 0.0
    for _ in range(15):
        tensor = tensor / max(float(norm(tensor)), 1e-300)
        tensor = design.adjoint(design.inner(tensor, chunk.X, scale), chunk.X, scale)
        largest = float(norm(tensor)) / score.shape[0]
    return max(1.1 * weight * largest, 1e-300)  # power iterations come from below


def residuals(problem: Problem, theta: Tucker) -> np.ndarray:
    """Scores of the pilot's samples, shrunk: the residuals, where the loss is one of them.

    For A as :func:`whole` writes it: the projections of :meth:`Problem.pilot` would cost a product
    by each identity matrix.
    """
    view = problem.kernel.inner(theta, theta.core, problem.data.sample(PILOT_SIZE))
    return to_numpy(problem.loss.score(view.eta, view.y))


def whole(problem: Problem) -> Tucker:
    """The zero tensor with itself as the core: a point that any A can be written as."""
    return with_linear(problem, zero(problem, tensor_shape(problem)))
