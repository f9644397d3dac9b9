"""Starting points. Each is a function of a problem and a rank that returns a point.

===================  ======================================================================
name                 what it does
===================  ======================================================================
``iht``              robust hard thresholding from zero, five steps at most: the default
``projected``        the same on 800 samples at most, within a few directions along each mode
                     that the gradient at zero shows, then a Gauss-Newton step in all: the
                     default where X is large
``restarts``         the best of iht, spectral and six bootstrapped ones, after a short robust
                     fit from each: the default where samples are few
``spectral``         low-rank part of the robust gradient at zero (truncated cross-moment)
``nuclear``          the paper's: nuclear-norm penalised Huber or likelihood fit, cut to rank;
                     on the most square matricisation of A
``nuclear-literal``  the same on the paper's matricisation, response by covariate modes
``decompose``        PCA: low-rank part of the winsorised data: the default there
``pseudo-huber``     PCA: the paper's, low-rank fit of least pseudo-Huber loss
``random``           random orthonormal factors and core, with the norm of the default start
===================  ======================================================================

Samples are few, for ``"auto"``, when there are less than four responses per degree of freedom of
A: from there on iht ends where a start at the truth would, below it often does not, and eight short
fits are worth their time. That is for losses of the residual; with classes all end in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._checks import check_theta
from .._log import tell
from ..designs import Covariate, Direct
from ..problem import Problem
from ..registry import is_word
from ..tucker import Affine, Tucker
from .base import Start, leaves_free, responses_per_parameter, tensor_shape, with_linear
from .decomposition import decompose, pseudo_huber
from .multistart import random, restarts
from .neighbours import neighbours
from .nuclear_norm import nuclear, nuclear_literal
from .projected import projected, projecteds, worth_projecting
from .thresholding import iht, ihts, spectral

__all__ = [
    "STARTS",
    "decompose",
    "iht",
    "nuclear",
    "nuclear_literal",
    "projected",
    "pseudo_huber",
    "random",
    "restarts",
    "spectral",
    "start",
]

ENOUGH = 4  # responses per degree of freedom of A
SHORT = 5  # steps of hard thresholding: from there on, Newton's are worth more


def start(init: Any, problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Return a starting point by name, or check and complete the given one.

    Parameters
    ----------
    init : str or Tucker
        A name above, ``"auto"``, or a point.
    problem : Problem
    rank : sequence of int
    rng : Generator
        For ``"random"`` and ``"restarts"``.

    Examples
    --------
    Estimators take the name, or a point:

    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="spectral").fit(data.X, data.y)
    >>> again = tt.TensorRegressor(rank=1, init=model.tucker_).fit(data.X, data.y)
    >>> tt.metrics.relative_error(again.coef_, model.coef_) < 1e-4
    True
    """
    if isinstance(init, Tucker):
        check_theta(init, tensor_shape(problem), "init")
        if init.rank != tuple(rank):
            raise ValueError(f"init must have the ranks asked for, {tuple(rank)}; got {init.rank}")
        _check_linear(init, problem)
        return with_linear(problem, init.map(problem.data.like))
    known = STARTS[type(problem.design)]
    if is_word(init, "auto"):
        init = default(problem, rank)
    if not isinstance(init, str) or init not in known:
        raise ValueError(
            f"init must be a Tucker point, 'auto' or one of {', '.join(sorted(known))} for this "
            f"model; got {init!r}"
        )
    tell("start", lambda: {"init": init, "rank": tuple(rank)})
    return known[init](problem, rank, rng)


def starts(problems: Sequence[Problem], ranks: Sequence[Sequence[int]]) -> list[Tucker]:
    """The usual starts of problems on the same samples, one with each rank.

    ``iht``, all of them in one pass a step, or ``projected``; of PCA, ``decompose``.
    """
    first, *others = problems
    if first.data.X is None:
        return [decompose(problem, rank) for problem, rank in zip(problems, ranks, strict=True)]
    alone = all(problem is first for problem in others) and first.loss.residual
    if alone and all(worth_projecting(first, rank) for rank in ranks):
        return projecteds(first, ranks)
    return ihts(problems, ranks, n_iter=SHORT)


def starts_near(
    problems: Sequence[Problem], thetas: Sequence[Tucker], ranks: Sequence[Sequence[int]]
) -> list[list[Tucker]]:
    """Starts of ranks near that of fits, from these; of PCA, the usual ones.

    For each rank one of each problem: see :func:`neighbours`.
    """
    if problems[0].data.X is not None:
        return neighbours(problems, thetas, ranks)
    return [[decompose(problem, rank) for problem in problems] for rank in ranks]


def _check_linear(init: Tucker, problem: Problem) -> None:
    """Raise unless the vector coefficients of a given start, if any, are those of the problem."""
    Z, y = problem.data.Z, problem.data.y
    wanted = None if Z is None else (Z.shape[1], *y.shape[1:])
    if isinstance(init, Affine) and tuple(init.linear.shape) != wanted:
        raise ValueError(
            f"init must have vector coefficients of shape {wanted} (the intercept's first, then "
            f"one per covariate; None where there are neither), or be a Tucker without them; got "
            f"{tuple(init.linear.shape)}"
        )


def default(problem: Problem, rank: Sequence[int]) -> str:
    """Name of the start that ``"auto"`` stands for.

    A rank that leaves A free has one local fit only, whatever the start.
    """
    if problem.data.X is None or not problem.loss.residual:
        return problem.design.init
    if leaves_free(problem, rank):
        return problem.design.init
    if responses_per_parameter(problem, rank) < ENOUGH:
        return "restarts"
    return "projected" if worth_projecting(problem, rank) else problem.design.init


STARTS: dict[type, dict[str, Start]] = {
    Covariate: {
        "iht": partial(iht, n_iter=SHORT),
        "projected": projected,
        "spectral": spectral,
        "nuclear": nuclear,
        "nuclear-literal": nuclear_literal,
        "restarts": restarts,
        "random": random,
    },
    Direct: {"decompose": decompose, "pseudo-huber": pseudo_huber, "random": random},
}
