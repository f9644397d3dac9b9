"""What is asked of the arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._array import Array, to_numpy


def finite(name: str, array: Array) -> np.ndarray:
    """Return an array of floats, checked."""
    values: np.ndarray = np.asarray(to_numpy(array), dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite; got NaN or inf. Drop or impute such entries")
    return values


def covariances(matrices: Sequence[Array], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return covariance matrices of the given sizes, checked."""
    sigmas = [finite("covariance", m) for m in matrices]
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
