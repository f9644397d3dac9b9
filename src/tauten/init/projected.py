"""A start within the few directions that the gradient at zero shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import Array, in_rows, namespace
from ..data import Chunk, Rows
from ..designs import Covariate
from ..kernels import project
from ..problem import PILOT_SIZE, Problem, tensor_gradients
from ..tucker import Tucker, hooi
from .base import tame, with_linear, zero
from .thresholding import START_SIZE, iht

WIDER = 3  # directions along a mode for each rank: with two, now and then a component was missed
PART_SIZE = 250  # samples that are projected at a time
# What makes it worth its while: bytes of X, as reading it is what is saved, and how many times
# smaller the samples become, as they are kept.
LARGE, SMALLER = 2**26, 16


def projected(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """:func:`iht` within some directions along each mode: the default where X is large.

    The directions are those of the robust gradient at zero, three for each rank, so that all
    samples are read once. The rest goes on within them, on 2,000 samples at most, which have become
    many times smaller.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="projected").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """
    theta, samples = with_linear(problem, zero(problem, rank)), problem.data.sample(PILOT_SIZE)
    tamed = tame(problem, problem.pilot(theta, samples.thin(START_SIZE)))
    gradient, _ = tensor_gradients([tamed], [theta])[0]
    directions = hooi(gradient, _wider(theta.shape, rank), n_iter=2).factors[: samples.X.ndim - 1]
    point = iht(_within(problem, samples, directions), rank)
    factors = list(point.factors)
    factors[: len(directions)] = [w @ u for w, u in zip(directions, factors, strict=False)]
    return replace(point, factors=tuple(factors))


def worth_projecting(problem: Problem, rank: Sequence[int]) -> bool:
    """Whether X is large, and its samples are much smaller within the directions of a start."""
    _, *shape = problem.data.main.shape
    size = math.prod(shape)
    small = math.prod(_wider(shape, rank)) * SMALLER <= size
    return small and 8 * problem.data.n * size >= LARGE


def _wider(shape: Sequence[int], rank: Sequence[int]) -> list[int]:
    return [min(WIDER * r, p) for r, p in zip(rank, shape, strict=False)]


def _within(problem: Problem, samples: Chunk, directions: Sequence[Array]) -> Problem:
    """The problem of some samples, in coordinates along directions of the covariates' modes."""
    center = problem.design.center

    def coordinates(part: Chunk) -> Array:
        return project(part.X, directions, center=center, partials=False)[0]

    parts = problem.data.spread(coordinates, samples.parts(PART_SIZE))
    X = in_rows(namespace(*parts).concat(parts, axis=0))
    data = Rows(X, samples.y, samples.Z, samples.weight, threads=1)
    return replace(problem, data=data, design=Covariate())
