"""Directions near a column space, and the ones among them that maximise a quadratic form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from .._array import Array
from .checks import finite

TIE = 1e-12  # eigenvalues of a matrix of norm one this close count as equal


@dataclass(frozen=True, eq=False)
class Cap:
    """The paper's ``V(U, δ)``: unit vectors whose angle to the column space of U has sine ≤ δ."""

    inside: np.ndarray  # orthonormal basis of the column space
    outside: np.ndarray  # and of its complement
    radius: float

    @classmethod
    def around(cls, factor: np.ndarray, radius: float) -> Cap:
        """Return the cap around the column space of a matrix."""
        left, values, _ = np.linalg.svd(factor)
        rank = np.count_nonzero(values > values[0] * max(factor.shape) * np.finfo(float).eps)
        return cls(left[:, :rank], left[:, rank:], radius)

    def join(self, inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
        """Return the vector on the rim of the cap with the given components, in direction."""
        a, c = self.inside @ _unit(inner), self.outside @ _unit(outer)
        return np.asarray(math.sqrt(1 - self.radius**2) * a + self.radius * c)

    def project(self, vector: np.ndarray) -> np.ndarray:
        """Return the point of the cap nearest to a vector; it also maximises the inner product."""
        inner, outer = self.inside.T @ vector, self.outside.T @ vector
        if np.linalg.norm(outer) <= self.radius * np.linalg.norm(vector) and vector.any():
            return _unit(vector)
        return self.join(inner, outer)

    def argmax(self, matrix: np.ndarray) -> np.ndarray:
        """Return the vector of the cap that maximises ``vᵀ M v``.

        It is a top eigenvector if the cap has one. If the cap has none, or only others than the
        one found, the maximum is attained on the rim.
        """
        top = np.linalg.eigh(matrix)[1][:, -1]
        within = np.linalg.norm(self.outside.T @ top) <= self.radius
        return top if within else self._rim_argmax(matrix)

    def _rim_argmax(self, matrix: np.ndarray) -> np.ndarray:
        """Maximise over the rim, ``v = √(1-δ²) a + δ c`` with unit a inside and c outside.

        In the scaled basis this is ``xᵀ K x`` over ``x = (a, c)`` with ``‖a‖ = ‖c‖``. By duality
        (two quadratic forms on a sphere) x is a top eigenvector of ``K - t J``, where J is 1 on a
        and -1 on c, for the t at which ``xᵀ J x``, which falls with t, crosses zero.
        """
        rank, scale = self.inside.shape[1], math.sqrt(1 - self.radius**2)
        basis = np.hstack([scale * self.inside, self.radius * self.outside])
        K = basis.T @ matrix @ basis
        K /= np.linalg.norm(K, 2) or 1.0
        J = np.where(np.arange(len(K)) < rank, 1.0, -1.0)

        def excess(t: float) -> float:
            x = np.linalg.eigh(K - t * np.diag(J))[1][:, -1]
            return float(J @ x**2)

        t = brentq(excess, -3.0, 3.0, xtol=1e-15)  # beyond 2 ‖K‖ = 2 the sign is certain
        x = _null_vector(*np.linalg.eigh(K - t * np.diag(J)), J)
        return self.join(x[:rank], x[rank:])


def caps_around(
    factors: Sequence[Array], shape: tuple[int, ...], radius: float, exclude: int | None
) -> list[Cap]:
    """Return one cap per mode, after checking everything that describes them."""
    factors = [finite("factors", u) for u in factors]
    if [u.shape[:-1] for u in factors] != [(p,) for p in shape]:
        raise ValueError(
            f"factors must be matrices with {shape} rows, one per mode; got shapes "
            f"{[u.shape for u in factors]}"
        )
    if not all(u.any() for u in factors):
        raise ValueError("factors must not be zero: a zero matrix spans no direction")
    if not 0 <= radius <= 1:
        raise ValueError(f"radius must lie in [0, 1], the sine of an angle; got {radius}")
    if exclude is not None and exclude not in range(len(shape)):
        raise ValueError(
            f"exclude must be None or a mode from 0 to {len(shape) - 1}; got {exclude}"
        )
    return [Cap.around(u, radius) for u in factors]


def _null_vector(values: np.ndarray, vectors: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return a top eigenvector with ``xᵀ J x = 0``; where xᵀJx jumps there is a space of them."""
    space = vectors[:, values >= values[-1] - TIE]
    signs, axes = np.linalg.eigh(space.T * J @ space)
    low, high = min(signs[0], 0.0), max(signs[-1], 0.0)
    weight = high / (high - low) if high > low else 1.0
    return space @ (math.sqrt(weight) * axes[:, 0] + math.sqrt(1 - weight) * axes[:, -1])


def _unit(vector: np.ndarray) -> np.ndarray:
    """Normalise; a zero vector has no direction, and the first coordinate is as good as any."""
    norm = np.linalg.norm(vector)
    return np.asarray(vector / norm) if norm > 0 else np.eye(1, len(vector))[0]
