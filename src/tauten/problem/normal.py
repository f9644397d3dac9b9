"""Normal matrices of a linearised chunk: ``Σ_i (K_i ⊙ J_i)ᵀ W_i J_i``, all blocks in one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._array import Array, column, like, namespace, product, reshape
from ..data.base import add_up
from ..jeffreys import flat, unit
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
        rows = line.jacobian
        return [kept_of(rows * column(weight, 2), kept).T @ rows for weight, kept in pairs]

    def matrices(at: tuple[int, ...]) -> list[Array]:
        part = Slice(line, at)
        return [part.matrix(weight[(slice(None), *at)], kept) for weight, kept in pairs]

    return add_up(map(matrices, np.ndindex(*line.eta.shape[1:-1])))


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
        xp, basis, n = namespace(weight), self.basis, weight.shape[0]
        p, r = basis.shape
        seen = xp.broadcast_to(self.seen, (n, *self.seen.shape[1:]))
        own = xp.broadcast_to(self.own, (n, self.own.shape[1]))
        size = seen.shape[2]
        front, back = (None, None) if kept is None else (kept[:, None, :size], kept[:, None, size:])
        pairs = product(weight, reshape(basis[:, :, None] * basis[:, None, :], (p, r * r)), (r, r))
        there = weight[:, None, :, None] * own[:, None, None, :]
        through = self.placed(there * basis.T[None, :, :, None])
        alone = _summed(kept_of(self.placed(there), back), own[:, None, :])
        top = [_summed(kept_of(pairs @ seen, front), seen), _summed(kept_of(seen, front), through)]
        bottom = [_summed(kept_of(through, back), seen), self._at_same_places(alone)]
        return xp.concat([xp.concat(top, axis=1), xp.concat(bottom, axis=1)], axis=0)

    @cached_property
    def basis(self) -> Array:
        """Q (p, r)."""
        u = self.line.theta.factors[-1]
        return namespace(u).linalg.qr(u)[0]

    @cached_property
    def seen(self) -> Array:
        """Rows B_is (n, r, D'), of the blocks that see the response through U alone."""
        columns, order = self.basis.T, self.line.theta.order
        rows = [flat(self._pulled(columns[s, :])[:order]) for s in range(columns.shape[0])]
        return namespace(columns).stack(rows, axis=1)

    @cached_property
    def own(self) -> Array:
        """Rows o_i (n, t), of the others."""
        first = like(np.eye(1, self.line.eta.shape[-1])[0], self.line.eta)
        last, *linear = self._pulled(first)[self.line.theta.order :]
        return flat([last[:, 0, :], *(z[(slice(None), slice(None), *self.at, 0)] for z in linear)])

    def _pulled(self, vector: Array) -> list[Array]:
        """Gradients of a score with a vector here, and zeros elsewhere."""
        here = unit(self.line.eta[:1, ..., 0], self.at)
        return list(self.line.pullback(here[..., None] * vector))

    def placed(self, rows: Array) -> Array:
        """Entries (..., p, t) where the other blocks have them, flattened: (..., D - D')."""
        xp, r = namespace(rows), self.line.theta.rank[-1]
        *lead, p, t = rows.shape
        parts = [reshape(rows[..., :r], (*lead, p * r))]
        if t > r:
            here = reshape(unit(self.line.eta[:1, ..., 0], self.at), (-1, 1))
            linear = xp.moveaxis(rows[..., r:], -1, -2)[..., :, None, :] * here
            parts.append(reshape(linear, (*lead, math.prod(linear.shape[-3:]))))
        return xp.concat(parts, axis=-1)

    def _at_same_places(self, rows: Array) -> Array:
        """Products (D - D', t) of flattened entries with o, in the columns of their own places."""
        each = like(np.eye(self.basis.shape[0]), rows)
        places = self.placed(each[:, :, None] * namespace(rows).ones_like(self.own[:1, :]))
        return self.placed(rows[:, None, :] * places.T[:, :, None])


def kept_of(rows: Array, kept: Array | None) -> Array:
    """What is kept of the derivatives, or of gradients."""
    return rows if kept is None else kept * rows


def _summed(left: Array, right: Array) -> Array:
    """``Σ leftᵀ right`` over all axes but the last."""
    flattened = (reshape(x, (math.prod(x.shape[:-1]), x.shape[-1])) for x in (left, right))
    return next(flattened).T @ next(flattened)
