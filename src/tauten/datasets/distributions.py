"""Distributions of covariates and noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..tucker import mode_dot
from .seeds import Seed, generator_of


def sample(spec: str, shape: Sequence[int], *, rng: Seed) -> np.ndarray:
    """Draw an array from a spec; axis 0 holds the samples.

    Examples
    --------
    >>> sample("t:2.1", (5, 3, 3), rng=0).shape
    (5, 3, 3)
    """
    name, _, parameter = str(spec).partition(":")
    if name not in {"normal", *FAMILIES} or (name == "normal") == bool(parameter):
        raise ValueError(
            f"a distribution must be 'normal', 't:DF', 'pareto:INDEX' or 'kronecker:THETA'; got "
            f"{spec!r}"
        )
    generator, size = generator_of(rng), tuple(shape)
    if name == "normal":
        return generator.standard_normal(size)
    try:
        value = float(parameter)
    except ValueError:
        value = math.nan
    return FAMILIES[name](value, size, generator)


def directional_covariance(p: int, theta: float) -> np.ndarray:
    """Σ_θ of Experiment 3, ``½ I + ½ v vᵀ`` with ``v = sin θ 1 + cos θ w``.

    ``w = (1, -1, 1, ...)``; θ, in radians, turns the direction of most variance from w (0) to
    the factors of A* (π/2).

    Examples
    --------
    >>> import numpy as np
    >>> directional_covariance(2, np.pi / 2).round(6)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    w = np.where(np.arange(p) % 2, -1.0, 1.0)
    v = math.sin(theta) + math.cos(theta) * w
    return (np.eye(p) + np.outer(v, v)) / 2


def _student(df: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if not df > 0:
        raise ValueError(f"'t:DF' must have a positive number of degrees of freedom; got {df}")
    return rng.standard_t(df, shape)


def _pareto(index: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if not index > 1:
        raise ValueError(f"'pareto:INDEX' must have an index above 1, to have a mean; got {index}")
    return rng.pareto(index, shape) - 1 / (index - 1)


def _kronecker(theta: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if not math.isfinite(theta):
        raise ValueError(f"'kronecker:THETA' must have an angle in radians; got {theta}")
    tensors = rng.standard_normal(shape)
    for mode, p in enumerate(shape[1:], start=1):
        root = np.linalg.cholesky(directional_covariance(p, theta))
        tensors = mode_dot(tensors, root, mode)
    return tensors


FAMILIES: dict[str, Callable[..., np.ndarray]] = {
    "t": _student,
    "pareto": _pareto,
    "kronecker": _kronecker,
}
