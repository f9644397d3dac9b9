"""Are the data heavy-tailed, and where: local moments (section 3.1), kurtosis, tail index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ._array import Array, to_numpy
from .tucker import multi_mode_dot, unfold

_Update = Callable[[list[np.ndarray], int], tuple[np.ndarray, float]]

_TIE = 1e-12  # eigenvalues of a matrix of norm one this close count as equal
_SETTLED = 1e-10  # an ascent stops when a sweep over the modes gains less, relatively


class TailIndex(NamedTuple):
    """Estimate of a tail index α, ``P(|x| > t) ~ t^(-α)``: moments of order below α are finite.

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> noise = np.random.default_rng(0).standard_t(2, size=20_000)
    >>> found = tt.diagnostics.tail_index(noise)
    >>> abs(found.alpha - 2) < 4 * found.stderr
    True
    """

    alpha: float
    stderr: float


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
    samples = _finite("samples", samples)
    if samples.ndim < 2 or len(samples) < 1:
        raise ValueError(f"samples must have shape (n, p_1, ..., p_d); got {samples.shape}")
    if not 1 <= order < math.inf:
        raise ValueError(f"order must be at least 1 and finite; got {order}")
    caps = _caps(factors, samples.shape[1:], radius, exclude)
    search = _Search(n_starts, n_iter, np.random.default_rng(rng))
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
    caps = _caps(factors, shape, radius, exclude)
    if not (isinstance(covariance, np.ndarray) and covariance.ndim == 2):
        return _kronecker_moment(_covariances(list(covariance), shape), caps, exclude)
    (sigma,) = _covariances([covariance], (math.prod(shape),))
    if rng is None:
        raise ValueError("rng must be a numpy Generator or an int seed for a dense covariance")
    search = _Search(n_starts, n_iter, np.random.default_rng(rng))
    sigma = np.reshape(sigma, (*shape, *shape), order="F")
    if exclude is None:
        return _dense_moment(sigma, caps, search)
    del caps[exclude]
    slices = np.moveaxis(np.diagonal(sigma, axis1=exclude, axis2=exclude + len(shape)), -1, 0)
    return max(_dense_moment(part, caps, search) for part in slices)


def kurtosis_map(X: Array) -> np.ndarray:
    """Kurtosis of every entry over the samples, ``m_4 / m_2²``; 3 for a normal, NaN for a constant.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d)
        At least four samples.

    Examples
    --------
    >>> import numpy as np
    >>> kurtosis_map(np.array([[-1.0, 5.0], [1.0, 5.0], [-1.0, 5.0], [1.0, 5.0]]))
    array([ 1., nan])
    """
    X = _finite("X", X)
    if X.ndim == 0 or len(X) < 4:
        raise ValueError(f"X must hold at least 4 samples along axis 0; got shape {X.shape}")
    constant = np.ptp(X, axis=0) == 0
    centred = X - X.mean(axis=0)
    centred /= np.where(constant, 1.0, np.abs(centred).max(axis=0))  # a fourth power may overflow
    second, fourth = (centred**2).mean(axis=0), (centred**4).mean(axis=0)
    return np.where(constant, np.nan, fourth / np.where(constant, 1.0, second) ** 2)


def tail_index(x: Array, *, share: float = 0.05) -> TailIndex:
    """Hill's estimate of the tail index of ``|x|``, from the largest `share` of the values.

    With k such values, ``1/α`` is the mean of their logarithms above that of the next value, and
    the standard error is ``α / √k``. Values that are all equal have no tail: ``α = inf``.

    Parameters
    ----------
    x : array
        Of any shape; taken as one sample.
    share : float
        Between 0 and 1; small enough to see the tail only, large enough to average over it.

    Examples
    --------
    >>> import numpy as np
    >>> heavy = np.random.default_rng(0).standard_t(1.5, size=20_000)
    >>> alpha, stderr = tail_index(heavy)
    >>> abs(alpha - 1.5) < 3 * stderr
    True
    """
    x = np.sort(np.abs(_finite("x", x)), axis=None)
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1; got {share}")
    k = int(share * x.size)
    if k < 2:
        raise ValueError(
            f"x must be long enough for a share of {share} to hold 2 values; got {x.size} values. "
            f"Give more, or a larger share"
        )
    if x[-k - 1] == 0:
        raise ValueError(f"x must have fewer zeros, or share be smaller than {share}")
    excess = float(np.mean(np.log(x[-k:]) - np.log(x[-k - 1])))
    alpha = 1 / excess if excess > 0 else math.inf
    return TailIndex(alpha, alpha / math.sqrt(k))


@dataclass(frozen=True, eq=False)
class _Cap:
    """The paper's ``V(U, δ)``: unit vectors whose angle to the column space of U has sine ≤ δ."""

    inside: np.ndarray  # orthonormal basis of the column space
    outside: np.ndarray  # and of its complement
    radius: float

    @classmethod
    def around(cls, factor: np.ndarray, radius: float) -> _Cap:
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


def _null_vector(values: np.ndarray, vectors: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return a top eigenvector with ``xᵀ J x = 0``; where xᵀJx jumps there is a space of them."""
    space = vectors[:, values >= values[-1] - _TIE]
    signs, axes = np.linalg.eigh(space.T * J @ space)
    low, high = min(signs[0], 0.0), max(signs[-1], 0.0)
    weight = high / (high - low) if high > low else 1.0
    return space @ (math.sqrt(weight) * axes[:, 0] + math.sqrt(1 - weight) * axes[:, -1])


def _unit(vector: np.ndarray) -> np.ndarray:
    """Normalise; a zero vector has no direction, and the first coordinate is as good as any."""
    norm = np.linalg.norm(vector)
    return np.asarray(vector / norm) if norm > 0 else np.eye(1, len(vector))[0]


@dataclass(frozen=True)
class _Search:
    """Alternating maximisation over one vector per mode, from several starts."""

    n_starts: int
    n_iter: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        if self.n_starts < 1 or self.n_iter < 1:
            raise ValueError(
                f"n_starts and n_iter must be at least 1; got {self.n_starts} and {self.n_iter}"
            )

    def run(self, caps: list[_Cap], marginals: list[np.ndarray], update: _Update) -> float:
        """Start from the best vector for each mode's marginal covariance, then from random ones."""
        starts = [[cap.argmax(m) for cap, m in zip(caps, marginals, strict=True)]]
        for _ in range(self.n_starts - 1):
            starts.append([cap.project(self.rng.standard_normal(len(cap.inside))) for cap in caps])
        return max(self._ascend(vectors, update) for vectors in starts)

    def _ascend(self, vectors: list[np.ndarray], update: _Update) -> float:
        value = 0.0
        for _ in range(self.n_iter):
            previous = value
            for k in range(len(vectors)):
                vectors[k], value = update(vectors, k)
            if value - previous <= _SETTLED * value:
                break
        return value


def _sample_moment(samples: np.ndarray, caps: list[_Cap], order: float, search: _Search) -> float:
    """LM_0 of samples (n, p_1, ..., p_d); with d = 0, the plain moment."""
    if not caps:
        return float(np.mean(np.abs(samples) ** order))

    def update(vectors: list[np.ndarray], k: int) -> tuple[np.ndarray, float]:
        Z = multi_mode_dot(samples, _all_but(vectors, k), first=1).reshape(len(samples), -1)
        v = _step(Z, vectors[k], caps[k], order)
        return v, float(np.mean(np.abs(Z @ v) ** order))

    unfoldings = (unfold(samples, k + 1) for k in range(len(caps)))
    return search.run(caps, [m @ m.T for m in unfoldings], update)


def _step(Z: np.ndarray, v: np.ndarray, cap: _Cap, order: float) -> np.ndarray:
    """Maximise over the cap a minorant of ``mean |Z v|^order`` that touches it at v."""
    z = Z @ v
    size = np.abs(z) / (np.max(np.abs(z)) or 1.0)  # only ratios matter, and powers may overflow
    if order < 2:  # convex in z: above its tangent plane
        return cap.project(Z.T @ (np.sign(z) * size ** (order - 1)))
    return cap.argmax(Z.T * size ** (order - 2) @ Z)  # convex in z²: above a quadratic form


def _dense_moment(sigma: np.ndarray, caps: list[_Cap], search: _Search) -> float:
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


def _kronecker_moment(sigmas: list[np.ndarray], caps: list[_Cap], exclude: int | None) -> float:
    """Return the product of one maximum per mode."""
    vectors = [cap.argmax(sigma) for cap, sigma in zip(caps, sigmas, strict=True)]
    peaks = [float(v @ sigma @ v) for v, sigma in zip(vectors, sigmas, strict=True)]
    if exclude is not None:
        peaks[exclude] = float(np.max(np.diag(sigmas[exclude])))
    return math.prod(peaks)


def _all_but(vectors: list[np.ndarray], k: int) -> list[np.ndarray | None]:
    return [None if j == k else v[None, :] for j, v in enumerate(vectors)]


def _finite(name: str, array: Array) -> np.ndarray:
    values: np.ndarray = np.asarray(to_numpy(array), dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite; got NaN or inf. Drop or impute such entries")
    return values


def _caps(
    factors: Sequence[Array], shape: tuple[int, ...], radius: float, exclude: int | None
) -> list[_Cap]:
    """Return one cap per mode, after checking everything that describes them."""
    factors = [_finite("factors", u) for u in factors]
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
    return [_Cap.around(u, radius) for u in factors]


def _covariances(matrices: Sequence[Array], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return covariance matrices of the given sizes, checked."""
    sigmas = [_finite("covariance", m) for m in matrices]
    if [s.shape for s in sigmas] != [(p, p) for p in shape]:
        raise ValueError(
            f"covariance must be one square matrix per mode, of sizes {shape}, or one array of "
            f"their product; got shapes {[s.shape for s in sigmas]}"
        )
    if not all(_is_covariance(s) for s in sigmas):
        raise ValueError(
            "covariance must be symmetric and positive semidefinite; got one that is not"
        )
    return sigmas


def _is_covariance(sigma: np.ndarray) -> bool:
    ridge = 1e-8 * (float(np.max(np.abs(sigma))) or 1.0)  # forgives rounding, and singular ones
    try:
        np.linalg.cholesky(sigma + ridge * np.eye(len(sigma)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.max(np.abs(sigma - sigma.T)) <= ridge)
