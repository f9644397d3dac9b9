"""Data × loss × design × robustifier: the only place where the four meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from ._array import Array, column, like, matrix_of, namespace, product, ratio, reshape, to_numpy
from .data import Chunk, Rows
from .designs import Covariate, Direct, Pullback
from .losses import Loss
from .robust import Robustifier
from .tucker import Tucker, unfold

PILOT_SIZE = 2000  # samples that thresholds are chosen from; their quantiles are then good to 2%


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
    """

    blocks: Tucker
    value: float
    truncated: tuple[float, ...]
    curvature: Array | None = None


@dataclass(frozen=True)
class Line:
    """A chunk of samples linearised at a point: the one sweep that a pass makes of it.

    Attributes
    ----------
    chunk : Chunk
    y, eta : array
        Responses, of shrunk samples if they are shrunk, and linear predictors.
    pullback : callable
        From scores to per-sample gradients: see :meth:`tauten.designs.Covariate.linearise`.
    """

    chunk: Chunk
    y: Array
    eta: Array
    pullback: Pullback


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
        self.score = kernel.score(line.eta, line.y)
        self.bent = kernel.robust.score(self.score)
        self.raw = list(line.pullback(self.bent))


@dataclass(frozen=True)
class Kernel:
    """What is done to a chunk of samples. It holds no data, so it can be sent where they are."""

    loss: Loss
    design: Covariate | Direct
    robust: Robustifier
    missing: bool = False

    def shrink(self, chunk: Chunk) -> tuple[Array, Array | None, Array | None]:
        """Shrink the samples; return y, Z and the factors for X, which is not touched."""
        y, Z, scale = chunk.y, chunk.Z, None
        if chunk.X is not None:
            scale = self.robust.shrink(partial(chunk.norms, self.design.center))
        if scale is not None and self.loss.residual:  # then X, y and Z shrink together
            y = y * column(scale, y.ndim)
            Z = None if Z is None else Z * column(scale, Z.ndim)
        return y, Z, scale

    def linearise(self, theta: Tucker, chunk: Chunk) -> Line:
        """Sweep the (shrunk) samples at a point."""
        y, Z, scale = self.shrink(chunk)
        return Line(chunk, y, *self.design.linearise(theta, chunk.X, Z, scale))

    def see(self, theta: Tucker, chunk: Chunk) -> Seen:
        """Sweep the samples at a point, and bend their scores."""
        return Seen(self, self.linearise(theta, chunk))

    def predict(self, theta: Tucker, chunk: Chunk) -> tuple[Array, Array]:
        """Return the shrunk samples' responses and linear predictors alone."""
        y, Z, scale = self.shrink(chunk)
        return y, self.design.predict(theta, chunk.X, Z, scale)

    def score(self, eta: Array, y: Array) -> Array:
        """Score of each sample before it is bent; zero where the response is missing."""
        return self._observed(self.loss.score(eta, y), y)

    def bend(self, seen: Seen) -> list[Array]:
        """Per-sample gradients of each block, bent."""
        return [self.robust.sample(raw, k) for k, raw in enumerate(seen.raw)]

    def gradient(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: value, samples per block, changed entries, then the gradients."""
        eta, y, members = seen.line.eta, seen.line.y, self._members(seen.line.chunk)
        value = _matmul_rows(members, self._observed(self.loss.value(eta, y), y))
        bent = self.bend(seen)
        changed = [_count_changed(b, raw) for b, raw in zip(bent, seen.raw, strict=True)]
        sums = [_matmul_rows(members, b) for b in bent]
        return [value, namespace(members).sum(members, axis=1), np.asarray(changed), *sums]

    def curvature(self, seen: Seen, *, slope: bool = False) -> list[Array]:
        """Sum over a chunk of ``J_iᵀ W_i J_i``, all blocks flattened into one axis.

        Bending acts as a weight in [0, 1] on each score and on each gradient entry, as in
        iteratively reweighted least squares: the ratio of the bent to the raw. With `slope`, it is
        the derivative of the bent gradient instead.
        """
        line = seen.line
        chunk, y, eta, pullback = line.chunk, line.y, line.eta, line.pullback
        share = _slope if slope else _kept
        kept = _join([share(partial(self.robust.sample, k=k), g) for k, g in enumerate(seen.raw)])
        coupled = slope and self.loss.one_hot
        curvature = self.loss.curvature if slope else self.loss.weight
        diagonal = self.loss.mean(eta) if coupled else curvature(eta, y)
        weight = self._observed(diagonal, y) * share(self.robust.score, seen.score)
        if chunk.weight is not None:
            weight = weight * column(chunk.weight, weight.ndim)
        xp, total = namespace(y), 0.0
        for index in np.ndindex(*weight.shape[1:]):
            rows = _join(list(pullback(_unit(weight[:1, ...], index))))
            rows = xp.broadcast_to(rows, kept.shape)  # in PCA all samples share one
            total = total + (kept * rows * column(weight[(..., *index)], 2)).T @ rows
        if coupled:  # the Hessian of a softmax is diag(p) - p pᵀ
            left, right = (_join(list(pullback(w))) for w in (weight, self.loss.mean(eta)))
            total = total - (kept * left).T @ right
        return [total]

    def scatter(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: slope, second moment and total of the bent gradients, and weights."""
        chunk, bent = seen.line.chunk, _join(self.bend(seen))
        if chunk.weight is not None:
            bent = bent * column(chunk.weight, 2)
        slope = self.curvature(seen, slope=True)
        return [*slope, bent.T @ bent, namespace(bent).sum(bent, axis=0), _total_weight(chunk)]

    def weight(self, eta: Array, y: Array, score: Array) -> Array:
        """Curvature of the loss at each response entry, times what bending left of its score."""
        return self._observed(self.loss.weight(eta, y), y) * _kept(self.robust.score, score)

    def tensor_gradient(self, theta: Tucker, tensor: Array, chunk: Chunk) -> list[Any]:
        """Sums over a chunk: gradient with respect to the full tensor, and the linear block's."""
        y, Z, scale = self.shrink(chunk)
        eta = self.design.inner(tensor, chunk.X, scale)
        if Z is not None:
            eta = eta + product(Z, matrix_of(theta.blocks[-1], 1), eta.shape[1:])
        score = self.score(eta, y)
        bent = self.robust.score(score)
        weight = self.weight(eta, y, score)
        if chunk.weight is not None:
            bent, weight = (a * column(chunk.weight, a.ndim) for a in (bent, weight))
        sums = [_total_weight(chunk), self.design.adjoint(bent, chunk.X, scale)]
        if Z is not None:
            sums += [Z.T @ matrix_of(bent, 1), Z.T @ Z * namespace(y).mean(weight)]
        return sums

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
    data : Rows
    loss : Loss
    design : Covariate or Direct
    robust : Robustifier
        Calibrated, where it has thresholds to choose: see :meth:`calibrate`.
    missing : bool
        Whether y holds nan for missing entries.

    Examples
    --------
    >>> import numpy as np
    >>> from tauten.losses import Squared
    >>> theta = Tucker(np.ones(1), [np.ones((2, 1))])
    >>> problem = Problem(Rows(np.eye(2), np.array([1.0, 3.0])), Squared(), Covariate())
    >>> problem.gradient(theta).blocks.core
    array([-1.])
    """

    data: Rows
    loss: Loss
    design: Covariate | Direct
    robust: Robustifier = field(default_factory=Robustifier)
    missing: bool = False

    @property
    def kernel(self) -> Kernel:
        """The work on one chunk."""
        return Kernel(self.loss, self.design, self.robust, self.missing)

    def gradient(self, theta: Tucker, *, curvature: bool = False) -> Gradient:
        """Robust gradient at a point, and on demand its curvature, in one pass over the data."""
        return gradients([self], [theta], curvature=curvature)[0]

    def _chunk_sums(self, theta: Tucker, chunk: Chunk, curvature: bool) -> list[Any]:
        kernel = self.kernel
        seen = kernel.see(theta, chunk.weighted(self.data.weight))
        return [*(kernel.curvature(seen) if curvature else [0.0]), *kernel.gradient(seen)]

    def _gradient(self, theta: Tucker, total: list[Any], curvature: bool) -> Gradient:
        matrix, value, count, changed, *sums = total
        xp = namespace(theta.core)
        means = [s / column(count, s.ndim) for s in sums]
        sizes = [self.data.n * math.prod(block.shape) for block in theta.blocks]
        return Gradient(
            theta.with_blocks([self.robust.reduce(mean) for mean in means]),
            float(xp.sum(value) / xp.sum(count)),
            tuple(float(c / size) for c, size in zip(changed, sizes, strict=True)),
            matrix / xp.sum(count) if curvature else None,
        )

    def curvature(self, theta: Tucker, *, slope: bool = False) -> Array:
        """Mean of ``J_iᵀ W_i J_i`` over the samples, alone: see :meth:`Kernel.curvature`."""
        kernel = self.kernel
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
        kernel = self.kernel
        return _per_sample(self.data.map_sum(lambda c: kernel.scatter(kernel.see(theta, c))))

    def entry_curvature(self, theta: Tucker) -> Array:
        """Curvature to take a step with at each response entry, averaged over the samples."""
        kernel = self.kernel

        def sums(chunk: Chunk) -> list[Any]:
            y, eta = kernel.predict(theta, chunk)
            weight = kernel.weight(eta, y, kernel.score(eta, y))
            if chunk.weight is not None:
                weight = weight * column(chunk.weight, weight.ndim)
            return [namespace(y).sum(weight, axis=0), _total_weight(chunk)]

        total, count = self.data.map_sum(sums)
        return total / count

    def curvature_along(self, theta: Tucker, direction: Tucker) -> Tucker:
        """Gauss-Newton matrix times a direction, from (some of) the samples, without the matrix."""
        chunk, kernel = self.data.sample(PILOT_SIZE), self.kernel
        seen = kernel.see(theta, chunk)
        xp, line = namespace(seen.score), seen.line
        h = 1e-6  # predictors are polynomials: the difference is good to h
        _, moved = kernel.predict(theta.map(lambda x, d: x + h * d, direction), chunk)
        weight = kernel.weight(line.eta, line.y, seen.score) * (moved - line.eta) / h
        if chunk.weight is not None:
            weight = weight * column(chunk.weight, weight.ndim)
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
        y, eta = kernel.predict(theta, chunk)
        score = kernel.score(eta, y)
        weight = kernel.weight(eta, y, score)
        if chunk.weight is not None:
            weight = weight * column(chunk.weight, weight.ndim)
        moved = self.design.inner(direction, chunk.X, kernel.shrink(chunk)[2])
        return float(namespace(y).sum(weight * moved**2) / _total_weight(chunk))

    def scores(self, theta: Tucker) -> np.ndarray:
        """Scores of all samples, shrunk but not bent; nan where the response is missing."""
        return responses([self], [theta], self.loss.score)[0]

    def values(self, theta: Tucker) -> np.ndarray:
        """Losses of all response entries; nan where the response is missing."""
        return responses([self], [theta], self.loss.value)[0]

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
            bent = _join(kernel.bend(kernel.see(theta, chunk)))
            raw = _join(plain.see(theta, chunk).raw)
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
        return replace(self, robust=self.robust.calibrate(self.pilot(theta)))


def gradients(
    problems: Sequence[Problem], thetas: Sequence[Tucker], *, curvature: bool = False
) -> list[Gradient]:
    """Robust gradients of problems on the same samples, in one pass over them.

    The problems may differ in weights, loss and robustifier, and each has a point of its own.
    """
    pairs = list(zip(problems, thetas, strict=True))

    def chunk_sums(chunk: Chunk) -> list[Any]:
        sums = [problem._chunk_sums(theta, chunk, curvature) for problem, theta in pairs]
        return list(chain.from_iterable(sums))

    totals = iter(problems[0].data.map_sum(chunk_sums))
    return [
        problem._gradient(theta, list(islice(totals, 4 + len(theta.blocks))), curvature)
        for problem, theta in pairs
    ]


def responses(
    problems: Sequence[Problem], thetas: Sequence[Tucker], fn: Callable[[Array, Array], Array]
) -> list[np.ndarray]:
    """`fn` of predictors and (shrunk) responses, for problems on the same samples, in one pass."""
    kernels = [problem.kernel for problem in problems]

    def entries(chunk: Chunk) -> Array:
        seen = (k.predict(theta, chunk) for k, theta in zip(kernels, thetas, strict=True))
        values = [fn(eta, y) for y, eta in seen]
        return namespace(values[0]).stack(values, axis=1)

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
        scale = kernel.shrink(self._chunk)[2]
        key = b"" if scale is None else to_numpy(scale).tobytes()
        if key not in self._lines:
            self._lines[key] = kernel.linearise(self._theta, self._chunk)
        return Seen(kernel, self._lines[key])

    def scores(self) -> np.ndarray:
        """Scores of the samples, nan where the response is missing."""
        y, eta = self._plain.predict(self._theta, self._chunk)
        return to_numpy(self._plain.loss.score(eta, y))

    def values(self) -> np.ndarray:
        """Losses of the samples, summed over the entries of a response."""
        y, eta = self._plain.predict(self._theta, self._chunk)
        entries = to_numpy(self._plain.loss.value(eta, y))
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


def _join(blocks: list[Array]) -> Array:
    """Per-sample blocks flattened side by side; a batch of one is repeated for every sample."""
    xp = namespace(*blocks)
    n = max(b.shape[0] for b in blocks)
    flat = [matrix_of(b, 1) for b in blocks]
    return xp.concat([xp.broadcast_to(b, (n, b.shape[1])) for b in flat], axis=1)


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
    flat = xp.concat([xp.reshape(s, (-1,)) for s in scales])
    return float(xp.sum(flat * xp.linalg.diagonal(covariance)[: flat.shape[0]]))


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


def _kept(bend: Callable[[Array], Array], raw: Array) -> Array:
    """Weight to take a step with: half-way between the ratio of bent to raw and the slope.

    The ratio alone (iteratively reweighted least squares) is safe but slow where much is bent, the
    slope alone (Newton) fast but unsafe; their mean is positive for every bend we have.
    """
    one = namespace(raw).ones_like(raw)
    if (bent := bend(raw)) is raw:
        return one
    return (ratio(bent, raw, otherwise=one) + _slope(bend, raw)) / 2


def _slope(bend: Callable[[Array], Array], raw: Array) -> Array:
    """Derivative of an entrywise bend, by central differences; one where there is nothing."""
    xp = namespace(raw)
    one = xp.ones_like(raw)
    h = max(1e-6, 1e4 * float(xp.finfo(raw.dtype).eps)) * xp.abs(raw)  # well above rounding
    if (ahead := bend(above := raw + h)) is above:
        return one
    return ratio(ahead - bend(raw - h), 2 * h, otherwise=one)


def _unit(row: Array, index: tuple[int, ...]) -> Array:
    """A batch of one score: one at `index`, zero elsewhere."""
    unit = np.zeros(tuple(row.shape))
    unit[(0, *index)] = 1.0
    return like(unit, row)


def _total_weight(chunk: Chunk) -> Any:
    if chunk.weight is None:
        return chunk.y.shape[0]
    return namespace(chunk.weight).sum(chunk.weight)
