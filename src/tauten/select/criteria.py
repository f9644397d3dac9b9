"""What ranks are compared by: a robust BIC, or errors of samples left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from ..init.base import tensor_shape
from ..problem import Problem, scores, values
from ..robust import Huber
from ..robust.adaptive import choose_bend, drawn, slopes_of
from ..robust.thresholds import robust_scale
from ..tucker import degrees_of_freedom
from .folds import folds, standard_error, validate
from .rough import Fit, Rank, bent, bent_fits, counted, descend, near_fits, own_bends, rough_fits
from .sketch import sketched

# What a fit of another rank may gain outside of the directions that it was compared in, for each
# parameter more or less: twice what noise alone gives.
GAIN = 2.0
# Steps that tell whether a larger rank is worth its price: a neighbour, or one that is further off.
NEAR, FAR = 2, 6
PART = 2**17  # residuals at a time, a megabyte of them: in PCA they are as many as the data


class Bic:
    """Robust BIC: every rank is fitted with, and judged by, the bend that the best so far asks for.

    With a bend of its own, a fit of many parameters may pass through half of the samples and call
    the others outliers. At the scale of the best, a neighbour is seen well. One further off is not:
    a scale that holds signal hides it, and residuals of a large rank are too small, as low-rank
    fits follow noise more than their degrees of freedom tell. The bend is the most efficient one:
    with Huber's at its usual threshold, small components are lost in heavy-tailed noise.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._shape, self._seen = tensor_shape(problem), counted(problem)
        self._n = int(np.count_nonzero(self._seen))
        self._fits: dict[Rank, Fit] = {}  # the last of each rank
        self._scales: dict[Rank, float] = {}
        self._losses: dict[Rank, float] = {}
        self._bend: Huber | None = None
        self._current: Rank | None = None

    def fit(self, ranks: Sequence[Rank]) -> None:
        """Fit those ranks that are not yet, together: from zero, or from the current rank's fit.

        Before there is a bend, it is the robust scale of their residuals that is kept; then what
        they lose with the bend.
        """
        kept = self._kept
        if not (ranks := [rank for rank in ranks if rank not in kept]):
            return
        if self._current is None:
            fits = rough_fits([self._problem] * len(ranks), ranks)
        else:
            fits = self._gone_on(self._current, ranks)
        self._fits |= zip(ranks, fits, strict=True)
        kept |= zip(ranks, map(self._measure, self._entries(fits)), strict=True)

    @property
    def _unbent(self) -> bool:
        return self._problem.loss.residual and self._bend is None

    @property
    def _kept(self) -> dict[Rank, float]:
        return self._scales if self._unbent else self._losses

    def _measure(self, entries: np.ndarray) -> float:
        return robust_scale(entries) if self._unbent else self._loss(entries)

    def _price(self, rank: Rank, measure: float) -> float:
        """What a rank costs, by what is kept of its fit."""
        if self._unbent:
            measure = 2 * self._n * math.log(max(measure, np.finfo(float).tiny))
        return measure + self._penalty(rank)

    def _gone_on(self, current: Rank, ranks: Sequence[Rank]) -> list[Fit]:
        """Fits with the bend in use: from their last ones, or from starts near the current one.

        Those that are hopeless within the directions of such starts are not gone on with.
        """
        new = [rank for rank in ranks if rank not in self._fits]
        near = zip(new, near_fits([self._fits[current]], new), strict=True)
        begun = self._fits | {rank: fit for rank, (fit,) in near}
        begun = {rank: bent(begun[rank], self._bend) for rank in ranks}
        hopeless = self._hopeless(current, begun, new)
        hopeful = [rank for rank in ranks if rank not in hopeless]
        begun |= zip(hopeful, descend([begun[rank] for rank in hopeful]), strict=True)
        return [begun[rank] for rank in ranks]

    def _hopeless(self, current: Rank, begun: dict[Rank, Fit], new: Sequence[Rank]) -> set[Rank]:
        """Those of the new ranks that cost more than the best by more than they could still gain.

        All of them are taken as far as they get within the directions of their starts. Those of
        larger ranks are the gradient's, which correlated covariates turn away from what is missing:
        where they seem not worth their price they get a few steps in all directions.
        """
        found = sketched([begun[rank] for rank in new])
        if found is None:
            return set()
        begun |= zip(new, (wide for _, wide in found), strict=True)
        dear = self._dear(new, [small for small, _ in found])
        free = partial(degrees_of_freedom, self._shape)
        grown = [rank for rank in new if rank in dear and free(rank) > free(current)]
        if not grown:
            return dear
        steps = FAR if any(_distance(rank, current) > 1 for rank in grown) else NEAR
        begun |= zip(grown, descend([begun[rank] for rank in grown], n_iter=steps), strict=True)
        return dear - set(grown) | self._dear(grown, [begun[rank] for rank in grown])

    def _dear(self, ranks: Sequence[Rank], fits: Sequence[Fit]) -> set[Rank]:
        """Those of some ranks whose fits cost more than the best so far and what noise may do."""
        known = {rank: self._price(rank, measure) for rank, measure in self._kept.items()}
        best = min(known, key=known.__getitem__)
        free = partial(degrees_of_freedom, self._shape)
        found = zip(ranks, map(self._measure, self._entries(fits)), strict=True)
        return {
            rank
            for rank, measure in found
            if self._price(rank, measure) > known[best] + GAIN * abs(free(rank) - free(best))
        }

    def look_from(self, rank: Rank) -> None:
        """Fit others from the fit of a rank, from now on."""
        self.fit([rank])
        self._current = rank

    def rescale(self, rank: Rank) -> None:
        """Take bend and efficiency from the fit of a rank, and look from there."""
        self.look_from(rank)
        if not self._problem.loss.residual:
            return
        (residuals,) = self._entries([self._fits[rank]])
        self._bend = choose_bend(residuals)
        (self._fits[rank],) = bent_fits([self._fits[rank]], [self._bend])
        (residuals,) = self._entries([self._fits[rank]])
        # What the fit has taken out of its residuals is taken out of all of them.
        left = max(self._n - degrees_of_freedom(self._shape, rank), 1)
        self._share = math.sqrt(left / self._n)
        some = drawn(residuals)
        slope = np.mean(slopes_of(self._bend.score, some))
        # None where nothing is left to explain.
        self._efficiency = float(np.mean(self._bend.score(some) ** 2) / slope) or 1.0
        self._losses = {rank: self._loss(residuals)}

    def alone(self, rank: Rank) -> float:
        """``N log s²`` of the residuals' own robust scale, or the deviance, and the penalty."""
        return self._price(rank, self._kept[rank])

    def of(self, rank: Rank) -> float:
        """Twice the bend's loss, or the deviance, and the penalty."""
        return self._losses[rank] + self._penalty(rank)

    def of_all(self, ranks: Sequence[Rank]) -> list[float]:
        """The same of every rank that was fitted; those not looked at lately, by their last fit."""
        if others := [rank for rank in ranks if rank not in self._losses]:
            entries = self._entries([self._fits[rank] for rank in others])
            self._losses |= zip(others, map(self._loss, entries), strict=True)
        return [self.of(rank) for rank in ranks]

    def _loss(self, entries: np.ndarray) -> float:
        if (bend := self._bend) is None:
            return 2 * float(np.sum(entries))
        parts = np.array_split(entries, math.ceil(entries.size / PART))
        spread = self._problem.data.spread
        sums = spread(lambda part: float(np.sum(bend.value(self._share * part))), parts)
        return 2 * sum(sums) / self._efficiency

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


class CrossValidated:
    """Five-fold robust prediction error; the folds are drawn once, for every rank."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self._trains, self._tests = zip(*folds(problem, rng), strict=True)
        self._shape = tensor_shape(problem)
        self._fits: dict[Rank, list[Fit]] = {}
        self._errors: dict[Rank, np.ndarray] = {}
        self._current: Rank | None = None

    def fit(self, ranks: Sequence[Rank]) -> None:
        """Fit those ranks that are not yet, the folds of each together.

        From zero, or from the current rank's fits.
        """
        new = [rank for rank in ranks if rank not in self._fits]
        if self._current is None:
            each = [rough_fits(self._trains, [rank] * len(self._trains)) for rank in new]
        else:
            each = [descend(fits) for fits in near_fits(self._fits[self._current], new)]
        for rank, fits in zip(new, each, strict=True):
            self._fits[rank] = own_bends(fits)
            problems, points = zip(*self._fits[rank], strict=True)
            self._errors[rank] = np.array(validate(problems, points, self._tests))

    def look_from(self, rank: Rank) -> None:
        """Fit others from the fits of a rank, from now on."""
        self.fit([rank])
        self._current = rank

    def rescale(self, rank: Rank) -> None:
        """Look from there; prediction errors need no scale."""
        self.look_from(rank)

    def alone(self, rank: Rank) -> float:
        """Mean error over the folds."""
        return self.of(rank)

    def of(self, rank: Rank) -> float:
        """Mean error over the folds."""
        return float(np.mean(self._errors[rank]))

    def of_all(self, ranks: Sequence[Rank]) -> list[float]:
        """The same of every rank."""
        return [self.of(rank) for rank in ranks]

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


def _distance(rank: Rank, other: Rank) -> int:
    return max(abs(r - s) for r, s in zip(rank, other, strict=True))
