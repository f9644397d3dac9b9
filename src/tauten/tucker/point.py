"""Points of the set of Tucker tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from .._array import Array, namespace, reshape
from .._lazy import lazy
from .products import left_singular_vectors, mode_dot, multi_mode_dot, unfold
from .tangent import Tangent


@dataclass(frozen=True, eq=False)
class Tucker:
    """A tensor in Tucker form, core times factors; also the type of a gradient and of a step.

    ``A = S x_1 U_1 ... x_d U_d``. Frozen: operations return new points.

    Parameters
    ----------
    core : array (r_1, ..., r_d)
    factors : sequence of arrays (p_k, r_k)

    Examples
    --------
    >>> import numpy as np
    >>> a = Tucker(np.ones((1, 1)), [np.ones((3, 1)), np.ones((2, 1))])
    >>> a.shape, a.rank, a.d_eff
    ((3, 2), (1, 1), 6)
    >>> a.full()
    array([[1., 1.],
           [1., 1.],
           [1., 1.]])
    """

    core: Array
    factors: tuple[Array, ...]

    def __post_init__(self) -> None:
        """Freeze the factors and check that the pieces fit."""
        object.__setattr__(self, "factors", tuple(self.factors))
        columns = tuple(u.shape[1] if u.ndim == 2 else None for u in self.factors)
        if columns != tuple(self.core.shape):
            raise ValueError(
                f"factors must be matrices with {tuple(self.core.shape)} columns, one per mode of "
                f"core; got shapes {[tuple(u.shape) for u in self.factors]}"
            )

    @property
    def blocks(self) -> tuple[Array, ...]:
        """The parameter blocks ``(S, U_1, ..., U_d)``, in the paper's order."""
        return (self.core, *self.factors)

    def with_blocks(self, blocks: Sequence[Array]) -> Self:
        """Return a point of the same type with other blocks."""
        return type(self)(blocks[0], tuple(blocks[1:]))

    def map(self, fn: Callable[..., Array], *others: Tucker) -> Self:
        """Apply `fn` block by block, over this point and the matching blocks of others."""
        return self.with_blocks(
            [fn(*blocks) for blocks in zip(self.blocks, *(o.blocks for o in others), strict=True)]
        )

    @property
    def order(self) -> int:
        """Number of modes, d."""
        return len(self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions ``(p_1, ..., p_d)``."""
        return tuple(u.shape[0] for u in self.factors)

    @property
    def rank(self) -> tuple[int, ...]:
        """Tucker ranks ``(r_1, ..., r_d)``."""
        return tuple(self.core.shape)

    @property
    def d_eff(self) -> int:
        """Effective dimension ``Σ p_k r_k + Π r_k`` of the paper's section 3."""
        return sum(self.sizes[: self.order + 1])

    @lazy
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each block has."""
        return tuple(math.prod(block.shape) for block in self.blocks)

    def full(self) -> Array:
        """Return the whole tensor."""
        return multi_mode_dot(self.core, self.factors)

    def norm(self) -> float:
        """Frobenius norm, without forming the tensor."""
        return self._norm

    @lazy
    def _norm(self) -> float:
        return _size(self.orthonormal().core)

    def distance(self, other: Tucker) -> float:
        """Frobenius distance, without forming the tensors and without cancellation."""
        xp = namespace(self.core)
        mine, theirs = self.core, other.core
        for k, (u, v) in enumerate(zip(self.factors, other.factors, strict=True)):
            _, r = xp.linalg.qr(xp.concat([u, v], axis=1))  # both column spaces in one basis
            mine = mode_dot(mine, r[:, : u.shape[1]], k)
            theirs = mode_dot(theirs, r[:, u.shape[1] :], k)
        return _size(mine - theirs)

    def imbalance(self, b: float) -> tuple[Array, ...]:
        """Balancing terms ``U_k (U_kᵀ U_k - b² I)`` of Algorithm 1, one per factor."""
        xp = namespace(self.core)
        return tuple(u @ (u.T @ u - b**2 * xp.eye(u.shape[1], dtype=u.dtype)) for u in self.factors)

    def orthonormal(self) -> Self:
        """Return the same tensor with orthonormal factors (by QR)."""
        xp = namespace(self.core)
        core, factors = self.core, []
        for k, u in enumerate(self.factors):
            q, r = xp.linalg.qr(u)
            if q.shape[1] < u.shape[1]:  # more columns than rows: no thin orthonormal basis
                raise ValueError(
                    f"rank {u.shape[1]} of mode {k + 1} is larger than its dimension {u.shape[0]}"
                )
            core = mode_dot(core, r, k)
            factors.append(q)
        return replace(self, core=core, factors=tuple(factors))

    def canonical(self) -> Self:
        """Return the same tensor with orthonormal factors and an all-orthogonal core.

        This fixes the rotations of the factors up to sign (by the HOSVD of the core), so that an
        entry of a factor, and of its gradient, means the same from one iteration to the next.
        """
        return self._canonical

    @lazy
    def _canonical(self) -> Self:
        point = self.orthonormal()
        rotations = [left_singular_vectors(point.core, k, r) for k, r in enumerate(point.rank)]
        turned = point.rotate(rotations)
        # known, without a QR of each factor, or turning it once more
        known = {"_norm": _size(turned.core), "bases": list(turned.factors), "_canonical": turned}
        vars(turned).update(known)
        return turned

    def balance(self, b: float = 1.0) -> Self:
        """Return the same tensor with ``U_kᵀ U_k = b² I``, the balance that Theorem 1 asks for."""
        point = self.canonical()
        factors = tuple(b * u for u in point.factors)
        return replace(point, core=point.core / b**point.order, factors=factors)

    def rotate(self, rotations: Sequence[Array]) -> Self:
        """Return the same tensor as ``(S x_j Q_jᵀ, U_1 Q_1, ..., U_d Q_d)`` for orthogonal Q_j."""
        core = multi_mode_dot(self.core, [q.T for q in rotations])
        factors = tuple(u @ q for u, q in zip(self.factors, rotations, strict=True))
        return replace(self, core=core, factors=factors)

    def turns_to(self, other: Tucker) -> list[Array]:
        """Rotations that bring these factors closest to those of another point."""
        return [polar(u.T @ v) for u, v in zip(self.factors, other.factors, strict=True)]

    def flat(self) -> Array:
        """The blocks, flattened into one vector."""
        xp = namespace(self.core)
        return xp.concat([xp.reshape(block, (-1,)) for block in self.blocks])

    def split(self, vector: Array) -> list[Array]:
        """Cut a flat vector into arrays of the shapes of the blocks; inverts :meth:`flat`.

        Axes before the last stay: a batch of vectors is cut into batches of blocks.
        """
        lead = tuple(vector.shape[:-1])
        pairs = zip(self.places, self.blocks, strict=True)
        return [reshape(vector[..., part], (*lead, *block.shape)) for part, block in pairs]

    @lazy
    def places(self) -> tuple[slice, ...]:
        """Where each block is among all of them, flattened."""
        ends = itertools.accumulate(self.sizes, initial=0)
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    def horizontal(self, columns: Array) -> Array:
        """Project columns of flattened blocks on the steps that move A: ``U_kᵀ dU_k = 0``.

        The others only rotate or rescale factors against the core.
        """
        xp = namespace(columns)
        parts = []
        for k, place in enumerate(self.places):
            part = columns[place, :]
            if 1 <= k <= self.order:
                q = self.bases[k - 1]
                wide = xp.reshape(part, (q.shape[0], -1))
                part = xp.reshape(wide - q @ (q.T @ wide), part.shape)
            parts.append(part)
        return xp.concat(parts, axis=0)

    @lazy
    def tangent(self) -> Tangent:
        """Coordinates along the steps that move A."""
        return Tangent(self.bases, [tuple(block.shape) for block in self.blocks])

    @lazy
    def bases(self) -> list[Array]:
        """Orthonormal bases of the factors' column spaces."""
        return [namespace(u).linalg.qr(u)[0] for u in self.factors]

    def align(self, target: Tucker, *, n_iter: int = 100, tol: float = 1e-12) -> Self:
        """Return the same tensor with factors and core rotated closest to those of `target`.

        Minimises ``‖S x_j Q_jᵀ - S*‖² + Σ ‖U_k Q_k - U_k*‖²`` over one rotation per mode, by
        alternating Procrustes problems from the least-squares start ``polar(U_kᵀ U_k*)`` and from
        that start with the sign of any modes turned: far from the target, signs trap the descent.
        """
        crosses = [u.T @ v for u, v in zip(self.factors, target.factors, strict=True)]
        best, smallest = self, self._gap(target)
        for signs in itertools.product((1.0, -1.0), repeat=self.order):
            rotations = [sign * polar(c) for sign, c in zip(signs, crosses, strict=True)]
            point, gap = self._procrustes(target, crosses, rotations, n_iter, tol)
            if gap < smallest:
                best, smallest = point, gap
        return best

    def _procrustes(
        self,
        target: Tucker,
        crosses: Sequence[Array],
        rotations: list[Array],
        n_iter: int,
        tol: float,
    ) -> tuple[Self, float]:
        """Turn one mode after the other until the gap to the target stops shrinking."""
        point, gap = self, math.inf
        for _ in range(n_iter):
            for k in range(self.order):
                others = [None if j == k else q.T for j, q in enumerate(rotations)]
                partial = unfold(multi_mode_dot(self.core, others), k)
                rotations[k] = polar(crosses[k] + partial @ unfold(target.core, k).T)
            point = self.rotate(rotations)
            previous, gap = gap, point._gap(target)
            if previous - gap <= tol * max(gap, tol):
                break
        return point, gap

    def _gap(self, target: Tucker) -> float:
        """Squared distance of core and factors, as they stand."""
        xp = namespace(self.core)
        pairs = [(self.core, target.core), *zip(self.factors, target.factors, strict=True)]
        return sum(float(xp.sum((mine - theirs) ** 2)) for mine, theirs in pairs)


def degrees_of_freedom(shape: Sequence[int], rank: Sequence[int]) -> int:
    """Dimension of the Tucker tensors of a rank: ``Σ (p_k r_k - r_k²) + Π r_k``.

    Examples
    --------
    >>> degrees_of_freedom((10, 10, 10), (3, 3, 3))
    90
    """
    return sum(p * r - r * r for p, r in zip(shape, rank, strict=True)) + math.prod(rank)


def _size(core: Array) -> float:
    return float(namespace(core).linalg.vector_norm(core))


def polar(matrix: Array) -> Array:
    """Orthogonal matrix Q that maximises tr(Qᵀ M)."""
    u, _, vt = namespace(matrix).linalg.svd(matrix, full_matrices=False)
    return u @ vt
