"""Gradients with Jeffreys' prior where all samples can be looked at at once.

The prior at a point comes of the derivatives of all samples, and so does the gradient: one sweep
gives both.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from .._array import Array, namespace, reshape
from ..jeffreys import derivatives, penalised_spread, pseudo_observations
from ..ridge import ridge_coordinates
from ..tucker import Tucker
from .gradient import Asked, Gradient
from .pilot import PILOT_SIZE
from .samplewise import line_sums
from .seen import Line, total_weight

if TYPE_CHECKING:
    from .problem import Problem


def all_that_count(problem: Problem) -> bool:
    """Whether there is a prior, and the samples that it looks at are all that have a weight.

    Blocks of samples are by their place among all, which those do not know.
    """
    if not problem.reduce_bias or problem.robust.n_blocks_ > 1:
        return False
    return problem.data.sample(PILOT_SIZE).y.shape[0] == len(problem.data.counted)


def gradient_at_once(problem: Problem, theta: Tucker, asked: Asked) -> Gradient:
    """Robust gradient at a point, with the prior there: see :func:`gradients`."""
    kernel, chunk = problem.kernel, problem.data.sample(PILOT_SIZE)
    line = kernel.linearise(theta, chunk)
    line = replace(line, pseudo=_pseudo_observations(problem, line))
    found = problem.gradient_from(theta, line_sums(kernel, line, asked), asked, chunk.y.shape[0])
    return replace(found, pseudo=line.pseudo)


def _pseudo_observations(problem: Problem, line: Line) -> tuple[Array, Array]:
    """Those of the prior, by whichever matrix is smaller: of parameters, or of predictors."""
    if problem.ridge and math.prod(line.eta.shape) < line.theta.d_eff:
        spread = _spread(problem, line)
        return pseudo_observations(problem.loss, line.eta, spread, line.share)
    prior = problem.prior(line.theta, line)
    return prior.pseudo_observations(problem.loss, line.eta, line.pullback, line.share)


def _spread(problem: Problem, line: Line) -> Array:
    """Variances of the predictors, of fits with a ridge."""
    each = list(derivatives(problem.loss, line.eta, line.pullback))
    rows = each[0] if len(each) == 1 else namespace(*each).concat(each, axis=0)
    level = problem.ridge * float(total_weight(line.chunk))
    weight = problem.kernel.information_weight(line)
    by_predictor = reshape(weight, (weight.shape[0], len(each))).T
    white, loose = ridge_coordinates(line.theta, rows)
    found = penalised_spread(white, loose, reshape(by_predictor, (-1,)), level)
    return reshape(reshape(found, by_predictor.shape).T, line.eta.shape)
