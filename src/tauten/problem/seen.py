"""Samples as seen from a point, and what a robustifier makes of them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._array import Array, column, matmul, namespace, ratio, take, to_numpy
from .._lazy import lazy
from ..data import Chunk, Samples
from ..designs import Pullback
from ..robust import Robustifier
from ..tucker import Tucker


@dataclass(frozen=True, kw_only=True)
class View:
    """Samples as the loss sees them from a point.

    Attributes
    ----------
    y, eta : array (n, ...)
        Responses and linear predictors, shrunk together where the loss is one of the residual.
    share : array (n,), optional
        What is left of each sample's loss where it is not: a label does not shrink with its
        covariates, and covariates that shrink alone would make A too large.
    pseudo : tuple of array, optional
        Score and number of each sample's pseudo-observations: see :class:`Jeffreys`.
    """

    y: Array
    eta: Array
    share: Array | None = None
    pseudo: tuple[Array, Array] | None = None


@dataclass(frozen=True, kw_only=True)
class Line(View):
    """A chunk of samples linearised at a point: the one sweep that a pass makes of it.

    Attributes
    ----------
    theta : Tucker
        The point.
    chunk : Chunk
    pullback : Pullback
        From scores to per-sample gradients.
    scale : array (n,), optional
        Factors that shrink each X_i.
    Z : array (n, c), optional
        Vector covariates, shrunk like X.
    """

    theta: Tucker
    chunk: Chunk
    pullback: Pullback
    scale: Array | None = None
    Z: Array | None = None

    @property
    def whole(self) -> bool:
        """Whether no sample was shrunk."""
        return self.scale is None and self.share is None

    def moved(self, step: Array) -> Line:
        """The same samples as seen from the end of a step, to first order.

        All blocks of the step are flattened; of those whose responses are numbers.
        """
        line = copy(self)
        vars(line)["eta"] = self.eta + matmul(self.pullback.rows, step)
        return line

    def take(self, rows: np.ndarray) -> Line:
        """Some of the samples, for sums over what was made of them: their X and Z stay behind.

        Of those whose responses are numbers.
        """

        def some(array: Array | None) -> Array | None:
            return None if array is None else take(array, rows)

        chunk = Chunk(None, some(self.chunk.y), None, some(self.chunk.weight), self.chunk.start)
        return replace(
            self,
            y=some(self.y),
            eta=some(self.eta),
            share=some(self.share),
            pseudo=None if self.pseudo is None else (some(self.pseudo[0]), some(self.pseudo[1])),
            chunk=chunk,
            pullback=replace(self.pullback, rows=some(self.pullback.rows)),
            scale=None,
            Z=None,
        )


@dataclass(frozen=True)
class Swept:
    """All samples as seen from a point, where thresholds were chosen: they need no other sweep.

    Attributes
    ----------
    theta : Tucker
    lines : list of Line
    """

    theta: Tucker
    lines: list[Line]


class Seen:
    """A linearised chunk, and what a robustifier makes of it, worked out once.

    Attributes
    ----------
    line : Line
    score, bent : array
        Scores before and after they were bent.
    """

    def __init__(self, line: Line, score: Array, robust: Robustifier) -> None:
        self.line, self.score, self._robust = line, score, robust
        self.bent = robust.score(score)

    @lazy
    def raw(self) -> Array:
        """Per-sample gradients from bent scores, all blocks side by side."""
        return self.line.pullback.flat(self.bent)

    @lazy
    def cut(self) -> Array:
        """The gradients after they were bent themselves."""
        return self._robust.samples(self.raw, self.line.theta)

    @lazy
    def changed(self) -> list[int]:
        """How many entries of each block that changed."""
        theta, raw = self.line.theta, self.raw
        if self.cut is raw:
            return [0] * len(theta.blocks)
        count = namespace(raw).count_nonzero
        differ = self.cut != raw
        return [int(count(differ[:, part])) for part in theta.places]

    def among(self, chunk: Chunk) -> Seen:
        """The same samples with the weights of another chunk; what was worked out is kept."""
        other, line = copy(self), copy(self.line)
        vars(line)["chunk"] = chunk
        other.line = line
        return other

    @property
    def touched(self) -> np.ndarray:
        """Which samples have gradient entries that changed."""
        if self.cut is self.raw:
            return np.zeros(self.raw.shape[0], bool)
        return to_numpy(namespace(self.raw).any(self.cut != self.raw, axis=1))

    @property
    def whole(self) -> bool:
        """Whether nothing was shrunk or bent."""
        return self.line.whole and self.bent is self.score and not any(self.changed)

    @lazy
    def shares(self) -> Array | None:
        """What is left of each sample's gradient entries; None if all is."""
        if not any(self.changed):
            return None
        return share_of(self.cut, self.raw)

    @lazy
    def slopes(self) -> Array | None:
        """Derivatives of the cut gradient entries by the raw ones; None if all are one."""
        if not any(self.changed):
            return None
        return self._robust.sample_slopes(self.raw, self.line.theta)


def share_of(bent: Array, raw: Array) -> Array:
    """Ratio of the bent to the raw, the weight of iteratively reweighted least squares.

    A step with it is safe: it goes to the end of a quadratic above a convex bend's loss. One where
    there is nothing.
    """
    return namespace(raw).ones_like(raw) if bent is raw else ratio(bent, raw)


def weighted(entries: Array, chunk: Chunk) -> Array:
    """Per-sample entries times the samples' weights."""
    return entries if chunk.weight is None else entries * column(chunk.weight, entries.ndim)


def total_weight(samples: Chunk | Samples) -> Any:
    """Sum of the weights; without any, the number of samples."""
    if samples.weight is None:
        return samples.y.shape[0]
    return namespace(samples.weight).sum(samples.weight)
