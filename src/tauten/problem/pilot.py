"""What thresholds are chosen from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._array import Array, column, namespace, quiet, to_numpy
from ..data import Chunk
from ..data.base import add_up
from ..robust import Robustifier
from ..tucker import Tucker
from .samplewise import Kernel, per_sample
from .seen import Line, Seen, View, total_weight, weighted
from .system import expected_error

if TYPE_CHECKING:
    from .problem import Problem

PILOT_SIZE = 2000  # samples that thresholds are chosen from; their quantiles are then good to 2%
PART_SIZE = 500  # of them at a time: gradients of a few hundred parameters are then in cache
ROUNDING = 1e-10


class PilotFit:
    """Some samples as seen from a point: what :meth:`Robustifier.calibrate` looks at."""

    def __init__(self, problem: Problem, theta: Tucker, samples: Chunk) -> None:
        self.n, self.n_blocks = problem.data.n, len(theta.blocks)
        self.residual, self.classes = problem.loss.residual, problem.loss.classes
        self.direct = problem.data.X is None
        self._problem = problem
        self._plain = replace(problem, robust=Robustifier()).kernel
        self._chunk, self._theta = samples, theta
        self._lines: dict[tuple[int, bytes], Line] = {}

    @cached_property
    def _parts(self) -> list[Chunk]:
        return self._chunk.parts(PART_SIZE)

    def _see(self, kernel: Kernel) -> Iterator[Seen]:
        """The samples as a kernel sees them; those that shrink them alike share a sweep."""
        for part in self._parts:
            _, scale, share = kernel.shrink(part)
            factors = scale if share is None else share
            key = (part.start, b"" if factors is None else to_numpy(factors).tobytes())
            if key not in self._lines:
                self._lines[key] = kernel.linearise(self._theta, part)
            yield kernel.seen(self._lines[key])

    @cached_property
    def _eta(self) -> Array:
        """Linear predictors."""
        return self._plain.predict(self._theta, self._chunk).eta

    def scores(self) -> np.ndarray:
        """Scores of the samples, nan where the response is missing."""
        return to_numpy(self._plain.loss.score(self._eta, self._chunk.y))

    def values(self) -> np.ndarray:
        """Losses of the samples, summed over the entries of a response."""
        entries = to_numpy(self._plain.loss.value(self._eta, self._chunk.y))
        return np.nansum(entries.reshape(entries.shape[0], -1), axis=1)

    def gradients(self, bend: Callable[[Array], Array] | None = None) -> list[np.ndarray]:
        """Per-sample gradients of each block, from scores bent by `bend`."""
        parts = [
            to_numpy(seen.raw if bend is None else seen.line.pullback.flat(bend(seen.score)))
            for seen in self._see(self._plain)
        ]
        return self._theta.split(np.concatenate(parts))

    def risk(self, robust: Robustifier) -> float:
        """Expected ``‖Â - A‖²_F`` with another robustifier, at a point in canonical form."""
        kernel = replace(self._plain, robust=robust)
        with quiet():  # where every gradient is cut there is no slope, and the error is infinite
            slope, moment, _ = per_sample(add_up(map(kernel.scatter, self._see(kernel))))
            slope = self._problem.with_ridge(self._theta, slope)
            return expected_error(self._theta, slope, moment)

    def tensor_curvature(self, robust: Robustifier, direction: Array) -> float:
        """Mean of ``w_i <D, X_i>²`` over the samples, weighted, for a full tensor D."""
        kernel, chunk = replace(self._plain, robust=robust), self._chunk
        shrunk, scale, share = kernel.shrink(chunk)
        eta = self._eta if scale is None else self._eta * column(scale, self._eta.ndim)
        view = View(y=shrunk.y, eta=eta, share=share)
        weight = weighted(kernel.weight(view, kernel.score(view)), chunk)
        moved = kernel.design.inner(direction, chunk.X, scale)
        return float(namespace(weight).sum(weight * moved**2) / total_weight(chunk))

    def canonical(self) -> PilotFit:
        """The same pilot with orthonormal factors and an all-orthogonal core."""
        point = self._theta.canonical()
        if _same_but_for_signs(point, self._theta):
            return self
        return PilotFit(self._problem, point, self._chunk)

    def norms(self) -> np.ndarray:
        """Norms of the (centred) covariates."""
        if self.direct:
            raise ValueError("shrinking covariates needs covariates: PCA has none")
        return to_numpy(self._chunk.norms(self._plain.design.center))


def _same_but_for_signs(one: Tucker, other: Tucker) -> bool:
    """Whether blocks are equal up to the signs of factors' columns: sizes of gradients are then."""
    xp = namespace(one.core)
    sizes = ((xp.abs(a), xp.abs(b)) for a, b in zip(one.blocks, other.blocks, strict=True))
    return all(bool(xp.all(xp.abs(a - b) <= ROUNDING * xp.max(a))) for a, b in sizes)
