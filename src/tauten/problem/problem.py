"""The problem, and passes over the data for one or several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from .._array import (
    Array,
    column,
    inverse_root,
    like,
    matrix_of,
    namespace,
    ratio,
    summed,
    to_numpy,
)
from .._lazy import lazy
from .._log import tell, thresholds
from .._median import by_stripes, observed_medians
from ..data import Chunk, Samples
from ..data.base import add_up
from ..designs import Covariate, Direct
from ..jeffreys import Jeffreys
from ..losses import Loss
from ..ridge import ridge_curvature, ridge_gradient
from ..robust import Robustifier
from ..tucker import Tucker, degrees_of_freedom
from .at_once import all_that_count, gradient_at_once
from .expected import expected_scores, gradient_and_tensor
from .gradient import Asked, Gradient
from .pilot import PILOT_SIZE, PilotFit
from .samplewise import Kernel, chunk_sums, line_sums, per_sample
from .seen import Line, Swept, View, total_weight, weighted
from .spread import mode_spreads
from .system import tangent_system

ROUGHLY_ENOUGH = 6  # samples to a parameter, from which half of them tell thresholds roughly


@dataclass(frozen=True)
class Problem:
    """An estimation problem: everything the solver needs to ask about.

    Parameters
    ----------
    data : Samples
    loss : Loss
    design : Covariate or Direct
    robust : Robustifier
        Calibrated, where it has thresholds to choose: see :meth:`calibrate`.
    missing : bool
        Whether y holds nan for missing entries.
    reduce_bias : bool
        Whether to add Jeffreys' prior to the likelihood, for losses of classes.
    ridge : float
        λ of a penalty ``½ λ ‖A‖²_F`` on the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> from tauten.data import Rows
    >>> from tauten.losses import Squared
    >>> theta = Tucker(np.ones(1), [np.ones((2, 1))])
    >>> problem = Problem(Rows(np.eye(2), np.array([1.0, 3.0])), Squared(), Covariate())
    >>> problem.gradient(theta).blocks.core
    array([-1.])
    """

    data: Samples
    loss: Loss
    design: Covariate | Direct
    robust: Robustifier = field(default_factory=Robustifier)
    missing: bool = False
    reduce_bias: bool = False
    ridge: float = 0.0

    @lazy
    def kernel(self) -> Kernel:
        """The work on one chunk."""
        return Kernel(self.loss, self.design, self.robust, self.missing)

    def width(self, theta: Tucker, *, curvature: bool = False) -> int:
        """How many numbers a pass makes of a sample: its gradient's, and its response's.

        For a curvature, where responses are tensors, as many as the last factor has columns times:
        see :class:`tauten.problem.normal.Slice`.
        """
        response = self.data.y.shape[1:]
        times = theta.rank[-1] if curvature and response and self.data.X is not None else 1
        return times * theta.d_eff + math.prod(response)

    def kernel_at(self, theta: Tucker) -> Kernel:
        """The same with the prior at a point, where there is one."""
        return replace(self.kernel, prior=self.prior(theta)) if self.reduce_bias else self.kernel

    def prior(self, theta: Tucker, line: Line | None = None) -> Jeffreys:
        """Jeffreys' prior at a point, from (some of) the samples: a correction needs no more.

        The information of all samples is taken to be that of the pilot's, as far as they go; `line`
        is what they look like from there, if that is known.
        """
        chunk, kernel = self.data.sample(PILOT_SIZE), self.kernel
        free = degrees_of_freedom(theta.shape, theta.rank)
        free += sum(theta.sizes[1 + theta.order :])
        total = total_weight(self.data)
        if free >= chunk.y.shape[0] and not self.ridge:
            return Jeffreys(None, min(1.0, free / float(total)))
        line = kernel.linearise(theta, chunk) if line is None else line
        # With a ridge there is less bias: its curvature adds to the information.
        mean = self.with_ridge(theta, kernel.information(line) / total_weight(chunk))
        root = inverse_root(tangent_system(theta, mean * total))
        return Jeffreys(theta.tangent.outward(root.T).T)

    def gradient(self, theta: Tucker, *, curvature: bool = False) -> Gradient:
        """Robust gradient at a point, and on demand its curvature, in one pass over the data."""
        return gradients([self], [theta], curvature=curvature)[0]

    def gradient_from(
        self, theta: Tucker, sums: list[Any], asked: Asked, n: int | None = None
    ) -> Gradient:
        """A gradient from sums over `n` samples, by default all."""
        matrix, correction, value, count, changed, total, tensor = sums
        mean = self.robust.reduce(total / column(count, 2))
        weight, n = summed(count), n or self.data.n
        shares = zip(changed.tolist(), theta.sizes, strict=True)
        found = Gradient(
            theta.with_blocks(theta.split(mean)),
            float(summed(value) / weight),
            tuple([c / max(1, size * n) for c, size in shares]),
            matrix / weight if asked.curvature else None,
            correction / weight if asked.correction else None,
            tensor / weight if asked.tensor else None,
        )
        return self._penalised(theta, found) if self.ridge else found

    def _penalised(self, theta: Tucker, found: Gradient) -> Gradient:
        """A gradient with that of the ridge, and its curvature."""
        penalty = ridge_gradient(theta)
        blocks = found.blocks.map(lambda g, r: g + self.ridge * r, penalty)
        matrix, tensor = found.curvature, found.tensor
        if matrix is not None:
            matrix = self.with_ridge(theta, matrix)
        if tensor is not None:
            tensor = tensor + self.ridge * theta.full()
        return replace(found, blocks=blocks, curvature=matrix, tensor=tensor)

    def with_ridge(self, theta: Tucker, slope: Array) -> Array:
        """A matrix of all blocks with the ridge's curvature, along steps that move A."""
        return slope + self.ridge * ridge_curvature(theta) if self.ridge else slope

    def curvature(self, theta: Tucker, *, slope: bool = False) -> Array:
        """Mean of ``J_iᵀ W_i J_i`` over the samples, alone: see :meth:`Kernel.curvature`."""
        kernel = self.kernel_at(theta)
        total, count = self.data.map_sum(
            lambda c: [*kernel.curvature(kernel.see(theta, c), slope=slope), total_weight(c)],
            self.width(theta, curvature=True),
        )
        return self.with_ridge(theta, total / count)

    def scatter(self, theta: Tucker) -> tuple[Array, Array, Array]:
        """``M, V / n, g``: slope, covariance of the mean, and mean, of the bent gradients.

        All blocks are flattened into one axis; slope and mean are with the ridge. Weighted samples
        count by the squares of their weights in the covariance, as a sum of independent terms does.
        """
        kernel = self.kernel_at(theta)
        width = self.width(theta, curvature=True)
        sums = self.data.map_sum(lambda c: kernel.scatter(kernel.see(theta, c)), width)
        slope, moment, mean = per_sample(sums)
        if self.ridge:
            mean = mean + self.ridge * ridge_gradient(theta).flat()
        return self.with_ridge(theta, slope), moment, mean

    def entry_curvature(self, theta: Tucker) -> Array:
        """Curvature to take a step with at each response entry, averaged over the samples."""
        kernel = self.kernel

        def sums(chunk: Chunk) -> list[Any]:
            view = kernel.predict(theta, chunk)
            weight = weighted(kernel.weight(view, kernel.score(view)), chunk)
            return [namespace(weight).sum(weight, axis=0), total_weight(chunk)]

        total, count = self.data.map_sum(sums, self.width(theta))
        return total / count

    def curvature_map(
        self, theta: Tucker, pseudo: tuple[Array, Array] | None = None
    ) -> Callable[[Tucker], Tucker]:
        """Gauss-Newton matrix of (some of) the samples as a map of directions, without the matrix.

        `pseudo` are pseudo-observations of Jeffreys' prior, if they are known.
        """
        chunk = self.data.sample(PILOT_SIZE)
        if pseudo is None:
            seen = self.kernel_at(theta).see(theta, chunk)
        else:
            seen = self.kernel.seen(replace(self.kernel.linearise(theta, chunk), pseudo=pseudo))
        weight = self.kernel.weight(seen.line, seen.score, seen.bent)
        return partial(self._curvature_along, seen.line, weighted(weight, chunk))

    def _curvature_along(self, line: Line, weight: Array, direction: Tucker) -> Tucker:
        xp, theta = namespace(weight), line.theta
        h = 1e-6  # predictors are polynomials: the difference is good to h
        ahead = theta.map(lambda x, d: x + h * d, direction)
        if line.pullback.rows is None:
            moved = (self.kernel.predict(ahead, line.chunk).eta - line.eta) / h
        else:
            moved = line.pullback.rows @ direction.flat()
        sums = line.pullback(weight * moved)
        size = total_weight(line.chunk)
        found = theta.with_blocks([xp.sum(g, axis=0) / size for g in sums])
        if not self.ridge:
            return found
        ends = ridge_gradient(ahead), ridge_gradient(theta)
        return found.map(lambda x, new, old: x + self.ridge * (new - old) / h, *ends)

    @lazy
    def spreads(self) -> list[Array]:
        """Covariance of the covariates along each of their modes, from some; in PCA none."""
        if self.data.X is None:
            return []
        return mode_spreads(self.data.sample(PILOT_SIZE), self.design.center)

    @lazy
    def middle(self) -> np.ndarray:
        """Entrywise median of (some of) the responses; nan where none was observed."""
        y = to_numpy(self.data.sample(PILOT_SIZE).y)
        rows = matrix_of(y, 1)
        found = by_stripes(
            lambda some: observed_medians(rows[:, some]), rows.shape[1], self.data.spread
        )
        return found.reshape(y.shape[1:])

    @lazy
    def gram(self) -> Array:
        """``ZᵀZ / n`` of the vector covariates."""
        return self.data.gram()

    def on_samples_of(self, other: Problem) -> Problem:
        """The problem on the samples of another of the same design; what that knows is kept."""
        new = replace(self, data=other.data)
        known = vars(other).keys() & {"spreads", "gram"}
        vars(new).update({name: vars(other)[name] for name in known})
        return new

    def tensor_gradient(self, theta: Tucker) -> tuple[Array, Array | None]:
        """Gradient with respect to the full tensor A, and the Newton step of the linear block."""
        return tensor_gradients([self], [theta])[0]

    def _mean(self, theta: Tucker, sums: list[Any]) -> tuple[Array, Array | None]:
        """Mean gradient, and the Newton step of the linear block if there is one."""
        count, total, *rest = sums
        if not rest:
            return total / count, None
        xp = namespace(total)
        step = xp.linalg.pinv(rest[1]) @ rest[0]
        return total / count, xp.reshape(step, theta.blocks[-1].shape)

    def scores(self, theta: Tucker) -> np.ndarray:
        """Scores of all samples, shrunk but not bent; nan where the response is missing."""
        return scores([self], [theta])[0]

    def values(self, theta: Tucker) -> np.ndarray:
        """Losses of all response entries, shrunk; nan where the response is missing."""
        return values([self], [theta])[0]

    def predictors(self, theta: Tucker) -> Array:
        """Linear predictors of all samples."""
        design = self.design

        def predictors(chunk: Chunk) -> Array:
            eta = design.predict(theta, chunk.X, chunk.Z)
            return namespace(eta).broadcast_to(eta, chunk.y.shape)  # in PCA there is one for all

        return self.data.map_rows(predictors, self.width(theta))

    def influence(self, theta: Tucker) -> np.ndarray:
        """For each sample, how much of its gradient's norm the robustifier cut away, in [0, 1]."""
        kernel, plain = self.kernel, replace(self, robust=Robustifier()).kernel

        def shares(line: Line) -> Array:
            seen = kernel.seen(line)
            if seen.whole:
                return like(np.zeros(line.y.shape[0]), seen.score)
            line = line if line.whole else plain.linearise(theta, line.chunk)
            raw = plain.seen(line).raw
            xp = namespace(raw)
            kept, whole = (xp.linalg.vector_norm(g, axis=1) for g in (seen.cut, raw))
            # Bent entries of a response can cancel less than the raw ones, and more be kept.
            return 1 - ratio(xp.minimum(kept, whole), whole)

        if self.swept is not None and self.swept.theta is theta:
            parts = self.data.spread(shares, self.swept.lines)
            return to_numpy(namespace(*parts).concat(parts, axis=0))
        found = self.data.map_rows(lambda c: shares(kernel.linearise(theta, c)), self.width(theta))
        return to_numpy(found)

    @lazy
    def swept(self) -> Swept | None:
        """All samples as they look from where thresholds were chosen, if all were looked at.

        Only :meth:`calibrate` knows; a problem that differs in anything does not.
        """
        return None

    @lazy
    def error(self) -> float:
        """Estimated standard error ``‖Â - A‖_F`` where thresholds were chosen by it; else nan."""
        return math.nan

    def pilot(self, theta: Tucker, samples: Chunk | None = None) -> PilotFit:
        """Return what thresholds are chosen from, at a point; by default 2,000 samples at most."""
        return PilotFit(self, theta, self.data.sample(PILOT_SIZE) if samples is None else samples)

    def calibrate(self, theta: Tucker, *, rough: bool = False) -> Problem:
        """Return the problem with its robustifier's thresholds chosen at a point.

        A `rough` choice, of thresholds that better ones are found with, looks at a thousand samples
        where they are many, and less closely: see :attr:`tauten.robust.base.Pilot.rough`.
        Not where these are all there are: the next step needs the sweep of all.
        """
        samples = self.data.sample(PILOT_SIZE)
        if rough and ROUGHLY_ENOUGH * theta.d_eff <= samples.y.shape[0] < self.data.n:
            samples = samples.thin(PILOT_SIZE // 2)
        pilot = PilotFit(self, theta, samples, sweep=True, rough=rough)
        robust = self.robust.calibrate(pilot)
        tell("thresholds", lambda: thresholds(robust))
        new = replace(self, robust=robust)
        vars(new).update(swept=pilot.swept(robust), error=pilot.error)
        return new


def gradients(
    problems: Sequence[Problem],
    thetas: Sequence[Tucker],
    *,
    curvature: bool | Sequence[Asked] = False,
) -> list[Gradient]:
    """Robust gradients of problems on the same samples, in one pass over them.

    The problems may differ in weights, loss and robustifier, and each has a point of its own.
    Curvatures are of all of them, or as a sequence says.
    """
    if isinstance(curvature, bool):
        asked = [Asked(curvature, curvature, curvature)] * len(problems)
    else:
        asked = list(curvature)
    each = list(zip(problems, thetas, asked, strict=True))
    if all(map(all_that_count, problems)):
        return problems[0].data.spread(lambda one: gradient_at_once(*one), each)
    swept = problems[0].swept
    if len(each) == 1 and swept is not None and swept.theta is thetas[0]:
        return [_gradient_of_swept(problems[0], swept, asked[0])]
    if len(each) == 1 and asked[0].tensor and (known := expected_scores(*each[0][:2])) is not None:
        return [gradient_and_tensor(*each[0], known)]
    work = partial(_chunk_sums, [(p.kernel_at(theta), theta) for p, theta, _ in each], asked)
    totals = pass_of_each(problems, thetas, work, curvature=any(one.curvature for one in asked))
    return [
        problem.gradient_from(theta, total, one)
        for (problem, theta, one), total in zip(each, totals, strict=True)
    ]


def _gradient_of_swept(problem: Problem, swept: Swept, asked: Asked) -> Gradient:
    """A gradient at the point that the samples were swept at."""
    kernel = problem.kernel
    sums = problem.data.spread(lambda line: line_sums(kernel, line, asked), swept.lines)
    total = add_up(sums)
    return problem.gradient_from(swept.theta, total, asked)


def tensor_gradients(
    problems: Sequence[Problem], thetas: Sequence[Tucker]
) -> list[tuple[Array, Array | None]]:
    """Gradients with respect to the full tensor A, and Newton steps of the linear blocks.

    Of problems on the same samples, in one pass over them.
    """
    sights = [(p.kernel, theta, theta.full()) for p, theta in zip(problems, thetas, strict=True)]

    def sums(chunks: Sequence[Chunk]) -> list[Any]:
        each = zip(sights, chunks, strict=True)
        found = [k.tensor_gradient(theta, tensor, chunk) for (k, theta, tensor), chunk in each]
        tensors = sights[0][0].design.adjoints([scores for _, scores, *_ in found], chunks[0].X)
        rows = zip(found, tensors, strict=True)
        return [item for (n, _, *rest), tensor in rows for item in (n, tensor, *rest)]

    totals = zip(problems, thetas, pass_of_each(problems, thetas, sums), strict=True)
    return [problem._mean(theta, total) for problem, theta, total in totals]


def block_gradients(
    problems: Sequence[Problem], thetas: Sequence[Tucker]
) -> list[tuple[Tucker, Array | None]]:
    """The same with respect to the blocks, in one read of X."""
    kernels = [problem.kernel for problem in problems]

    def sums(chunks: Sequence[Chunk]) -> list[Any]:
        each = zip(kernels, thetas, chunks, strict=True)
        return [item for k, theta, chunk in each for item in k.block_gradient(theta, chunk)]

    found = []
    for problem, theta, total in zip(
        problems, thetas, pass_of_each(problems, thetas, sums), strict=True
    ):
        mean, step = problem._mean(theta, total)
        found.append((theta.with_blocks(theta.split(mean)), step))
    return found


def pass_of_each(
    problems: Sequence[Problem],
    thetas: Sequence[Tucker],
    sums: Callable[[list[Chunk]], Sequence[Any]],
    *,
    curvature: bool = False,
) -> Iterator[list[Any]]:
    """Sums over the same samples for one problem after the other, from one pass."""
    each = zip(problems, thetas, strict=True)
    width = max(problem.width(theta, curvature=curvature) for problem, theta in each)
    totals = problems[0].data.map_sums(sums, [problem.data for problem in problems], width)
    size = len(totals) // len(problems)
    return (totals[low : low + size] for low in range(0, len(totals), size))


def _chunk_sums(
    sights: Sequence[tuple[Kernel, Tucker]], asked: Sequence[Asked], chunks: Sequence[Chunk]
) -> list[Any]:
    """Sums of one problem after the other; those that differ in weights alone are one sight.

    The gradients with respect to the full tensor come of one product with X for all problems.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, (kernel, theta) in enumerate(sights):
        alike.setdefault((id(theta), *map(id, vars(kernel).values())), []).append(i)
    found: dict[int, list[Any]] = {}
    for first, *others in alike.values():
        kernel, theta = sights[first]
        seen = kernel.see(theta, chunks[first])
        found[first] = chunk_sums(kernel, seen, asked[first])
        found |= {i: chunk_sums(kernel, seen.among(chunks[i]), asked[i]) for i in others}
    if full := [i for i, one in enumerate(asked) if one.tensor]:
        scores = [found[i][-1] for i in full]
        tensors = sights[0][0].design.adjoints(scores, chunks[0].X)
        for i, tensor in zip(full, tensors, strict=True):
            found[i][-1] = tensor
    return list(chain.from_iterable(found[i] for i in range(len(sights))))


def scores(problems: Sequence[Problem], thetas: Sequence[Tucker]) -> list[np.ndarray]:
    """Scores of problems on the same samples, in one pass: see :meth:`Problem.scores`."""
    return _responses(problems, thetas, lambda loss, view: loss.score(view.eta, view.y))


def values(problems: Sequence[Problem], thetas: Sequence[Tucker]) -> list[np.ndarray]:
    """Losses of problems on the same samples, in one pass: see :meth:`Problem.values`."""

    def shrunk(loss: Loss, view: View) -> Array:
        entries = loss.value(view.eta, view.y)
        return entries if view.share is None else entries * column(view.share, entries.ndim)

    return _responses(problems, thetas, shrunk)


def _responses(
    problems: Sequence[Problem], thetas: Sequence[Tucker], fn: Callable[[Loss, View], Array]
) -> list[np.ndarray]:
    kernels, design = [problem.kernel for problem in problems], problems[0].design

    def entries(chunk: Chunk) -> Array:
        each = zip(kernels, thetas, design.inners(thetas, chunk.X), strict=True)
        found = [fn(k.loss, k.predict(theta, chunk, inner)) for k, theta, inner in each]
        return namespace(found[0]).stack(found, axis=1)

    width = max(map(Problem.width, problems, thetas))
    stacked = to_numpy(problems[0].data.map_rows(entries, width))
    return [stacked[:, i] for i in range(len(problems))]
