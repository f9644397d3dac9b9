"""Rough fits, good enough to compare ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import column, namespace, to_numpy
from ..init import starts, starts_near
from ..init.base import tame
from ..problem import Problem, scores
from ..robust import Huber
from ..robust.adaptive import choose_bend
from ..solver import Solver
from ..solver.choice import choose
from ..solver.loop import run_together
from ..tucker import Tucker

# A to this, which moves a criterion by less than a parameter counts.
ROUGH, STEPS = 5e-3, 15

Rank = tuple[int, ...]
Fit = tuple[Problem, Tucker]


def rough_fits(problems: Sequence[Problem], ranks: Sequence[Rank]) -> list[Fit]:
    """Cheap robust fits: covariates shrunk, Huber's scores at the scale of the start."""
    thetas = starts(problems, ranks)
    shrink = problems[0].data.X is not None
    pairs = zip(problems, thetas, strict=True)
    tamed = [tame(problem, problem.pilot(theta), shrink=shrink) for problem, theta in pairs]
    return descend(list(zip(tamed, thetas, strict=True)))


def bent_fits(fits: Sequence[Fit], bends: Sequence[Huber | None]) -> list[Fit]:
    """Fits gone on with other bends; None is the one they have."""
    return descend([bent(fit, bend) for fit, bend in zip(fits, bends, strict=True)])


def bent(fit: Fit, bend: Huber | None) -> Fit:
    """A fit that is to go on with another bend."""
    problem, theta = fit
    if bend is None:
        return fit
    return replace(problem, robust=problem.robust.with_bend(bend)), theta


def near_fits(fits: Sequence[Fit], ranks: Sequence[Rank]) -> list[list[Fit]]:
    """Fits of one rank on the same samples, brought to other ranks, and not gone on with."""
    if not ranks:
        return []
    problems, thetas = zip(*fits, strict=True)
    found = starts_near(problems, thetas, ranks)
    return [list(zip(problems, points, strict=True)) for points in found]


def own_bends(fits: Sequence[Fit]) -> list[Fit]:
    """Fits gone on with the bends that their residuals ask for."""
    problems, thetas = zip(*fits, strict=True)
    if not problems[0].loss.residual:
        return list(fits)
    residuals = zip(problems, scores(problems, thetas), strict=True)
    return bent_fits(fits, [choose_bend(found[counted(problem)]) for problem, found in residuals])


def descend(fits: Sequence[Fit], *, n_iter: int = STEPS) -> list[Fit]:
    """Go on with fits of problems on the same samples: a step of all of them is one pass."""
    groups: dict[str, list[int]] = {}
    for i, fit in enumerate(fits):
        groups.setdefault(choose(*fit).name, []).append(i)
    found: dict[int, Tucker] = {}
    for name, group in groups.items():
        solver = Solver.get(name).set_params(n_iter=n_iter, tol=ROUGH)
        problems, thetas = zip(*(fits[i] for i in group), strict=True)
        runs = run_together(solver, problems, thetas)
        found |= {i: run.theta for i, run in zip(group, runs, strict=True)}
    return [(problem, found[i]) for i, (problem, _) in enumerate(fits)]


def counted(problem: Problem) -> np.ndarray:
    """Which response entries count: observed, in samples of positive weight."""
    data = problem.data
    if problem.missing:
        seen = to_numpy(data.map_rows(lambda chunk: namespace(chunk.y).isfinite(chunk.y)))
    else:
        seen = np.ones(data.y.shape, bool)
    if data.weight is None:
        return seen
    return seen & column(to_numpy(data.weight) > 0, seen.ndim)
