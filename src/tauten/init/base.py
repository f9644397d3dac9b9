"""What the starting points share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .._array import namespace, quiet, to_numpy
from ..problem import PILOT_SIZE, PilotFit, Problem
from ..robust import Adaptive, Huber
from ..robust.huber import score_scale
from ..tucker import Affine, Tucker, degrees_of_freedom

Start = Callable[[Problem, Sequence[int], np.random.Generator], Tucker]


def tensor_shape(problem: Problem) -> tuple[int, ...]:
    """Shape of the coefficient tensor A of a problem."""
    X, y = problem.data.X, problem.data.y
    return tuple(y.shape[1:]) if X is None else (*X.shape[1:], *y.shape[1:])


def leaves_free(problem: Problem, rank: Sequence[int]) -> bool:
    """Whether every coefficient tensor of a problem has that rank, or a smaller one."""
    shape = tensor_shape(problem)
    return degrees_of_freedom(shape, rank) == math.prod(shape)


def responses_per_parameter(problem: Problem, rank: Sequence[int]) -> float:
    """How many responses there are to each degree of freedom of A."""
    free = degrees_of_freedom(tensor_shape(problem), rank)
    return math.prod(problem.data.y.shape) / free


def tame(
    problem: Problem, pilot: PilotFit, *, shrink: bool = True, seen: PilotFit | None = None
) -> Problem:
    """The problem as a start sees it: residuals truncated at 1.345 robust standard deviations.

    With `shrink`, covariates are shrunk to their median norm as well. The residuals are those of
    the pilot, or of another that has `seen` them.
    """
    omega = float(np.median(pilot.norms())) or np.inf if shrink else np.inf
    nu = Huber.factor * score_scale(seen or pilot) if problem.loss.residual else np.inf
    return replace(problem, robust=Adaptive(omega, nu, np.inf).calibrate())


def with_linear(problem: Problem, theta: Tucker) -> Tucker:
    """Add the vector coefficients a problem needs: the first, the intercept, at y's location."""
    data = problem.data
    if data.Z is None or isinstance(theta, Affine):
        return theta
    pilot = data.sample(PILOT_SIZE)
    responses = to_numpy(pilot.y)
    location = np.median(responses, axis=0) if problem.loss.residual else responses.mean(axis=0)
    linear = np.zeros((data.Z.shape[1], *responses.shape[1:]))
    if bool(namespace(pilot.Z).all(pilot.Z[:, 0] == 1)):
        # The link of a mean at the edge of its domain (a class or a count that these responses
        # lack) is infinite; log 2n stands for a share of less than one in n.
        far = np.log(2 * len(responses))
        with quiet():
            link = to_numpy(problem.loss.link(data.like(location)))
        linear[0] = np.nan_to_num(link, nan=0.0, posinf=far, neginf=-far)
    return Affine(theta.core, theta.factors, data.like(linear))


def zero(problem: Problem, rank: Sequence[int]) -> Tucker:
    """The zero tensor as a point of the given ranks."""
    shape, like = tensor_shape(problem), problem.data.like
    factors = [like(np.eye(p, r)) for p, r in zip(shape, rank, strict=True)]
    return Tucker(like(np.zeros(tuple(rank))), tuple(factors))
