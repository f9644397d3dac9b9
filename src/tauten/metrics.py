"""How far an estimate is from the truth: the paper's errors, and distances of column spaces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import subspace_angles

from ._array import Array, to_numpy
from .tucker import Tucker

_DISTANCES: dict[str, Callable[[np.ndarray], float]] = {
    "chordal": lambda angles: float(np.linalg.norm(np.sin(angles))),
    "spectral": lambda angles: float(np.sin(np.max(angles))),
    "projection": lambda angles: math.sqrt(2) * float(np.linalg.norm(np.sin(angles))),
    "geodesic": lambda angles: float(np.linalg.norm(angles)),
}


def estimation_error(theta: Tucker, truth: Tucker) -> float:
    """Rotation-free error ``Err(F)`` of the pieces of a Tucker tensor, the paper's eq. (est_error).

    ``min ‖S - S* x_j O_jᵀ‖² + Σ_k ‖U_k - U_k* O_k‖²`` over one orthogonal matrix per mode, by
    alternating Procrustes problems (:meth:`Tucker.align`), which find the minimum near the truth
    and, far from it, sometimes a local one only. Err compares pieces, not tensors: bring both to
    the same balance first, ``theta.balance(b)``, unless they have it already.

    Parameters
    ----------
    theta, truth : Tucker
        Of the same shape and rank.

    Returns
    -------
    float
        Squared error; ``inf`` if `theta` is not finite, as after a run that diverged.

    Examples
    --------
    >>> import numpy as np
    >>> truth = Tucker(np.ones((1, 1)), [np.ones((3, 1)), np.ones((2, 1))])
    >>> flipped = Tucker(np.ones((1, 1)), [-np.ones((3, 1)), -np.ones((2, 1))])
    >>> estimation_error(flipped, truth)
    0.0
    """
    theta, truth = _pieces(theta, "theta"), _pieces(truth, "truth")
    if (theta.shape, theta.rank) != (truth.shape, truth.rank):
        raise ValueError(
            f"theta must have the shape and rank of truth, {truth.shape} and {truth.rank}; got "
            f"{theta.shape} and {theta.rank}. Compare whole tensors with frobenius_error instead"
        )
    _check_finite("truth", *truth.blocks)
    if not all(np.isfinite(block).all() for block in theta.blocks):
        return math.inf
    pairs = zip(theta.align(truth).blocks, truth.blocks, strict=True)
    return sum(float(np.sum((mine - theirs) ** 2)) for mine, theirs in pairs)


def frobenius_error(
    estimate: Array | Tucker, truth: Array | Tucker, *, squared: bool = False, log: bool = False
) -> float:
    """Frobenius error ``‖Â - A*‖``, or its square, or the logarithm of either.

    Two Tucker tensors are compared without forming them.

    Parameters
    ----------
    estimate, truth : array or Tucker
        Of the same shape; their ranks may differ.
    squared : bool
        Whether to square the norm.
    log : bool
        Whether to take the logarithm, last; the paper plots ``log ‖Â - A*‖²``.

    Returns
    -------
    float
        ``inf`` if `estimate` is not finite, as after a run that diverged.

    Examples
    --------
    >>> import numpy as np
    >>> frobenius_error(np.array([3.0, 4.0]), np.zeros(2))
    5.0
    >>> frobenius_error(np.array([3.0, 4.0]), np.zeros(2), squared=True)
    25.0
    """
    error = _distance(estimate, truth)
    error = error**2 if squared else error
    if not log:
        return error
    return math.log(error) if error > 0 else -math.inf


def relative_error(estimate: Array | Tucker, truth: Array | Tucker) -> float:
    """Relative error ``‖Â - A*‖ / ‖A*‖``.

    Examples
    --------
    >>> import numpy as np
    >>> relative_error(np.array([3.0, 3.0]), np.array([3.0, 4.0]))
    0.2
    """
    error = _distance(estimate, truth)
    norm = truth.norm() if isinstance(truth, Tucker) else float(np.linalg.norm(to_numpy(truth)))
    if norm == 0:
        raise ValueError("truth must not be zero for a relative error; use frobenius_error instead")
    return error / norm


def subspace_distance(u: Array, v: Array, *, kind: str = "chordal") -> float:
    """Distance of two column spaces, by their principal angles Θ (accurate for tiny ones too).

    Parameters
    ----------
    u, v : arrays (p, r), (p, s)
        Any spanning columns. If the spaces have different dimensions, the smaller is compared
        with its best match inside the larger, so zero means that one contains the other.
    kind : {"chordal", "spectral", "projection", "geodesic"}
        ``‖sin Θ‖_F``, ``max sin Θ``, ``‖P_u - P_v‖_F = √2 ‖sin Θ‖_F`` (equal dimensions), ``‖Θ‖``.

    Examples
    --------
    >>> import numpy as np
    >>> round(subspace_distance(np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])), 6)
    0.707107
    """
    if kind not in _DISTANCES:
        raise ValueError(f"kind must be one of {', '.join(_DISTANCES)}; got {kind!r}")
    u, v = (_columns(name, matrix) for name, matrix in (("u", u), ("v", v)))
    if u.shape[0] != v.shape[0]:
        raise ValueError(
            f"u and v must have the same number of rows; got shapes {u.shape} and {v.shape}"
        )
    return _DISTANCES[kind](subspace_angles(u, v))


def has_converged(
    errors: Sequence[float] | np.ndarray, *, n: int, p_max: int, window: int = 50
) -> bool:
    """Say whether a run has settled, by the criterion of Experiment 1.

    The sample standard deviation of ``‖A^(t) - A*‖²`` over the last `window` iterations must be
    smaller than ``p̄ log(p̄) / (100 n)``. A run with errors that are not finite has not.

    Parameters
    ----------
    errors : sequence of floats
        ``‖A^(t) - A*‖²`` after each iteration, at least `window` of them.
    n : int
        Sample size.
    p_max : int
        Largest dimension p̄ of A.
    window : int
        Number of last iterations; 50 of the paper's 300.

    Examples
    --------
    >>> has_converged([5.0] * 10 + [1.0] * 50, n=100, p_max=10)
    True
    >>> has_converged(list(range(60)), n=100, p_max=10)
    False
    """
    errors = np.asarray(errors, dtype=float)
    if n < 1 or p_max < 2 or window < 2:
        raise ValueError(
            f"n must be at least 1, p_max and window at least 2; got {n}, {p_max}, {window}"
        )
    if errors.ndim != 1 or errors.size < window:
        raise ValueError(
            f"errors must be a flat sequence of at least window={window} numbers, one per "
            f"iteration; got shape {errors.shape}. Record every iteration or shorten window"
        )
    last = errors[-window:]
    if not np.isfinite(last).all():
        return False
    return bool(np.std(last, ddof=1) < p_max * math.log(p_max) / (100 * n))


def _distance(estimate: Array | Tucker, truth: Array | Tucker) -> float:
    """‖Â - A*‖, or inf for an estimate that is not finite."""
    shapes = [
        tuple(np.shape(a) if not isinstance(a, Tucker) else a.shape) for a in (estimate, truth)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(f"estimate must have the shape of truth, {shapes[1]}; got {shapes[0]}")
    if isinstance(estimate, Tucker) and isinstance(truth, Tucker):
        estimate, truth = _pieces(estimate, "estimate"), _pieces(truth, "truth")
        _check_finite("truth", *truth.blocks)
        finite = all(np.isfinite(block).all() for block in estimate.blocks)
        return estimate.distance(truth) if finite else math.inf
    estimate, truth = _full(estimate), _full(truth)
    _check_finite("truth", truth)
    return float(np.linalg.norm(estimate - truth)) if np.isfinite(estimate).all() else math.inf


def _pieces(theta: Tucker, name: str) -> Tucker:
    """Return the tensor alone, as numpy arrays, without the blocks that a subclass may add."""
    if not isinstance(theta, Tucker):
        raise TypeError(f"{name} must be a Tucker tensor; got {type(theta).__name__}")
    return Tucker(to_numpy(theta.core), tuple(to_numpy(u) for u in theta.factors))


def _full(tensor: Array | Tucker) -> np.ndarray:
    return to_numpy(tensor.full() if isinstance(tensor, Tucker) else tensor)


def _check_finite(name: str, *arrays: np.ndarray) -> None:
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError(f"{name} must be finite; got NaN or inf. Drop or impute such entries")


def _columns(name: str, matrix: Array) -> np.ndarray:
    """Return a matrix whose columns span a space."""
    columns: np.ndarray = np.asarray(to_numpy(matrix), dtype=float)
    if columns.ndim != 2 or not columns.any():
        raise ValueError(
            f"{name} must be a matrix with columns that span a space, not all zero; got shape "
            f"{columns.shape}"
        )
    _check_finite(name, columns)
    return columns
