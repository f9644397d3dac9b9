"""Data × loss × design × robustifier: the only place where the four meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ._array import (
    Array,
    column,
    like,
    matrix_of,
    namespace,
    product,
    quiet,
    ratio,
    reshape,
    to_numpy,
)
from ._log import tell, thresholds
from .data import Chunk, Samples
from .designs import Covariate, Direct, Pullback
from .jeffreys import Jeffreys, flat, unit
from .losses import Loss
from .robust import Robustifier
from .tucker import Tucker, degrees_of_freedom, unfold

PILOT_SIZE = 2000  # samples that thresholds are chosen from; their quantiles are then good to 2%


Share = Callable[[Callable[[Array], Array], Array], Array]  # of a bend and what it bends


def _share(bend: Callable[[Array], Array], raw: Array) -> Array:
    """Ratio of the bent to the raw, the weight of iteratively reweighted least squares.

    A step with it is safe: it goes to the end of a quadratic above a convex bend's loss. One where
    there is nothing.
    """
    one = namespace(raw).ones_like(raw)
    bent = bend(raw)
    return one if bent is raw else ratio(bent, raw, otherwise=one)


def _slope(bend: Callable[[Array], Array], raw: Array) -> Array:
    """Derivative of an entrywise bend, by central differences; one where there is nothing."""
    xp = namespace(raw)
    one = xp.ones_like(raw)
    h = max(1e-6, 1e4 * float(xp.finfo(raw.dtype).eps)) * xp.abs(raw)  # well above rounding
    if (ahead := bend(above := raw + h)) is above:
        return one
    return ratio(ahead - bend(raw - h), 2 * h, otherwise=one)


@dataclass(frozen=True)
class Gradient:
    """A robust gradient at a point.

    Attributes
    ----------
    blocks : Tucker
        ``(G_0, G_1, ..., G_d)``, of the type of the point.
    value : float
        Mean loss of the samples, shrunk if the robustifier shrinks them, but not bent.
    truncated : tuple of float
        For each block, the share of per-sample gradient entries changed after the score was bent.
    curvature : array, optional
        Mean of ``J_iᵀ W_i J_i``: the Gauss-Newton matrix of all blocks, flattened.
    correction : array, optional
        What the slopes of bent scores and gradients add to it: see :meth:`Kernel.hessian`.
    tensor : array, optional
        Mean of ``X_i ∘ s_i``, for s_i the bent scores: the gradient with respect to the full
        tensor A. With the point it makes the rest of the Hessian: see
        :func:`tauten.manifold.manifold_curvature`.
    """

    blocks: Tucker
    value: float
    truncated: tuple[float, ...]
    curvature: Array | None = None
    correction: Array | None = None
    tensor: Array | None = None


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
    chunk : Chunk
    pullback : callable
        From scores to per-sample gradients: see :meth:`tauten.designs.Covariate.linearise`.
    scale : array (n,), optional
        Factors that shrink each X_i.
    """

    chunk: Chunk
    pullback: Pullback
    scale: Array | None = None


class Seen:
    """A linearised chunk, and what a robustifier makes of it, worked out once.

    Attributes
    ----------
    line : Line
    score, bent : array
        Scores before and after they were bent.
    raw : list of arrays
        Per-sample gradients of each block, from bent scores.
    """

    def __init__(self, kernel: Kernel, line: Line) -> None:
        self.line = line
        self.score = kernel.score(line)
        self.bent = kernel.robust.score(self.score)
        self.raw = list(line.pullback(self.bent))


@dataclass(frozen=True)
class Kernel:
    """What is done to a chunk of samples. It holds no data, so it can be sent where they are."""

    loss: Loss
    design: Covariate | Direct
    robust: Robustifier
    missing: bool = False
    prior: Jeffreys | None = None

    def shrink(self, chunk: Chunk) -> tuple[Chunk, Array | None, Array | None]:
        """Shrink the samples: return them, the factors for X, which is not touched, and shares.

        With a loss of the residual a sample shrinks as a whole, and its squared loss by the square
        of the factor; with any other loss it is that share of it that counts.
        """
        if chunk.X is None:
            return chunk, None, None
        scale = self.robust.shrink(partial(chunk.norms, self.design.center))
        if scale is None:
            return chunk, None, None
        if not self.loss.residual:
            return chunk, None, scale**2
        Z = None if chunk.Z is None else chunk.Z * column(scale, chunk.Z.ndim)
        return replace(chunk, y=chunk.y * column(scale, chunk.y.ndim), Z=Z), scale, None

    def linearise(self, theta: Tucker, chunk: Chunk) -> Line:
        """Sweep the (shrunk) samples at a point."""
        shrunk, scale, share = self.shrink(chunk)
        eta, pullback = self.design.linearise(theta, shrunk.X, shrunk.Z, scale)
        pseudo = None
        if self.prior is not None:
            pseudo = self.prior.pseudo_observations(self.loss, eta, pullback, share)
        seen = {"y": shrunk.y, "eta": eta, "share": share, "pseudo": pseudo}
        return Line(**seen, chunk=chunk, pullback=pullback, scale=scale)

    def see(self, theta: Tucker, chunk: Chunk) -> Seen:
        """Sweep the samples at a point, and bend their scores."""
        return Seen(self, self.linearise(theta, chunk))

    def predict(self, theta: Tucker, chunk: Chunk) -> View:
        """Return the shrunk samples as seen from a point, alone."""
        chunk, scale, share = self.shrink(chunk)
        return View(y=chunk.y, eta=self.design.predict(theta, chunk.X, chunk.Z, scale), share=share)

    def inner(self, theta: Tucker, tensor: Array, chunk: Chunk) -> View:
        """The same for a full tensor A; of the point, only the vector coefficients count."""
        chunk, scale, share = self.shrink(chunk)
        eta = self.design.inner(tensor, chunk.X, scale)
        if chunk.Z is not None:
            eta = eta + product(chunk.Z, matrix_of(theta.blocks[-1], 1), eta.shape[1:])
        return View(y=chunk.y, eta=eta, share=share)

    def value(self, view: View) -> Array:
        """Loss of each response entry; zero where it is missing."""
        return self._counted(self.loss.value(view.eta, view.y), view)

    def score(self, view: View) -> Array:
        """Score of each sample before it is bent; zero where the response is missing."""
        score = self.loss.score(view.eta, view.y)
        return self._counted(score if view.pseudo is None else score + view.pseudo[0], view)

    def weight(self, view: View, score: Array, share: Share = _share) -> Array:
        """Curvature to step with at each response entry, times what bending left of its score."""
        weight = self.loss.weight(view.eta, view.y)
        if view.pseudo is not None:
            undecided = self.loss.undecided(view.eta)
            weight = weight + view.pseudo[1] * self.loss.weight(view.eta, undecided)
        return self._counted(weight, view) * share(self.robust.score, score)

    def bend(self, seen: Seen) -> list[Array]:
        """Per-sample gradients of each block, bent."""
        return [self.robust.sample(raw, k) for k, raw in enumerate(seen.raw)]

    def gradient(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: value, samples per block, changed entries, then the gradients."""
        members = self._members(seen.line.chunk)
        value = _matmul_rows(members, self.value(seen.line))
        bent = self.bend(seen)
        changed = [_count_changed(b, raw) for b, raw in zip(bent, seen.raw, strict=True)]
        sums = [_matmul_rows(members, b) for b in bent]
        return [value, namespace(members).sum(members, axis=1), np.asarray(changed), *sums]

    def adjoint(self, seen: Seen) -> Array:
        """Sum over a chunk of ``X_i ∘ s_i``, for bent scores, of samples as far as they are kept.

        What is kept of a sample is the mean share of its gradient entries that bending leaves: a
        number without units.
        """
        line = seen.line
        kept = namespace(seen.bent).mean(self._kept_entries(seen, _share), axis=1)
        score = _weighted(seen.bent * column(kept, seen.bent.ndim), line.chunk)
        return self.design.adjoint(score, line.chunk.X, line.scale)

    def curvature(self, seen: Seen, *, slope: bool = False) -> list[Array]:
        """Sum over a chunk of ``J_iᵀ W_i J_i``, all blocks flattened into one axis.

        Bending acts as a weight in [0, 1] on each score and on each gradient entry, as in
        iteratively reweighted least squares: the ratio of the bent to the raw. With `slope`, it is
        the derivative of the bent gradient instead.
        """
        kept = self._kept_entries(seen, _slope if slope else _share)
        if slope:
            weight = self._hessian(seen.line) * _slope(self.robust.score, seen.score)
        else:
            weight = self.weight(seen.line, seen.score)
        weight = _weighted(weight, seen.line.chunk)
        return [self._normal_matrix(seen.line, weight, kept, exact=slope)]

    def hessian(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: safe curvature, what slopes add to it, and the full gradient.

        The slopes are those of the bends. They may be negative, so that a step with them goes to
        the end of the way if that is near, and anywhere if it is not.
        """
        safe = self.curvature(seen)[0]
        kept = self._kept_entries(seen, _slope)
        weight = _weighted(self.weight(seen.line, seen.score, _slope), seen.line.chunk)
        slopes = self._normal_matrix(seen.line, weight, kept, exact=False)
        return [safe, slopes - safe, self.adjoint(seen)]

    def _kept_entries(self, seen: Seen, share: Share) -> Array:
        """What bending leaves of each sample's gradient entries, all blocks flattened."""
        return flat(share(partial(self.robust.sample, k=k), g) for k, g in enumerate(seen.raw))

    def information(self, line: Line) -> Array:
        """Sum over a chunk of ``J_iᵀ W_i J_i`` with the loss's own curvature, nothing bent."""
        weight = _weighted(self._hessian(line), line.chunk)
        return self._normal_matrix(line, weight, 1.0, exact=True)

    def _hessian(self, view: View) -> Array:
        """Curvature of the loss at each response entry; of a softmax, the part diag(p)."""
        softmax = self.loss.one_hot
        entries = self.loss.mean(view.eta) if softmax else self.loss.curvature(view.eta, view.y)
        return self._counted(entries, view)

    def _normal_matrix(self, line: Line, weight: Array, kept: Any, *, exact: bool) -> Array:
        """``Σ_i (K_i ⊙ J_i)ᵀ W_i J_i`` for weights of the response entries and of gradients'."""
        n, total, softmax = weight.shape[0], 0.0, self.loss.one_hot
        for index in np.ndindex(*weight.shape[1:]):
            rows = flat(line.pullback(unit(weight[:1, ...], index)))
            rows = namespace(rows).broadcast_to(rows, (n, rows.shape[1]))  # in PCA all share one
            total = total + (kept * rows * column(weight[(..., *index)], 2)).T @ rows
        return total - self._coupling(line, weight, kept, exact) if softmax else total

    def _coupling(self, line: Line, weight: Array, kept: Any, exact: bool) -> Array:
        """The part p pᵀ of the Hessian diag(p) - p pᵀ of a softmax.

        Samples in the wrong class have no curvature, and a cut gradient no longer sums to zero over
        the classes, though no sum of the predictors means anything; if not `exact`, such samples
        keep their diag(p), so that a step which follows them does not run away.
        """
        xp, total = namespace(weight), 0.0
        p = self.loss.mean(line.eta) * xp.ones_like(weight)
        y = self._observed(line.y, line.y)
        if line.pseudo is not None:
            y = (y + line.pseudo[1] * self.loss.undecided(y)) / (1 + line.pseudo[1])
        right = 1.0
        if not exact:
            right = xp.sum(p * y, axis=-1, keepdims=True) * column(xp.min(kept, axis=1), p.ndim)
        for index in np.ndindex(*weight.shape[1:-1]):
            group = sum(unit(weight[:1, ...], (*index, c)) for c in range(weight.shape[-1]))
            left = flat(line.pullback(weight * right * group))
            total = total + (kept * left).T @ flat(line.pullback(p * group))
        return total

    def scatter(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: slope, second moment and total of the bent gradients, and weights."""
        chunk = seen.line.chunk
        bent = _weighted(flat(iter(self.bend(seen))), chunk)
        slope = self.curvature(seen, slope=True)
        return [*slope, bent.T @ bent, namespace(bent).sum(bent, axis=0), _total_weight(chunk)]

    def tensor_gradient(self, theta: Tucker, tensor: Array, chunk: Chunk) -> list[Any]:
        """Sums over a chunk: gradient with respect to the full tensor, and the linear block's."""
        view, (shrunk, scale, _) = self.inner(theta, tensor, chunk), self.shrink(chunk)
        score = self.score(view)
        bent = _weighted(self.robust.score(score), chunk)
        weight = _weighted(self.weight(view, score), chunk)
        sums = [_total_weight(chunk), self.design.adjoint(bent, chunk.X, scale)]
        if shrunk.Z is not None:
            each = namespace(weight).mean(matrix_of(weight, 1), axis=1)  # one for all of a response
            sums += [shrunk.Z.T @ matrix_of(bent, 1), (shrunk.Z * column(each, 2)).T @ shrunk.Z]
        return sums

    def _counted(self, entries: Array, view: View) -> Array:
        """Entries times what is left of their sample; zero where the response is missing."""
        if view.share is not None:
            entries = entries * column(view.share, entries.ndim)
        return self._observed(entries, view.y)

    def _observed(self, entries: Array, y: Array) -> Array:
        if not self.missing:
            return entries
        xp = namespace(y)
        return xp.where(xp.isnan(y), xp.zeros_like(entries), entries)

    def _members(self, chunk: Chunk) -> Array:
        """Weights (n_blocks_, n) of the samples in the blocks: sample i is in i mod n_blocks_."""
        m, n_blocks = chunk.y.shape[0], self.robust.n_blocks_
        weight = like(np.ones(m), chunk.y) if chunk.weight is None else chunk.weight
        weight = reshape(weight, (1, m))
        if n_blocks == 1:
            return weight
        block = (chunk.start + np.arange(m)) % n_blocks
        return weight * like(block == np.arange(n_blocks)[:, None], chunk.y)


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

    @property
    def kernel(self) -> Kernel:
        """The work on one chunk."""
        return Kernel(self.loss, self.design, self.robust, self.missing)

    def kernel_at(self, theta: Tucker) -> Kernel:
        """The same with the prior at a point, where there is one."""
        return replace(self.kernel, prior=self.prior(theta)) if self.reduce_bias else self.kernel

    def prior(self, theta: Tucker) -> Jeffreys:
        """Jeffreys' prior at a point, from (some of) the samples: a correction needs no more.

        The information of all samples is taken to be that of the pilot's, as far as they go.
        """
        chunk, kernel = self.data.sample(PILOT_SIZE), self.kernel
        free = degrees_of_freedom(theta.shape, theta.rank)
        free += sum(math.prod(block.shape) for block in theta.blocks[1 + theta.order :])
        total = _total_weight(self.data)
        if free >= chunk.y.shape[0]:
            return Jeffreys(None, min(1.0, free / float(total)))
        line = kernel.linearise(theta, chunk)
        matrix = kernel.information(line) * (total / _total_weight(chunk))
        inverse = namespace(matrix).linalg.inv(horizontal_system(theta, matrix))
        return Jeffreys(theta.horizontal(theta.horizontal(inverse).T).T)

    def gradient(self, theta: Tucker, *, curvature: bool = False) -> Gradient:
        """Robust gradient at a point, and on demand its curvature, in one pass over the data."""
        return gradients([self], [theta], curvature=curvature)[0]

    def _gradient(self, theta: Tucker, total: list[Any], curvature: bool) -> Gradient:
        matrix, correction, tensor, value, count, changed, *sums = total
        xp = namespace(theta.core)
        means = [s / column(count, s.ndim) for s in sums]
        sizes = [self.data.n * math.prod(block.shape) for block in theta.blocks]
        return Gradient(
            theta.with_blocks([self.robust.reduce(mean) for mean in means]),
            float(xp.sum(value) / xp.sum(count)),
            tuple(float(c / size) for c, size in zip(changed, sizes, strict=True)),
            matrix / xp.sum(count) if curvature else None,
            correction / xp.sum(count) if curvature else None,
            tensor / xp.sum(count) if curvature else None,
        )

    def curvature(self, theta: Tucker, *, slope: bool = False) -> Array:
        """Mean of ``J_iᵀ W_i J_i`` over the samples, alone: see :meth:`Kernel.curvature`."""
        kernel = self.kernel_at(theta)
        total, count = self.data.map_sum(
            lambda c: [*kernel.curvature(kernel.see(theta, c), slope=slope), _total_weight(c)]
        )
        return total / count

    def sandwich(self, theta: Tucker) -> Array:
        """Asymptotic covariance of the flattened blocks: see :func:`sandwich`."""
        slope, moment, _ = self.scatter(theta)
        return sandwich(theta, slope, moment)

    def scatter(self, theta: Tucker) -> tuple[Array, Array, Array]:
        """``M, V / n, g``: slope, covariance of the mean, and mean, of the bent gradients.

        All blocks are flattened into one axis. Weighted samples count by the squares of their
        weights in the covariance, as a sum of independent terms does.
        """
        kernel = self.kernel_at(theta)
        return _per_sample(self.data.map_sum(lambda c: kernel.scatter(kernel.see(theta, c))))

    def entry_curvature(self, theta: Tucker) -> Array:
        """Curvature to take a step with at each response entry, averaged over the samples."""
        kernel = self.kernel

        def sums(chunk: Chunk) -> list[Any]:
            view = kernel.predict(theta, chunk)
            weight = _weighted(kernel.weight(view, kernel.score(view)), chunk)
            return [namespace(weight).sum(weight, axis=0), _total_weight(chunk)]

        total, count = self.data.map_sum(sums)
        return total / count

    def curvature_along(self, theta: Tucker, direction: Tucker) -> Tucker:
        """Gauss-Newton matrix times a direction, from (some of) the samples, without the matrix."""
        chunk, kernel = self.data.sample(PILOT_SIZE), self.kernel_at(theta)
        seen = kernel.see(theta, chunk)
        xp, line = namespace(seen.score), seen.line
        h = 1e-6  # predictors are polynomials: the difference is good to h
        moved = kernel.predict(theta.map(lambda x, d: x + h * d, direction), chunk).eta
        weight = _weighted(kernel.weight(line, seen.score) * (moved - line.eta) / h, chunk)
        return theta.with_blocks(
            [xp.sum(g, axis=0) / _total_weight(chunk) for g in line.pullback(weight)]
        )

    def tensor_gradient(self, theta: Tucker) -> tuple[Array, Array | None]:
        """Gradient with respect to the full tensor A, and the Newton step of the linear block."""
        kernel, tensor = self.kernel, theta.full()
        count, total, *rest = self.data.map_sum(lambda c: kernel.tensor_gradient(theta, tensor, c))
        if not rest:
            return total / count, None
        xp = namespace(tensor)
        step = xp.linalg.pinv(rest[1]) @ rest[0]
        return total / count, xp.reshape(step, theta.blocks[-1].shape)

    def tensor_curvature(self, theta: Tucker, direction: Array) -> float:
        """Mean of ``w_i <D, X_i>²`` over the pilot's samples, weighted, for a full tensor D."""
        kernel, chunk = self.kernel, self.data.sample(PILOT_SIZE)
        view = kernel.predict(theta, chunk)
        weight = _weighted(kernel.weight(view, kernel.score(view)), chunk)
        moved = self.design.inner(direction, chunk.X, kernel.shrink(chunk)[1])
        return float(namespace(weight).sum(weight * moved**2) / _total_weight(chunk))

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

        return self.data.map_rows(predictors)

    def influence(self, theta: Tucker) -> np.ndarray:
        """For each sample, how much of its gradient's norm the robustifier cut away, in [0, 1]."""
        kernel, plain = self.kernel, replace(self, robust=Robustifier()).kernel

        def shares(chunk: Chunk) -> Array:
            bent = flat(iter(kernel.bend(kernel.see(theta, chunk))))
            raw = flat(iter(plain.see(theta, chunk).raw))
            xp = namespace(raw)
            kept, whole = (xp.linalg.vector_norm(g, axis=1) for g in (bent, raw))
            # Bent entries of a response can cancel less than the raw ones, and more be kept.
            return 1 - ratio(xp.minimum(kept, whole), whole, otherwise=xp.ones_like(whole))

        return to_numpy(self.data.map_rows(shares))

    def pilot(self, theta: Tucker) -> PilotFit:
        """Return what thresholds are chosen from, at a point."""
        return PilotFit(self, theta)

    def calibrate(self, theta: Tucker) -> Problem:
        """Return the problem with its robustifier's thresholds chosen at a point."""
        robust = self.robust.calibrate(self.pilot(theta))
        tell("thresholds", lambda: thresholds(robust))
        return replace(self, robust=robust)


def gradients(
    problems: Sequence[Problem], thetas: Sequence[Tucker], *, curvature: bool = False
) -> list[Gradient]:
    """Robust gradients of problems on the same samples, in one pass over them.

    The problems may differ in weights, loss and robustifier, and each has a point of its own.
    """
    pairs = list(zip(problems, thetas, strict=True))
    work = [partial(_chunk_sums, p.kernel_at(theta), theta, curvature) for p, theta in pairs]
    totals = iter(problems[0].data.map_sums(work, [problem.data for problem in problems]))
    return [
        problem._gradient(theta, list(islice(totals, 6 + len(theta.blocks))), curvature)
        for problem, theta in pairs
    ]


def _chunk_sums(kernel: Kernel, theta: Tucker, curvature: bool, chunk: Chunk) -> list[Any]:
    seen = kernel.see(theta, chunk)
    return [*(kernel.hessian(seen) if curvature else [0.0] * 3), *kernel.gradient(seen)]


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
    kernels = [problem.kernel for problem in problems]

    def entries(chunk: Chunk) -> Array:
        pairs = zip(kernels, thetas, strict=True)
        found = [fn(kernel.loss, kernel.predict(theta, chunk)) for kernel, theta in pairs]
        return namespace(found[0]).stack(found, axis=1)

    stacked = to_numpy(problems[0].data.map_rows(entries))
    return [stacked[:, i] for i in range(len(problems))]


class PilotFit:
    """The samples as seen from a point: what :meth:`Robustifier.calibrate` looks at."""

    def __init__(self, problem: Problem, theta: Tucker) -> None:
        self.n, self.n_blocks = problem.data.n, len(theta.blocks)
        self.residual, self.classes = problem.loss.residual, problem.loss.classes
        self.direct = problem.data.X is None
        self._problem = problem
        self._plain = replace(problem, robust=Robustifier()).kernel
        self._chunk, self._theta = problem.data.sample(PILOT_SIZE), theta
        self._lines: dict[bytes, Line] = {}

    def _see(self, kernel: Kernel) -> Seen:
        """The samples as a kernel sees them; those that shrink them alike share a sweep."""
        _, scale, share = kernel.shrink(self._chunk)
        factors = scale if share is None else share
        key = b"" if factors is None else to_numpy(factors).tobytes()
        if key not in self._lines:
            self._lines[key] = kernel.linearise(self._theta, self._chunk)
        return Seen(kernel, self._lines[key])

    def scores(self) -> np.ndarray:
        """Scores of the samples, nan where the response is missing."""
        view = self._plain.predict(self._theta, self._chunk)
        return to_numpy(self._plain.loss.score(view.eta, view.y))

    def values(self) -> np.ndarray:
        """Losses of the samples, summed over the entries of a response."""
        view = self._plain.predict(self._theta, self._chunk)
        entries = to_numpy(self._plain.loss.value(view.eta, view.y))
        return np.nansum(entries.reshape(entries.shape[0], -1), axis=1)

    def gradients(self, bend: Callable[[Array], Array] | None = None) -> list[np.ndarray]:
        """Per-sample gradients of each block, from scores bent by `bend`."""
        seen = self._see(self._plain)
        blocks = seen.raw if bend is None else seen.line.pullback(bend(seen.score))
        return [to_numpy(g) for g in blocks]

    def risk(self, robust: Robustifier) -> float:
        """Expected ``‖Â - A‖²_F`` with another robustifier, at a point in canonical form."""
        kernel = replace(self._plain, robust=robust)
        slope, moment, _ = _per_sample(kernel.scatter(self._see(kernel)))
        with quiet():  # where every gradient is cut there is no slope, and the error is infinite
            return _expected_error(self._theta, sandwich(self._theta, slope, moment))

    def canonical(self) -> PilotFit:
        """The same pilot with orthonormal factors and an all-orthogonal core."""
        return PilotFit(self._problem, self._theta.canonical())

    def norms(self) -> np.ndarray:
        """Norms of the (centred) covariates."""
        if self.direct:
            raise ValueError("shrinking covariates needs covariates: PCA has none")
        return to_numpy(self._chunk.norms(self._plain.design.center))


def _count_changed(bent: Array, raw: Array) -> int:
    return 0 if bent is raw else int(namespace(raw).count_nonzero(bent != raw))


def _matmul_rows(matrix: Array, array: Array) -> Array:
    """``matrix @ array`` over axis 0 of an array of any order."""
    return reshape(matrix @ matrix_of(array, 1), (matrix.shape[0], *array.shape[1:]))


def sandwich(theta: Tucker, slope: Array, moment: Array) -> Array:
    """Asymptotic covariance of the flattened blocks, ``M⁺ V M⁺ᵀ / n``, along steps that move A.

    V is the second moment of the bent per-sample gradients, M their mean slope; their ratio is how
    far a robust gradient's zero lies from the truth, were the model true.
    """
    inverse = theta.horizontal(namespace(slope).linalg.inv(horizontal_system(theta, slope)))
    return inverse @ moment @ inverse.T


def _per_sample(sums: list[Any]) -> tuple[Array, Array, Array]:
    slope, moment, total, count = sums
    return slope / count, moment / count**2, total / count


def _expected_error(theta: Tucker, covariance: Array) -> float:
    """Expected ``‖Â - A‖²_F``, of a covariance of the blocks at a point in canonical form."""
    xp = namespace(theta.core)
    scales = [xp.ones_like(theta.core)]
    for k, u in enumerate(theta.factors):  # a move of column r of U_k moves A by its core slice
        scales.append(xp.ones_like(u) * xp.sum(unfold(theta.core, k) ** 2, axis=1))
    squares = xp.concat([xp.reshape(s, (-1,)) for s in scales])
    return float(xp.sum(squares * xp.linalg.diagonal(covariance)[: squares.shape[0]]))


def horizontal_system(theta: Tucker, matrix: Array) -> Array:
    """``P M P`` made invertible, for P the projection on the steps that move A.

    The other directions get any curvature: what it multiplies is projected away. The small ridge,
    in the units of each entry and of its block, keeps unidentified directions where they are: those
    of an excessive rank too, which have no curvature at all.
    """
    xp = namespace(matrix)
    eye = xp.eye(matrix.shape[0], dtype=matrix.dtype)
    diagonal = xp.abs(xp.linalg.diagonal(matrix))
    parts = [xp.reshape(part, (-1,)) for part in theta.split(diagonal)]
    level = xp.concat([xp.ones_like(part) * xp.mean(part) for part in parts])
    moved = theta.horizontal(theta.horizontal(matrix).T).T
    tiny = xp.finfo(matrix.dtype).smallest_normal  # separable classes may have no curvature at all
    ridge = 1e-7 * diagonal + 1e-10 * level + float(tiny)
    return moved + level * (eye - theta.horizontal(eye)) + eye * ridge


def _weighted(entries: Array, chunk: Chunk) -> Array:
    """Per-sample entries times the samples' weights."""
    return entries if chunk.weight is None else entries * column(chunk.weight, entries.ndim)


def _total_weight(samples: Chunk | Samples) -> Any:
    if samples.weight is None:
        return samples.y.shape[0]
    return namespace(samples.weight).sum(samples.weight)
