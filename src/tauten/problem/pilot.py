"""What thresholds are chosen from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import Array, column, matrix_of, namespace, quiet, to_numpy
from .._lazy import lazy
from ..data import Chunk
from ..data.base import add_up
from ..data.threads import BLAS
from ..robust import Robustifier
from ..tucker import Tucker
from .samplewise import Kernel, per_sample, same_sweep
from .scatters import diagonals, scatters
from .seen import Line, Seen, Swept, View, total_weight, weighted
from .system import expected_error, expected_error_of_entries

if TYPE_CHECKING:
    from .problem import Problem

PILOT_SIZE = 2000  # samples that thresholds are chosen from; their quantiles are then good to 2%
PART_SIZE = 500  # of them at a time: gradients of a few hundred parameters are then in cache
SMALL = 500  # parameters whose matrices may be held for several thresholds at once
ROUNDING = 1e-10
HARDLY_MORE = 1.5  # times as many responses as are wanted: then all of them are taken


class PilotFit:
    """Some samples as seen from a point: what :meth:`Robustifier.calibrate` looks at.

    `sweep` says that gradients will be asked for: predictors then come of the same sweep. `rough`
    says that a better choice will follow.
    """

    def __init__(
        self,
        problem: Problem,
        theta: Tucker,
        samples: Chunk,
        *,
        sweep: bool = False,
        rough: bool = False,
    ) -> None:
        self.n, self.n_blocks, self.rough = problem.data.n, len(theta.blocks), rough
        self.residual, self.classes = problem.loss.residual, problem.loss.classes
        self.direct = problem.data.X is None
        self._problem = problem
        self._plain = replace(problem, robust=Robustifier()).kernel
        self._chunk, self._theta, self._sweep = samples, theta, sweep
        self._lines: dict[tuple[int, bytes], Line] = {}
        self._risks: list[float] = []
        self._entry_risks: list[float] = []

    @lazy
    def _parts(self) -> list[Chunk]:
        return self._chunk.parts(PART_SIZE)

    def _line(self, kernel: Kernel, part: Chunk) -> Line:
        """Samples that a kernel has swept; kernels that shrink them alike share a sweep."""
        key = same_sweep(kernel, part)
        if key not in self._lines:
            self._lines[key] = kernel.linearise(self._theta, part)
        return self._lines[key]

    def swept(self, robust: Robustifier) -> Swept | None:
        """The samples as a robustifier shrinks them, if all there are were swept like that."""
        if not self._lines or self._problem.reduce_bias or self._chunk.y.shape[0] < self.n:
            return None
        kernel = replace(self._plain, robust=robust)
        lines = [self._lines.get(same_sweep(kernel, part)) for part in self._parts]
        known = [line for line in lines if line is not None]
        return Swept(self._theta, known) if len(known) == len(lines) else None

    def _spread(self, kernel: Kernel, fn: Callable[[Seen], Any]) -> list[Any]:
        """What a function finds in each part of the samples, as a kernel sees it."""
        data = self._problem.data
        return data.spread(lambda part: fn(kernel.seen(self._line(kernel, part))), self._parts)

    @lazy
    def _eta(self) -> Array:
        """Linear predictors; in PCA a batch of one."""
        kernel = self._plain
        if self._sweep and not self.direct:
            return self._joined(lambda part: self._line(kernel, part).eta)
        return self._joined(lambda part: kernel.predict(self._theta, part).eta)

    def _joined(self, fn: Callable[[Chunk], Array]) -> Array:
        """What a function finds in each sample, a part of them at a time."""
        found = self._problem.data.spread(fn, [self._chunk] if self.direct else self._parts)
        return found[0] if len(found) == 1 else namespace(*found).concat(found, axis=0)

    def scores(self, most: int | None = None) -> np.ndarray:
        """Scores of the samples, nan where the response is missing: see :meth:`Pilot.scores`."""
        loss, eta, y = self._plain.loss, self._eta, self._chunk.y
        if most is not None and self.residual and math.prod(y.shape) > most:
            eta, y = _drawn(eta, y, most) or (eta, y)
        return to_numpy(loss.score(eta, y))

    def values(self) -> np.ndarray:
        """Losses of the samples, summed over the entries of a response."""
        entries = to_numpy(self._plain.loss.value(self._eta, self._chunk.y))
        return np.nansum(entries.reshape(entries.shape[0], -1), axis=1)

    def gradients(self, bend: Callable[[Array], Array] | None = None) -> list[np.ndarray]:
        """Per-sample gradients of each block, from scores bent by `bend`."""

        def flat(seen: Seen) -> np.ndarray:
            return to_numpy(seen.raw if bend is None else seen.line.pullback.flat(bend(seen.score)))

        return self._theta.split(np.concatenate(self._spread(self._plain, flat)))

    def risks(self, robusts: Sequence[Robustifier]) -> list[float]:
        """Expected ``‖Â - A‖²_F`` of fits with other robustifiers, at a point in canonical form.

        Those of small matrices are worked out side by side.
        """
        if not robusts:
            return []
        if len(robusts) > 1 and self._theta.d_eff > SMALL:
            return [self.risks([robust])[0] for robust in robusts]
        kernels = [replace(self._plain, robust=robust) for robust in robusts]
        spread = self._problem.data.spread

        def sums(part: Chunk) -> list[list[Any]]:
            return scatters(kernels, [self._line(kernel, part) for kernel in kernels])

        with quiet():  # where every gradient is cut there is no slope, and the error is infinite
            parts = zip(*spread(sums, self._parts), strict=True)
            found = spread(self._risk, [add_up(part) for part in parts])
        self._risks += found
        return found

    def entry_risks(self, robusts: Sequence[Robustifier]) -> list[float]:
        """The same as if every entry of the gradient were alone: with no matrices.

        Of those that differ in what they do to gradients alone, for responses that are numbers, and
        without a penalty, which couples the entries; else nan.
        """
        unknown = [math.nan] * len(robusts)
        if self._problem.ridge or not robusts:
            return unknown
        kernels = [replace(self._plain, robust=robust) for robust in robusts]

        def sums(part: Chunk) -> list[list[Any]] | None:
            return diagonals(kernels, [self._line(kernel, part) for kernel in kernels])

        with quiet():
            parts = self._problem.data.spread(sums, self._parts)
            if any(part is None for part in parts):
                return unknown
            totals = [add_up(part) for part in zip(*parts, strict=True)]
            found = [expected_error_of_entries(self._theta, *total) for total in totals]
        found = [risk * self._share for risk in found]
        self._entry_risks += found
        return found

    @lazy
    def _share(self) -> float:
        """Of all samples, by weight: errors of a fit of all are as many times smaller."""
        return float(total_weight(self._chunk) / total_weight(self._problem.data))

    @property
    def error(self) -> float:
        """Estimated standard error ``‖Â - A‖_F``: the least that was asked for; nan if none was."""
        for risks in (self._risks, self._entry_risks):
            if known := [risk for risk in risks if math.isfinite(risk)]:
                return math.sqrt(max(min(known), 0.0))
        return math.nan

    def _risk(self, sums: list[Any]) -> float:
        slope, moment, _ = per_sample(sums)
        slope = self._problem.with_ridge(self._theta, slope)
        with BLAS.all_for(4 * self._theta.d_eff**3):
            return self._share * expected_error(self._theta, slope, moment)

    def tensor_curvature(self, robust: Robustifier, direction: Array) -> float:
        """Mean of ``w_i <D, X_i>²`` over the samples, weighted, for a full tensor D."""
        kernel, chunk = replace(self._plain, robust=robust), self._chunk
        shrunk, scale, share = kernel.shrink(chunk)
        eta = self._eta if scale is None else self._eta * column(scale, self._eta.ndim)
        view = View(y=shrunk.y, eta=eta, share=share)
        weight = weighted(kernel.weight(view, kernel.score(view)), chunk)
        moved = self._joined(lambda part: kernel.design.inner(direction, part.X))
        moved = moved if scale is None else moved * column(scale, moved.ndim)
        return float(namespace(weight).sum(weight * moved**2) / total_weight(chunk))

    def canonical(self) -> PilotFit:
        """The same pilot with orthonormal factors and an all-orthogonal core."""
        point = self._theta.canonical()
        if _same_but_for_signs(point, self._theta):
            return self
        other = PilotFit(self._problem, point, self._chunk, sweep=self._sweep)
        other._risks, other._entry_risks = self._risks, self._entry_risks
        return other

    def norms(self) -> np.ndarray:
        """Norms of the (centred) covariates."""
        if self.direct:
            raise ValueError("shrinking covariates needs covariates: PCA has none")
        return to_numpy(self._plain.design.norms(self._chunk))


def _drawn(eta: Array, y: Array, size: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Predictors and observed responses, about so many; None where there are hardly more.

    Drawn, not strided: a stride may meet one entry of a response only. In PCA one row of
    predictors serves all.
    """
    predictors, responses = (to_numpy(matrix_of(a, 1)) for a in (eta, y))
    rng = np.random.default_rng(0)

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.divmod(rng.integers(responses.size, size=count), responses.shape[1])

    places = draw(size)
    share = float(np.mean(np.isfinite(responses[places])))
    if share * responses.size < HARDLY_MORE * size:
        return None
    if share < 1:  # more, for those that are missing
        places = draw(math.ceil(size / share))
    seen = np.isfinite(responses[places])
    rows, columns = (place[seen] for place in places)
    return predictors[rows % len(predictors), columns], responses[rows, columns]


def _same_but_for_signs(one: Tucker, other: Tucker) -> bool:
    """Whether blocks are equal up to the signs of factors' columns: sizes of gradients are then."""
    xp = namespace(one.core)
    sizes = ((xp.abs(a), xp.abs(b)) for a, b in zip(one.blocks, other.blocks, strict=True))
    return all(bool(xp.all(xp.abs(a - b) <= ROUNDING * xp.max(a))) for a, b in sizes)
