"""Local moments (section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._array import Array
from ..tucker import multi_mode_dot, unfold
from .caps import Cap, caps_around
from .checks import covariances, finite

Update = Callable[[list[np.ndarray], int], tuple[np.ndarray, float]]
SETTLED = 1e-10  # an ascent stops when a sweep over the modes gains less, relatively


def local_moment(
    samples: Array,
    factors: Sequence[Array],
    *,
    order: float = 2.0,
    radius: float = 1.0,
    exclude: int | None = None,
    n_starts: int = 5,
    n_iter: int = 200,
    rng: np.random.Generator | int,
) -> float:
    """Local moment of a random tensor, from samples of it.

    ``LM_0 = sup mean |T x_j v_jᵀ|^order`` over unit vectors v_j whose angle to the column space of
    U_j has a sine of at most `radius`. In LM_k the vector of mode k runs over the coordinate
    vectors instead.

    Parameters
    ----------
    samples : array (n, p_1, ..., p_d)
    factors : sequence of arrays (p_j, r_j)
        U_j*, one per mode.
    order : float
        η, at least 1.
    radius : float
        δ in [0, 1]: 0 is the column spaces themselves, 1 the global moment.
    exclude : int, optional
        Mode for LM_k, counted from 0 as numpy's axes: ``exclude=0`` is the paper's LM_1. By
        default LM_0, over all modes.
    n_starts, n_iter : int
        Number of starting points, all random but the first, and of sweeps over the modes.
    rng : numpy Generator or int

    Notes
    -----
    One mode after the other, a minorant that touches the moment is maximised exactly over its cap:
    a quadratic form for orders from 2 on, a plane below. The moment can only rise, but may stop at
    a local maximum, so the value is a lower bound. As a maximum it exceeds the moment of the
    population in the same directions, the more so the fewer the samples.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> local_moment(x, [np.array([[0.0], [1.0]])], radius=0.0, rng=0)
    0.5
    >>> local_moment(x, [np.array([[0.0], [1.0]])], radius=1.0, rng=0)
    4.5
    """
    samples = finite("samples", samples)
    if samples.ndim < 2 or len(samples) < 1:
        raise ValueError(f"samples must have shape (n, p_1, ..., p_d); got {samples.shape}")
    if not 1 <= order < math.inf:
        raise ValueError(f"order must be at least 1 and finite; got {order}")
    caps = caps_around(factors, samples.shape[1:], radius, exclude)
    search = Search(n_starts, n_iter, np.random.default_rng(rng))
    if exclude is None:
        return _sample_moment(samples, caps, order, search)
    del caps[exclude]
    slices = np.ascontiguousarray(np.moveaxis(samples, exclude + 1, 0))
    return max(_sample_moment(part, caps, order, search) for part in slices)


def gaussian_local_moment(
    covariance: np.ndarray | Sequence[np.ndarray],
    factors: Sequence[Array],
    *,
    radius: float = 1.0,
    exclude: int | None = None,
    n_starts: int = 5,
    n_iter: int = 200,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Local second moment of a random tensor with mean zero and known covariance.

    Parameters
    ----------
    covariance : sequence of arrays (p_j, p_j), or array (Π p_j, Π p_j)
        One matrix per mode, ``Cov(vec T) = Σ_d ⊗ ... ⊗ Σ_1``, for which the answer is exact; or
        the covariance of ``vec(T)`` in the paper's order, first index fastest.
    factors, radius, exclude, n_starts, n_iter
        See :func:`local_moment`.
    rng : numpy Generator or int
        Needed for a dense covariance, where the maximum is searched from several starts.

    Examples
    --------
    The covariates of Experiment 3: their global moment does not depend on θ, the local one does.

    >>> import numpy as np
    >>> from tauten.datasets import directional_covariance
    >>> ones = [np.ones((10, 1))] * 3
    >>> for theta in (0.0, np.pi / 2):
    ...     sigmas = [directional_covariance(10, theta)] * 3
    ...     local, total = (gaussian_local_moment(sigmas, ones, radius=r) for r in (0.0, 1.0))
    ...     round(local, 3), round(total, 3)
    (0.125, 166.375)
    (166.375, 166.375)
    """
    shape = tuple(len(u) for u in factors)
    caps = caps_around(factors, shape, radius, exclude)
    if not (isinstance(covariance, np.ndarray) and covariance.ndim == 2):
        return _kronecker_moment(covariances(list(covariance), shape), caps, exclude)
    (sigma,) = covariances([covariance], (math.prod(shape),))
    if rng is None:
        raise ValueError("rng must be a numpy Generator or an int seed for a dense covariance")
    search = Search(n_starts, n_iter, np.random.default_rng(rng))
    sigma = np.reshape(sigma, (*shape, *shape), order="F")
    if exclude is None:
        return _dense_moment(sigma, caps, search)
    del caps[exclude]
    slices = np.moveaxis(np.diagonal(sigma, axis1=exclude, axis2=exclude + len(shape)), -1, 0)
    return max(_dense_moment(part, caps, search) for part in slices)


@dataclass(frozen=True)
class Search:
    """Alternating maximisation over one vector per mode, from several starts."""

    n_starts: int
    n_iter: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        if self.n_starts < 1 or self.n_iter < 1:
            raise ValueError(
                f"n_starts and n_iter must be at least 1; got {self.n_starts} and {self.n_iter}"
            )

    def run(self, caps: list[Cap], marginals: list[np.ndarray], update: Update) -> float:
        """Start from the best vector for each mode's marginal covariance, then from random ones."""
        starts = [[cap.argmax(m) for cap, m in zip(caps, marginals, strict=True)]]
        for _ in range(self.n_starts - 1):
            starts.append([cap.project(self.rng.standard_normal(len(cap.inside))) for cap in caps])
        return max(self._ascend(vectors, update) for vectors in starts)

    def _ascend(self, vectors: list[np.ndarray], update: Update) -> float:
        value = 0.0
        for _ in range(self.n_iter):
            previous = value
            for k in range(len(vectors)):
                vectors[k], value = update(vectors, k)
            if value - previous <= SETTLED * value:
                break
        return value


def _sample_moment(samples: np.ndarray, caps: list[Cap], order: float, search: Search) -> float:
    """LM_0 of samples (n, p_1, ..., p_d); with d = 0, the plain moment."""
    if not caps:
        return float(np.mean(np.abs(samples) ** order))

    def update(vectors: list[np.ndarray], k: int) -> tuple[np.ndarray, float]:
        Z = multi_mode_dot(samples, _all_but(vectors, k), first=1).reshape(len(samples), -1)
        v = _step(Z, vectors[k], caps[k], order)
        return v, float(np.mean(np.abs(Z @ v) ** order))

    unfoldings = (unfold(samples, k + 1) for k in range(len(caps)))
    return search.run(caps, [m @ m.T for m in unfoldings], update)


def _step(Z: np.ndarray, v: np.ndarray, cap: Cap, order: float) -> np.ndarray:
    """Maximise over the cap a minorant of ``mean |Z v|^order`` that touches it at v."""
    z = Z @ v
    size = np.abs(z) / (np.max(np.abs(z)) or 1.0)  # only ratios matter, and powers may overflow
    if order < 2:  # convex in z: above its tangent plane
        return cap.project(Z.T @ (np.sign(z) * size ** (order - 1)))
    return cap.argmax(Z.T * size ** (order - 2) @ Z)  # convex in z²: above a quadratic form


def _dense_moment(sigma: np.ndarray, caps: list[Cap], search: Search) -> float:
    """LM_0 at order 2 from a covariance (p_1, ..., p_d, p_1, ..., p_d)."""
    if not caps:
        return float(sigma)
    d = len(caps)

    def update(vectors: list[np.ndarray], k: int) -> tuple[np.ndarray, float]:
        M = multi_mode_dot(sigma, _all_but(vectors, k) * 2).reshape((sigma.shape[k],) * 2)
        v = caps[k].argmax(M)
        return v, float(v @ M @ v)

    indices = [[*range(d), *(d if j == k else j for j in range(d))] for k in range(d)]
    marginals = [np.einsum(sigma, index, [k, d]) for k, index in enumerate(indices)]
    return search.run(caps, marginals, update)


def _kronecker_moment(sigmas: list[np.ndarray], caps: list[Cap], exclude: int | None) -> float:
    """Return the product of one maximum per mode."""
    vectors = [cap.argmax(sigma) for cap, sigma in zip(caps, sigmas, strict=True)]
    peaks = [float(v @ sigma @ v) for v, sigma in zip(vectors, sigmas, strict=True)]
    if exclude is not None:
        peaks[exclude] = float(np.max(np.diag(sigmas[exclude])))
    return math.prod(peaks)


def _all_but(vectors: list[np.ndarray], k: int) -> list[np.ndarray | None]:
    return [None if j == k else v[None, :] for j, v in enumerate(vectors)]
