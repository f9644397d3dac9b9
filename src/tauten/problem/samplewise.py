"""What is done to a chunk of samples, at a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._array import Array, column, like, matmul, matrix_of, namespace, reshape, summed, to_numpy
from ..data import Chunk
from ..designs import Covariate, Direct, add_linear
from ..jeffreys import Jeffreys, unit
from ..losses import Loss
from ..robust import Robustifier
from ..robust.base import slope_of
from ..tucker import Tucker
from .gradient import Asked
from .normal import kept_of, normal_matrices
from .seen import Line, Seen, View, share_of, total_weight, weighted


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
        scale = self.robust.shrink(partial(self.design.norms, chunk))
        if scale is None:
            return chunk, None, None
        if not self.loss.residual:
            return chunk, None, scale**2
        Z = None if chunk.Z is None else chunk.Z * column(scale, chunk.Z.ndim)
        return replace(chunk, y=chunk.y * column(scale, chunk.y.ndim), Z=Z), scale, None

    def linearise(self, theta: Tucker, chunk: Chunk, known: Array | None = None) -> Line:
        """Sweep the (shrunk) samples at a point, and sum them with scores that are known before."""
        shrunk, scale, share = self.shrink(chunk)
        eta, pullback = self.design.linearise(theta, shrunk.X, shrunk.Z, scale, known)
        pseudo = None
        if self.prior is not None:
            pseudo = self.prior.pseudo_observations(self.loss, eta, pullback, share)
        return Line(
            y=shrunk.y,
            eta=eta,
            share=share,
            pseudo=pseudo,
            theta=theta,
            chunk=chunk,
            pullback=pullback,
            scale=scale,
            Z=shrunk.Z,
        )

    def see(self, theta: Tucker, chunk: Chunk) -> Seen:
        """Sweep the samples at a point, and bend their scores."""
        return self.seen(self.linearise(theta, chunk))

    def seen(self, line: Line) -> Seen:
        """Bend the scores of samples that were swept already."""
        return Seen(line, self.score(line), self.robust)

    def predict(self, theta: Tucker, chunk: Chunk, inner: Array | None = None) -> View:
        """Return the shrunk samples as seen from a point, alone.

        `inner` is ``<A, X_i>`` before X_i is shrunk, where that is known.
        """
        chunk, scale, share = self.shrink(chunk)
        if inner is None:
            eta = self.design.predict(theta, chunk.X, chunk.Z, scale)
        else:
            eta = add_linear(theta, inner if scale is None else inner * scale, chunk.Z)
        return View(y=chunk.y, eta=eta, share=share)

    def inner(self, theta: Tucker, tensor: Array, chunk: Chunk) -> View:
        """The same for a full tensor A; of the point, only the vector coefficients count."""
        chunk, scale, share = self.shrink(chunk)
        eta = add_linear(theta, self.design.inner(tensor, chunk.X, scale), chunk.Z)
        return View(y=chunk.y, eta=eta, share=share)

    def value(self, view: View) -> Array:
        """Loss of each response entry; zero where it is missing."""
        return self._counted(self.loss.value(view.eta, view.y), view)

    def totals(self, seen: Seen) -> Array:
        """Loss of each sample, over all entries of its response."""
        if self.loss.quadratic and seen.score.ndim > 1:  # no array of the size of the responses
            rows = matrix_of(seen.score, 1)
            return namespace(rows).vecdot(rows, rows) / 2
        values = seen.score**2 / 2 if self.loss.quadratic else self.value(seen.line)
        return namespace(values).sum(matrix_of(values, 1), axis=1) if values.ndim > 1 else values

    def score(self, view: View) -> Array:
        """Score of each sample before it is bent; zero where the response is missing."""
        score = self.loss.score(view.eta, view.y)
        return self._counted(score if view.pseudo is None else score + view.pseudo[0], view)

    def weight(self, view: View, score: Array, bent: Array | None = None) -> Array:
        """Curvature to step with at each response entry, times what bending left of its score."""
        bent = self.robust.score(score) if bent is None else bent
        if self.loss.quadratic:
            return self._observed(share_of(bent, score), view.y)
        if self.loss.residual:
            return self._counted(self.loss.residual_weight(bent, view.eta, view.y), view)
        weight = self._safe_curvature(view)
        return weight if bent is score else weight * share_of(bent, score)

    def _safe_curvature(self, view: View) -> Array:
        weight = self.loss.weight(view.eta, view.y)
        if view.pseudo is not None:
            undecided = self.loss.undecided(view.eta)
            weight = weight + view.pseudo[1] * self.loss.weight(view.eta, undecided)
        return self._counted(weight, view)

    def gradient(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: value, samples per block, changed entries, then the gradients."""
        members = self._members(seen.line.chunk)
        value, total = matmul(members, self.totals(seen)), matmul(members, seen.cut)
        return [value, summed(members, axis=1), np.asarray(seen.changed), total]

    def kept_score(self, seen: Seen) -> Array:
        """Bent scores, weighted, of samples as far as they are kept: see :attr:`Gradient.tensor`.

        What is kept of a sample is the mean of the shares of its gradient entries that bending
        leaves: a number without units.
        """
        line, score, kept = seen.line, seen.bent, seen.shares
        if kept is not None:
            score = score * column(namespace(kept).mean(kept, axis=1), score.ndim)
        if line.scale is not None:
            score = score * column(line.scale, score.ndim)
        return weighted(score, line.chunk)

    def curvature(self, seen: Seen, *, slope: bool = False) -> list[Array]:
        """Sum over a chunk of ``J_iᵀ W_i J_i``, all blocks flattened into one axis.

        Bending acts as a weight in [0, 1] on each score and on each gradient entry, as in
        iteratively reweighted least squares: the ratio of the bent to the raw. With `slope`, it is
        the derivative of the bent gradient instead.
        """
        weight = self.slope(seen) if slope else self.weight(seen.line, seen.score, seen.bent)
        pair = (weighted(weight, seen.line.chunk), seen.slopes if slope else seen.shares)
        return self._normal_matrices(seen.line, [pair], exact=slope)

    def slope(self, seen: Seen) -> Array:
        """Derivative of the bent score by the predictor, at each response entry."""
        return self._hessian(seen.line) * slope_of(self.robust.score, seen.score)

    def hessian(self, seen: Seen, *, correction: bool) -> list[Any]:
        """Sums over a chunk: safe curvature, and on demand what slopes add to it.

        The slopes are those of the bends. They may be negative, so that a step with them goes to
        the end of the way if that is near, and anywhere if it is not.
        """
        line, shares = seen.line, seen.shares
        pairs = [(weighted(self.weight(line, seen.score, seen.bent), line.chunk), shares)]
        bent = seen.bent is not seen.score or shares is not None  # else all slopes are one
        if correction and bent:
            slope = self._safe_curvature(line) * slope_of(self.robust.score, seen.score)
            pairs.append((weighted(slope, line.chunk), seen.slopes))
        safe, *steep = self._normal_matrices(line, pairs, exact=False)
        return [safe, steep[0] - safe if steep else 0.0]

    def information(self, line: Line) -> Array:
        """Sum over a chunk of ``J_iᵀ W_i J_i`` with the loss's own curvature, nothing bent."""
        return self._normal_matrices(line, [(self.information_weight(line), None)], exact=True)[0]

    def information_weight(self, line: Line) -> Array:
        """Its weights W; of a softmax, the part diag(p)."""
        return weighted(self._hessian(line), line.chunk)

    def _hessian(self, view: View) -> Array:
        """Curvature of the loss at each response entry; of a softmax, the part diag(p)."""
        softmax = self.loss.one_hot
        entries = self.loss.mean(view.eta) if softmax else self.loss.curvature(view.eta, view.y)
        return self._counted(entries, view)

    def _normal_matrices(
        self, line: Line, pairs: list[tuple[Array, Array | None]], *, exact: bool
    ) -> list[Array]:
        """``Σ_i (K_i ⊙ J_i)ᵀ W_i J_i`` for weights W of the response entries and K of gradients'.

        One for each pair (W, K); no K is one that keeps all.
        """
        totals = normal_matrices(line, pairs)
        if not self.loss.one_hot:
            return totals
        coupled = zip(totals, pairs, strict=True)
        return [total - self._coupling(line, *pair, exact) for total, pair in coupled]

    def _coupling(self, line: Line, weight: Array, kept: Array | None, exact: bool) -> Array:
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
            right = xp.sum(p * y, axis=-1, keepdims=True)
            right = right if kept is None else right * column(xp.min(kept, axis=1), p.ndim)
        for index in np.ndindex(*weight.shape[1:-1]):
            group = sum(unit(weight[:1, ...], (*index, c)) for c in range(weight.shape[-1]))
            left = line.pullback.flat(weight * right * group)
            total = total + kept_of(left, kept).T @ line.pullback.flat(p * group)
        return total

    def scatter(self, seen: Seen) -> list[Any]:
        """Sums over a chunk: slope, second moment and total of the bent gradients, and weights."""
        chunk = seen.line.chunk
        bent = weighted(seen.cut, chunk)
        slope = self.curvature(seen, slope=True)
        moment, total = matmul(bent.T, bent), namespace(bent).sum(bent, axis=0)
        return [*slope, moment, total, total_weight(chunk)]

    def tensor_gradient(self, theta: Tucker, tensor: Array, chunk: Chunk) -> list[Any]:
        """Sums over a chunk for a gradient with respect to the full tensor, and the linear block's.

        The second are scores: their products with X are left to :meth:`Covariate.adjoints`.
        """
        view, (shrunk, scale, _) = self.inner(theta, tensor, chunk), self.shrink(chunk)
        score = self.score(view)
        bent = weighted(self.robust.score(score), chunk)
        weight = weighted(self.weight(view, score), chunk)
        linear = _linear_sums(shrunk.Z, bent, weight)
        scores = bent if scale is None else bent * column(scale, bent.ndim)
        return [total_weight(chunk), scores, *linear]

    def block_gradient(self, theta: Tucker, chunk: Chunk) -> list[Any]:
        """The same with respect to all blocks, flattened, in one read of X."""
        seen = self.see(theta, chunk)
        bent = weighted(seen.bent, chunk)
        weight = weighted(self.weight(seen.line, seen.score, seen.bent), chunk)
        blocks = namespace(bent).sum(weighted(seen.cut, chunk), axis=0)
        return [total_weight(chunk), blocks, *_linear_sums(seen.line.Z, bent, weight)]

    def _counted(self, entries: Array, view: View) -> Array:
        """Entries times what is left of their sample; zero where the response is missing."""
        if view.share is not None:
            entries = entries * column(view.share, entries.ndim)
        return self._observed(entries, view.y)

    def _observed(self, entries: Array, y: Array) -> Array:
        if not self.missing:
            return entries
        xp = namespace(y)
        return xp.where(xp.isnan(y), like(0.0, entries), entries)

    def _members(self, chunk: Chunk) -> Array:
        """Weights (n_blocks_, n) of the samples in the blocks: sample i is in i mod n_blocks_."""
        m, n_blocks = chunk.y.shape[0], self.robust.n_blocks_
        weight = like(np.ones(m), chunk.y) if chunk.weight is None else chunk.weight
        weight = reshape(weight, (1, m))
        if n_blocks == 1:
            return weight
        block = (chunk.start + np.arange(m)) % n_blocks
        return weight * like(block == np.arange(n_blocks)[:, None], chunk.y)


def _linear_sums(Z: Array | None, bent: Array, weight: Array) -> list[Array]:
    """Gradient and curvature of the linear block, where there is one."""
    if Z is None:
        return []
    each = namespace(weight).mean(matrix_of(weight, 1), axis=1)  # one for all of a response
    return [matmul(Z.T, matrix_of(bent, 1)), matmul((Z * column(each, 2)).T, Z)]


def same_sweep(kernel: Kernel, part: Chunk) -> tuple[int, bytes]:
    """Which samples a kernel sweeps, and what it shrinks them by: sweeps are equal if these are."""
    _, scale, share = kernel.shrink(part)
    factors = scale if share is None else share
    return part.start, b"" if factors is None else to_numpy(factors).tobytes()


def per_sample(sums: list[Any]) -> tuple[Array, Array, Array]:
    """Slope, covariance of the mean, and mean, from the sums of :meth:`Kernel.scatter`."""
    slope, moment, total, count = sums
    return slope / count, moment / count**2, total / count


def chunk_sums(kernel: Kernel, seen: Seen, asked: Asked) -> list[Any]:
    """What is summed over a chunk for one problem; last, the scores that its tensor comes of."""
    curvature = [0.0, 0.0]
    if asked.curvature:
        curvature = kernel.hessian(seen, correction=asked.correction)
    scores = kernel.kept_score(seen) if asked.tensor else 0.0
    return [*curvature, *kernel.gradient(seen), scores]


def line_sums(kernel: Kernel, line: Line, asked: Asked) -> list[Any]:
    """The same of samples that were swept already; last, the tensor itself."""
    *sums, score = chunk_sums(kernel, kernel.seen(line), asked)
    tensor = kernel.design.adjoints([score], line.chunk.X)[0] if asked.tensor else score
    return [*sums, tensor]
