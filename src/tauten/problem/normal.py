"""Normal matrices of a linearised chunk: ``Σ_i (K_i ⊙ J_i)ᵀ W_i J_i``, all blocks in one axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from .._array import (
    Array,
    column,
    flat,
    like,
    matmul,
    matrix_of,
    namespace,
    pair_products,
    reshape,
)
from .._lazy import lazy
from ..data.base import add_up
from ..jeffreys import unit
from .seen import Line


def normal_matrices(line: Line, pairs: list[tuple[Array, Array | None]]) -> list[Array]:
    """Return one matrix for each pair of weights.

    Parameters
    ----------
    line : Line
    pairs : list of tuples
        W, of the shape of the responses, and K (n, D), which multiplies the derivatives on the
        left; None keeps all.
    """
    if line.eta.ndim == 1:
        return [_normal_matrix(line.pullback.rows, *pair) for pair in pairs]

    def matrices(at: tuple[int, ...]) -> list[Array]:
        part, here = Slice(line, at), (slice(None), *at, slice(None))
        return [part.matrix(weight[here], kept) for weight, kept in pairs]

    return add_up(map(matrices, np.ndindex(*line.eta.shape[1:-1])))


def _normal_matrix(rows: Array, weight: Array, kept: Array | None) -> Array:
    """``Σ_i w_i (K_i ⊙ J_i)ᵀ J_i`` for responses that are numbers."""
    xp = namespace(rows)
    if kept is None and bool(xp.all(weight >= 0)):  # a matrix by itself: half the work
        rows = rows * column(xp.sqrt(weight), 2)
        return matmul(rows.T, rows)
    return matmul(kept_of(rows * column(weight, 2), kept).T, rows)


@dataclass(frozen=True)
class Slice:
    """Response entries at one place `at` of all response modes but the last: ``q = 1, ..., p``.

    Most blocks see them through the last factor U alone. There the derivatives of predictor q are
    ``Σ_s Q_qs B_is``, for Q (p, r) an orthonormal basis of U's columns, so that r of them stand for
    p. In the other blocks, U itself and that of the vector covariates, they are a row o_i at place
    q and zero elsewhere.
    """

    line: Line
    at: tuple[int, ...]

    def matrix(self, weight: Array, kept: Array | None) -> Array:
        """The matrix of these entries, for weights (n, p)."""
        xp, q, n = namespace(weight), self.basis, weight.shape[0]
        seen = xp.broadcast_to(self.seen, (n, *self.seen.shape[1:]))
        own = xp.broadcast_to(self.own, (n, self.own.shape[1]))
        here = pair_products(weight[:, :, None], own[:, :, None])
        kept_seen = kept_here = None
        if kept is not None:
            size = seen.shape[2]
            kept_seen, kept_here = kept[:, None, :size], self._picked(kept[:, size:])
        squares = reshape(q[:, :, None] * q[:, None, :], (q.shape[0], q.shape[1] ** 2))
        # Σ_q W_iq Q_qs Q_qt, as a transposed product: what is done with it runs along samples
        inner = reshape((squares.T @ weight.T).T, (n, q.shape[1], q.shape[1]))
        across = self._across(kept_of(seen, kept_seen), here)
        here = kept_of(here, kept_here)
        back = across if kept is None else self._across(seen, here)
        moved = pair_products(inner, xp.matrix_transpose(seen))
        top = [_summed(kept_of(moved, kept_seen), seen), across]
        bottom = [back.T, self._at_same_places(here, own)]
        return xp.concat([xp.concat(top, axis=1), xp.concat(bottom, axis=1)], axis=0)

    @property
    def basis(self) -> Array:
        """Q (p, r)."""
        return self.line.theta.bases[-1]

    @lazy
    def seen(self) -> Array:
        """Rows B_is (n, r, D'), of the blocks that see the response through U alone."""
        columns, order = self.basis.T, self.line.theta.order
        rows = [flat(islice(self._pulled(columns[s, :]), order)) for s in range(columns.shape[0])]
        return reshape(flat(rows), (rows[0].shape[0], len(rows), rows[0].shape[1]))

    @lazy
    def own(self) -> Array:
        """Rows o_i (n, t), of the others."""
        first = like(np.eye(1, self.line.eta.shape[-1])[0], self.line.eta)
        last = next(islice(self._pulled(first), self.line.theta.order, None))[:, 0, :]
        return last if self.line.Z is None else flat([last, self.line.Z])

    def _pulled(self, vector: Array) -> Iterator[Array]:
        """Gradients of a score with a vector here, and zeros elsewhere."""
        return self.line.pullback(self._here[..., None] * vector)

    @lazy
    def _here(self) -> Array:
        """One at this place, zero at the others."""
        return unit(self.line.eta[:1, ..., 0], self.at)

    def _across(self, seen: Array, here: Array) -> Array:
        """``Σ_i Σ_s B_is Q_qs h_iq`` (D', D - D'), for entries h (n, p, t) of the other blocks."""
        _, r, size = seen.shape
        each = matrix_of(seen, 1).T @ matrix_of(here, 1)
        each = reshape(each, (r, size, *here.shape[1:])) * self.basis.T[:, None, :, None]
        return self._placed(namespace(each).sum(each, axis=0))

    def _at_same_places(self, here: Array, own: Array) -> Array:
        """``Σ_i h_iq o_iᵀ`` (D - D', D - D'): what is at place q meets nothing but itself."""
        xp, (_, p, t) = namespace(here), here.shape
        each = reshape(matrix_of(here, 1).T @ own, (p, t, 1, t))
        rows = self._placed(each * like(np.eye(p), here)[:, None, :, None])
        return self._placed(xp.moveaxis(rows, -1, 0)).T

    def _placed(self, entries: Array) -> Array:
        """Entries (..., p, t) where the other blocks have them, flattened: (..., D - D')."""
        xp, r = namespace(entries), self.line.theta.rank[-1]
        *lead, p, t = entries.shape
        parts = [reshape(entries[..., :r], (*lead, p * r))]
        if t > r:
            here = reshape(self._here, (-1, 1))
            linear = xp.moveaxis(entries[..., r:], -1, -2)[..., :, None, :] * here
            parts.append(reshape(linear, (*lead, math.prod(linear.shape[-3:]))))
        return xp.concat(parts, axis=-1)

    def _picked(self, entries: Array) -> Array:
        """Of flattened entries (n, D - D') of the other blocks those here: (n, p, t)."""
        xp, (n, _), (p, r) = namespace(entries), entries.shape, self.line.theta.factors[-1].shape
        last = reshape(entries[:, : p * r], (n, p, r))
        if self.line.Z is None:
            return last
        linear = reshape(entries[:, p * r :], (n, self.line.Z.shape[1], *self.line.eta.shape[1:]))
        linear = linear[(slice(None), slice(None), *self.at, slice(None))]
        return xp.concat([last, xp.moveaxis(linear, 1, 2)], axis=2)


def kept_of(rows: Array, kept: Array | None) -> Array:
    """What is kept of the derivatives, or of gradients."""
    return rows if kept is None else kept * rows


def _summed(left: Array, right: Array) -> Array:
    """``Σ leftᵀ right`` over all axes but the last, of three."""
    return sum(left[:, s, :].T @ right[:, s, :] for s in range(left.shape[1]))
