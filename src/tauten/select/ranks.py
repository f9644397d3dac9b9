"""Ranks, by a robust BIC or by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

import numpy as np

from .._array import column, namespace, to_numpy
from .._checks import feasible_rank
from .._progress import Count, ignore
from ..init import starts
from ..init.base import tame, tensor_shape
from ..problem import Problem, scores, values
from ..robust import Huber
from ..robust.adaptive import choose_bend, slopes_of
from ..robust.thresholds import robust_scale
from ..solver import Solver
from ..solver.choice import choose
from ..solver.loop import run_together
from ..tucker import Tucker, degrees_of_freedom
from .folds import folds, standard_error, validate

LARGEST_RANK = 5

Rank = tuple[int, ...]
Fit = tuple[Problem, Tucker]


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
        ``df log N``, at the scale of the best fit so far; of equal ranks, ``N log s²`` of their own
        scales instead. ``"cv"``: five-fold robust prediction error, and of the ranks tried the
        simplest that is within one standard error of the best.
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
    cost = _Bic(problem) if criterion == "bic" else _CrossValidated(problem, rng)
    tried: list[Rank] = []

    def best(candidates: Iterable[Rank], price: Callable[[Rank], float]) -> Rank:
        ranks = [r for r in dict.fromkeys(candidates) if degrees_of_freedom(shape, r) <= room]
        cost.fit(ranks)
        costs = {rank: price(rank) for rank in ranks}
        for rank in ranks:
            if rank not in tried:
                tried.append(rank)
                report(len(tried), None)
        return min(costs, key=costs.__getitem__, default=equal[0])

    current, seen = best(equal, cost.alone), set()
    while current not in seen:  # at the scale of another fit an earlier one may be the best again
        seen.add(current)
        cost.rescale(current)
        current = best([current, *_neighbours(current, shape, largest)], cost.of)
    cost.fit(tried)
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


def _rough_fits(problems: Sequence[Problem], ranks: Sequence[Rank]) -> list[Fit]:
    """Cheap robust fits: covariates shrunk, Huber's scores at the scale of the start."""
    thetas = starts(problems, ranks)
    shrink = problems[0].data.X is not None
    pairs = zip(problems, thetas, strict=True)
    tamed = [tame(problem, problem.pilot(theta), shrink=shrink) for problem, theta in pairs]
    return _descend(list(zip(tamed, thetas, strict=True)))


def _bent_fits(fits: Sequence[Fit], bends: Sequence[Huber]) -> list[Fit]:
    """Rough fits gone on with other bends."""
    pairs = zip(fits, bends, strict=True)
    return _descend(
        [(replace(p, robust=p.robust.with_bend(bend)), theta) for (p, theta), bend in pairs]
    )


def _pilot_fits(problems: Sequence[Problem], rank: Rank) -> list[Fit]:
    """Rough fits gone on with the bends that their residuals ask for."""
    fits = _rough_fits(problems, [rank] * len(problems))
    if not problems[0].loss.residual:
        return fits
    residuals = zip(problems, scores(*zip(*fits, strict=True)), strict=True)
    return _bent_fits(fits, [choose_bend(found[_seen(problem)]) for problem, found in residuals])


def _descend(fits: Sequence[Fit]) -> list[Fit]:
    """Go on with fits of problems on the same samples: a step of all of them is one pass."""
    groups: dict[str, list[int]] = {}
    for i, fit in enumerate(fits):
        groups.setdefault(choose(*fit).name, []).append(i)
    found: dict[int, Tucker] = {}
    for name, group in groups.items():
        solver = Solver.get(name).set_params(n_iter=15, tol=1e-3)
        problems, thetas = zip(*(fits[i] for i in group), strict=True)
        runs = run_together(solver, problems, thetas)
        found |= {i: run.theta for i, run in zip(group, runs, strict=True)}
    return [(problem, found[i]) for i, (problem, _) in enumerate(fits)]


class _Bic:
    """Robust BIC: every rank is fitted with, and judged by, the bend that the best so far asks for.

    With a bend of its own, a fit of many parameters may pass through half of the samples and call
    the others outliers. At the scale of the best, a neighbour is seen well. One further off is not:
    a scale that holds signal hides it, and residuals of a large rank are too small, as low-rank
    fits follow noise more than their degrees of freedom tell. The bend is the most efficient one:
    with Huber's at its usual threshold, small components are lost in heavy-tailed noise.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._shape, self._seen = tensor_shape(problem), _seen(problem)
        self._n = int(np.count_nonzero(self._seen))
        self._rough: dict[Rank, Fit] = {}
        self._scales: dict[Rank, float] = {}
        self._losses: dict[Rank, float] = {}
        self._bend: Huber | None = None

    def fit(self, ranks: Sequence[Rank]) -> None:
        """Fit those ranks that are not yet, together.

        Before there is a bend, it is the robust scale of their residuals that is kept; then what
        they lose with the bend.
        """
        if new := [rank for rank in ranks if rank not in self._rough]:
            fits = _rough_fits([self._problem] * len(new), new)
            self._rough |= zip(new, fits, strict=True)
        kept = self._scales if self._unbent else self._losses
        if not (new := [rank for rank in ranks if rank not in kept]):
            return
        fits = [self._rough[rank] for rank in new]
        if self._bend is not None:
            fits = _bent_fits(fits, [self._bend] * len(fits))
        found = map(robust_scale if self._unbent else self._loss, self._entries(fits))
        kept |= zip(new, found, strict=True)

    @property
    def _unbent(self) -> bool:
        return self._problem.loss.residual and self._bend is None

    def rescale(self, rank: Rank) -> None:
        """Take bend and efficiency from the fit of a rank."""
        if not self._problem.loss.residual:
            return
        self.fit([rank])
        (residuals,) = self._entries([self._rough[rank]])
        self._bend = choose_bend(residuals)
        (residuals,) = self._entries(_bent_fits([self._rough[rank]], [self._bend]))
        # What the fit has taken out of its residuals is taken out of all of them.
        left = max(self._n - degrees_of_freedom(self._shape, rank), 1)
        self._share = math.sqrt(left / self._n)
        slope = np.mean(slopes_of(self._bend.score, residuals))
        # None where nothing is left to explain.
        self._efficiency = float(np.mean(self._bend.score(residuals) ** 2) / slope) or 1.0
        self._losses = {rank: self._loss(residuals)}

    def alone(self, rank: Rank) -> float:
        """``N log s²`` of the residuals' own robust scale, or the deviance, and the penalty."""
        if not self._problem.loss.residual:
            return self.of(rank)
        scale = max(self._scales[rank], np.finfo(float).tiny)
        return 2 * self._n * math.log(scale) + self._penalty(rank)

    def of(self, rank: Rank) -> float:
        """Twice the bend's loss, or the deviance, and the penalty."""
        return self._losses[rank] + self._penalty(rank)

    def _loss(self, entries: np.ndarray) -> float:
        if self._bend is not None:
            entries = self._bend.value(self._share * entries) / self._efficiency
        return 2 * float(np.sum(entries))

    def choose(self, best: Rank, tried: Sequence[Rank]) -> Rank:
        """The best: the penalty has counted the parameters."""
        return best

    def _penalty(self, rank: Rank) -> float:
        return degrees_of_freedom(self._shape, rank) * math.log(self._n)

    def _entries(self, fits: Sequence[Fit]) -> Iterator[np.ndarray]:
        """Residuals of fits, or their losses, in one pass; in PCA one after the other.

        There they are as large as the data.
        """
        entries = scores if self._problem.loss.residual else values
        batches = [fits] if self._problem.data.X is not None else [[fit] for fit in fits]
        for found in chain.from_iterable(entries(*zip(*batch, strict=True)) for batch in batches):
            yield found.ravel() if self._n == found.size else found[self._seen]


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

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self._folds, self._shape = list(folds(problem, rng)), tensor_shape(problem)
        self._errors: dict[Rank, np.ndarray] = {}

    def fit(self, ranks: Sequence[Rank]) -> None:
        """Fit those ranks that are not yet, the folds of each together."""
        trains, tests = zip(*self._folds, strict=True)
        for rank in ranks:
            if rank not in self._errors:
                problems, points = zip(*_pilot_fits(trains, rank), strict=True)
                self._errors[rank] = np.array(validate(problems, points, tests))

    def rescale(self, rank: Rank) -> None:
        """Nothing: prediction errors need no scale."""

    def alone(self, rank: Rank) -> float:
        """Mean error over the folds."""
        return self.of(rank)

    def of(self, rank: Rank) -> float:
        """Mean error over the folds."""
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
