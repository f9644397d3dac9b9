"""Ranks, by a robust BIC or by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from .._checks import feasible_rank
from .._progress import Count, ignore
from ..init.base import tensor_shape
from ..problem import Problem
from ..tucker import degrees_of_freedom
from .criteria import Bic, CrossValidated
from .rough import Rank, counted

LARGEST_RANK = 5
FIRST = 3  # equal ranks that are fitted from zero, and tried in any case; the largest one is too


@dataclass(frozen=True)
class RankPath:
    """The rank chosen, and those tried, in order, with their criterion as the last move saw it.

    Of ranks that it did not look at, that of their last fit, which had other thresholds.
    """

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

    The smallest equal ranks are fitted from zero, others from the best fit so far.

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
    room = np.count_nonzero(counted(problem)) / 2  # more free parameters than that tell nothing
    equal = [r for r in equal if degrees_of_freedom(shape, r) <= room] or equal[:1]
    cost = Bic(problem) if criterion == "bic" else CrossValidated(problem, rng)
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

    current = best(equal[:FIRST], cost.alone)
    if len(equal) > FIRST:  # components of like size may be worth their price only all together
        cost.look_from(equal[FIRST - 1])
        if best([current, equal[-1]], cost.alone) != current:
            current = best(equal, cost.alone)
    visited: set[Rank] = set()
    # At the scale of another fit an earlier one may be the best again: then the search ends.
    while current not in visited:
        visited.add(current)
        cost.rescale(current)
        current = best([current, *_neighbours(current, shape, largest)], cost.of)
    return RankPath(cost.choose(current, tried), tried, cost.of_all(tried))


def _neighbours(rank: Rank, shape: Sequence[int], largest: int) -> Iterator[Rank]:
    """Ranks one up or down in one mode, or in two together, that some tensor has."""
    modes = range(len(rank))
    for chosen, sign in product([*combinations(modes, 1), *combinations(modes, 2)], (-1, 1)):
        new = tuple(r + sign * (k in chosen) for k, r in enumerate(rank))
        inside = all(1 <= r <= min(p, largest) for r, p in zip(new, shape, strict=True))
        if inside and feasible_rank(new) == new:
            yield new
