"""Starts within the few directions that the gradient at zero shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..problem import PILOT_SIZE, PilotFit, Problem, tensor_gradients
from ..problem.within import widened, within, worth_narrowing
from ..robust import Robustifier
from ..solver import Newton
from ..solver.choice import choose
from ..solver.loop import run_together
from ..solver.result import Progress
from ..tucker import Tucker, hooi
from .base import leaves_free, tame, with_linear, zero
from .thresholding import ihts

WIDER = 3  # directions along a mode for each rank: with two, now and then a component was missed
ENOUGH = 800  # samples that these steps are taken on: with twice as many, fits were no better
RUN = 50  # neighbours among them: evenly spaced ones may all be of one kind
FIRST = 8  # steps within them: more were of no use
LAST = 2  # steps of iht in all directions that stand for one of Gauss-Newton


def projected(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """:func:`iht` within some directions along each mode: the default where X is large.

    The directions are those of the robust gradient at zero, three for each rank. Steps of hard
    thresholding are taken within them, on 800 samples at most, which have become many times
    smaller, and along the whole gradient; then a Gauss-Newton step in all directions. So all
    samples are read twice, and those few once more.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="projected").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """
    return projecteds(problem, [rank])[0]


def projecteds(problem: Problem, ranks: Sequence[Sequence[int]]) -> list[Tucker]:
    """:func:`projected` with several ranks, all within the directions of the largest."""
    largest = [max(column) for column in zip(*ranks, strict=True)]
    theta, samples = with_linear(problem, zero(problem, largest)), problem.data.sample(PILOT_SIZE)
    tamed = tame(problem, problem.pilot(theta, samples))
    gradient, _ = tensor_gradients([tamed], [theta])[0]
    directions = hooi(gradient, _wider(theta.shape, largest), n_iter=2).factors
    directions = directions[: samples.X.ndim - 1]
    small = within(replace(problem, robust=Robustifier()), samples.runs(ENOUGH, RUN), directions)
    found = ihts([small] * len(ranks), ranks, n_iter=FIRST, whole=True)
    points = [widened(point, directions) for point in found]
    return _in_all_directions(problem, points, [small.pilot(point) for point in found])


def _in_all_directions(
    problem: Problem, points: Sequence[Tucker], seen: Sequence[PilotFit]
) -> list[Tucker]:
    """Points after a Gauss-Newton step of each, or where its matrix is too large, after two of iht.

    What is missed outside of a start's directions inflates the residuals, and thresholds chosen
    from these are too gentle for heavy-tailed noise. Those of the step come of residuals that were
    `seen` within the directions.
    """
    if not all(choose(problem, point).curvature for point in points):
        ranks = [point.rank for point in points]
        return ihts([problem] * len(points), ranks, n_iter=LAST, thetas=points)
    pairs = zip(points, seen, strict=True)
    tamed = [tame(problem, problem.pilot(point), seen=pilot) for point, pilot in pairs]
    progress = [Progress(reach=0.0) for _ in points]
    step = Newton(n_iter=1, tol=0)
    return [run.theta for run in run_together(step, tamed, points, progress=progress)]


def worth_projecting(problem: Problem, rank: Sequence[int]) -> bool:
    """Whether X is large, and its samples are much smaller within the directions of a start.

    Not where A is free, and not where memory holds fewer samples than a start is to be found on.
    """
    data = problem.data
    if leaves_free(problem, rank) or data.room < min(data.n, PILOT_SIZE):
        return False
    return worth_narrowing(problem, _wider(data.main.shape[1:], rank))


def _wider(shape: Sequence[int], rank: Sequence[int]) -> list[int]:
    return [min(WIDER * r, p) for r, p in zip(rank, shape, strict=False)]
