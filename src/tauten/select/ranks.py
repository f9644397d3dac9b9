"""Ranks, by a robust BIC or by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from .._array import column, namespace, to_numpy
from .._checks import feasible_rank
from .._progress import Count, ignore
from ..init import start
from ..init.base import tame, tensor_shape
from ..problem import Problem
from ..robust.adaptive import choose_bend, slopes_of
from ..solver.choice import choose
from ..tucker import Tucker, degrees_of_freedom
from .folds import folds, standard_error, validate

LARGEST_RANK = 5

Rank = tuple[int, ...]


@dataclass(frozen=True)
class RankPath:
    """The rank chosen, and those tried, in order, with their criterion as the last move saw it."""

    rank: Rank
    ranks: list[Rank]
    criterion: list[float]


def select_rank(
    problem: Problem,
    *,
    criterion: str = "bic",
    rng: np.random.Generator,
    largest: int = LARGEST_RANK,
    report: Count = ignore,
) -> RankPath:
    """Choose Tucker ranks: the best equal ranks, then moves of one or two modes by one.

    Parameters
    ----------
    problem : Problem
    criterion : {"bic", "cv"}
        ``"bic"``: twice the robust loss of the residuals, by its efficiency, (or the deviance) plus
        ``df log N``: equal ranks at the scale of the largest fit, moves at that of the best fit so
        far. ``"cv"``: five-fold robust prediction error, and of the ranks tried the simplest that
        is within one standard error of the best.
    rng : Generator
        For the folds, and for starts that draw.
    largest : int
        Largest rank of a mode.
    report : callable
        Told how many ranks were tried; of how many, nobody knows.
    """
    shape = tensor_shape(problem)
    largest = largest if len(shape) > 1 else 1  # a vector has rank one
    equal = [feasible_rank([min(r, p) for p in shape]) for r in range(1, largest + 1)]
    room = np.count_nonzero(_seen(problem)) / 2  # more free parameters than that tell nothing
    equal = [r for r in equal if degrees_of_freedom(shape, r) <= room] or equal[:1]
    cost: _Bic | _CrossValidated = (_Bic if criterion == "bic" else _CrossValidated)(
        problem, equal[-1], rng
    )
    tried: list[Rank] = []

    def price(rank: Rank) -> float:
        found = cost.of(rank)
        if rank not in tried:
            tried.append(rank)
            report(len(tried), None)
        return found

    def best(candidates: Iterable[Rank]) -> Rank:
        fits = [rank for rank in candidates if degrees_of_freedom(shape, rank) <= room]
        return min(fits, key=price, default=equal[0])

    current, seen = best(equal), set()
    while current not in seen:  # at the scale of another fit an earlier one may be the best again
        seen.add(current)
        cost.rescale(current)
        current = best([current, *_neighbours(current, shape, largest)])
    criteria = [cost.of(rank) for rank in tried]
    return RankPath(cost.choose(current, tried), tried, criteria)


def _neighbours(rank: Rank, shape: Sequence[int], largest: int) -> Iterator[Rank]:
    """Ranks one up or down in one mode, or in two together, that some tensor has."""
    modes = range(len(rank))
    for chosen, sign in product([*combinations(modes, 1), *combinations(modes, 2)], (-1, 1)):
        new = tuple(r + sign * (k in chosen) for k, r in enumerate(rank))
        inside = all(1 <= r <= min(p, largest) for r, p in zip(new, shape, strict=True))
        if inside and feasible_rank(new) == new:
            yield new


def _pilot_fit(problem: Problem, rank: Rank, rng: np.random.Generator) -> tuple[Problem, Tucker]:
    """A cheap robust fit: covariates shrunk, Huber's scores, then the bend that these ask for."""
    theta = start(problem.design.init, problem, rank, rng)
    problem = tame(problem, problem.pilot(theta), shrink=problem.data.X is not None)
    solver = choose(problem, theta).set_params(n_iter=15, tol=1e-3)
    theta = solver.run(problem, theta).theta
    if not problem.loss.residual:
        return problem, theta
    bend = choose_bend(problem.scores(theta)[_seen(problem)])
    problem = replace(problem, robust=problem.robust.with_bend(bend))
    return problem, solver.run(problem, theta).theta


class _Bic:
    """Robust BIC, with the bend and efficiency of one fit for every rank.

    At first those of the largest: a scale that holds signal would hide it. But low-rank fits follow
    noise more than their degrees of freedom tell, so that its residuals are too small by far; from
    there on they are those of the best fit so far. The bend is the most efficient one: with Huber's
    at its usual threshold, small components are lost in heavy-tailed noise.
    """

    def __init__(self, problem: Problem, largest: Rank, rng: np.random.Generator) -> None:
        self._problem, self._rng = problem, rng
        self._shape, self._seen = tensor_shape(problem), _seen(problem)
        self._n = int(np.count_nonzero(self._seen))
        self._fits: dict[Rank, tuple[np.ndarray, Any]] = {}
        self.rescale(largest)

    def rescale(self, rank: Rank) -> None:
        """Take bend and efficiency from the fit of a rank."""
        if not self._problem.loss.residual:
            return
        residuals, self._robust = self._fitted(rank)
        # What the fit has taken out of its residuals is taken out of all of them.
        left = max(self._n - degrees_of_freedom(self._shape, rank), 1)
        self._share = math.sqrt(left / self._n)
        slope = np.mean(slopes_of(self._robust.score, residuals)) if np.any(residuals) else 1.0
        # None where nothing is left to explain.
        self._efficiency = float(np.mean(self._robust.score(residuals) ** 2) / slope) or 1.0

    def of(self, rank: Rank) -> float:
        """Twice the bend's loss, or the deviance, and the penalty."""
        penalty = degrees_of_freedom(self._shape, rank) * math.log(self._n)
        entries, _ = self._fitted(rank)
        if self._problem.loss.residual:
            entries = self._robust.value(self._share * entries) / self._efficiency
        return 2 * float(np.sum(entries)) + penalty

    def choose(self, best: Rank, tried: Sequence[Rank]) -> Rank:
        """The best: the penalty has counted the parameters."""
        return best

    def _fitted(self, rank: Rank) -> tuple[np.ndarray, Any]:
        """Residuals of the fit of a rank, or for losses of no residual its losses; its bends."""
        if rank not in self._fits:
            fitted, theta = _pilot_fit(self._problem, rank, self._rng)
            entries = fitted.scores if fitted.loss.residual else fitted.values
            self._fits[rank] = entries(theta)[self._seen], fitted.robust
        return self._fits[rank]


def _seen(problem: Problem) -> np.ndarray:
    """Which response entries count: observed, in samples of positive weight."""
    data = problem.data
    if problem.missing:
        seen = to_numpy(data.map_rows(lambda chunk: namespace(chunk.y).isfinite(chunk.y)))
    else:
        seen = np.ones(data.y.shape, bool)
    if data.weight is None:
        return seen
    return seen & column(to_numpy(data.weight) > 0, seen.ndim)


class _CrossValidated:
    """Five-fold robust prediction error; the folds are drawn once, for every rank."""

    def __init__(self, problem: Problem, largest: Rank, rng: np.random.Generator) -> None:
        self._folds, self._rng, self._shape = list(folds(problem, rng)), rng, tensor_shape(problem)
        self._errors: dict[Rank, np.ndarray] = {}

    def rescale(self, rank: Rank) -> None:
        """Nothing: prediction errors need no scale."""

    def of(self, rank: Rank) -> float:
        """Mean error over the folds."""
        if rank not in self._errors:
            fits = [_pilot_fit(train, rank, self._rng) for train, _ in self._folds]
            problems, points = zip(*fits, strict=True)
            errors = validate(problems, points, [test for _, test in self._folds])
            self._errors[rank] = np.array(errors)
        return float(np.mean(self._errors[rank]))

    def choose(self, best: Rank, tried: Sequence[Rank]) -> Rank:
        """The simplest rank that is not worse than the best by more than one standard error.

        That of the difference: both have met the same folds. The least error itself tends to belong
        to a rank that is too large, as one more component costs little.
        """
        return min(
            (rank for rank in tried if self._close(rank, best)),
            key=lambda rank: (degrees_of_freedom(self._shape, rank), self.of(rank)),
            default=best,
        )

    def _close(self, rank: Rank, best: Rank) -> bool:
        more = self._errors[rank] - self._errors[best]
        return bool(np.mean(more) <= standard_error(more))
