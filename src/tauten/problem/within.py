"""Problems in coordinates along a few directions of each mode, where samples are small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .._array import Array, in_rows, namespace
from ..data import Chunk, Rows
from ..designs import Covariate
from ..kernels import project
from ..tucker import Tucker
from .problem import Problem

PART_SIZE = 250  # samples that are projected at a time, where all are
SMALLER = 16  # times that samples must shrink to be worth keeping in few coordinates


def worth_narrowing(problem: Problem, directions: Sequence[int]) -> bool:
    """Whether X is large, and its samples much smaller in so many directions along their modes."""
    size = math.prod(problem.data.main.shape[1:])
    return math.prod(directions) * SMALLER <= size and problem.data.dear


def within(problem: Problem, parts: Sequence[Chunk], directions: Sequence[Array]) -> Problem:
    """The problem of some of its samples, in coordinates along directions of the covariates' modes.

    Samples are shrunk already, by their own norms: those of the coordinates are no larger.

    Parameters
    ----------
    problem : Problem
    parts : sequence of Chunk
        Some or all samples, as many as are projected at a time in each. Shrunk as a whole, if at
        all: the loss is one of the residual.
    directions : sequence of arrays (p_k, w_k)
        Orthonormal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tauten.losses import Squared
    >>> data, directions = Rows(np.ones((5, 4, 3)), np.ones(5)), [np.eye(4, 2), np.eye(3, 1)]
    >>> within(Problem(data, Squared(), Covariate()), [data.all], directions).data.X.shape
    (5, 2, 1)
    """
    kernel, center = problem.kernel, problem.design.center

    def coordinates(part: Chunk) -> tuple[Array | None, ...]:
        shrunk, scale, _ = kernel.shrink(part)
        found = project(part.X, directions, center=center, scale=scale, partials=False)
        return in_rows(found[0]), shrunk.y, shrunk.Z, shrunk.weight

    columns = zip(*problem.data.spread(coordinates, parts), strict=True)
    arrays = [None if c[0] is None else namespace(*c).concat(c, axis=0) for c in columns]
    return replace(problem, data=Rows(*arrays, threads=1), design=Covariate())


def narrowed(theta: Tucker, directions: Sequence[Array]) -> Tucker:
    """A point in coordinates along directions that its factors lie in: undo :func:`widened`."""
    return _moved(theta, [w.T for w in directions])


def widened(theta: Tucker, directions: Sequence[Array]) -> Tucker:
    """A point from its coordinates along directions."""
    return _moved(theta, directions)


def _moved(theta: Tucker, maps: Sequence[Array]) -> Tucker:
    """A point with maps applied to its first factors; those of the response stay."""
    first = [m @ u for m, u in zip(maps, theta.factors, strict=False)]
    return replace(theta, factors=(*first, *theta.factors[len(maps) :]))
