"""Samples of tensor models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import Loss
from ..tucker import Tucker, multi_mode_dot
from .distributions import sample
from .seeds import Seed, generator_of
from .truths import truth

# Model: how many of the last modes of A are response modes (None: all of them), and the loss.
MODELS: dict[str, tuple[int | None, str]] = {
    "I": (0, "squared"),
    "II": (1, "squared"),
    "III": (0, "logistic"),
    "IV": (None, "squared"),
}
# What the outliers follow: the tensor -A*, or nothing at all.
SIGNS = {"adversarial": -1.0, "random": 0.0}


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated sample.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d0) or None
        Covariates; None for PCA.
    y : array (n,) or (n, q_1, ..., q_m)
        Responses, or for PCA the n noisy copies of A*.
    truth : Tucker
        A*.
    outliers : array (n,) of bool
        Which samples are contaminated.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("II", 50, rng=0)
    >>> data.X.shape, data.y.shape, data.truth.shape
    ((50, 10, 10), (50, 10), (10, 10, 10))
    """

    X: np.ndarray | None
    y: np.ndarray
    truth: Tucker
    outliers: np.ndarray


def simulate(
    truth: Tucker,
    n: int,
    *,
    covariate_order: int,
    loss: str | Loss = "squared",
    covariates: str | np.ndarray = "normal",
    noise: str = "normal",
    contamination: float = 0.0,
    kind: str = "adversarial",
    rng: Seed,
) -> Simulated:
    """Draw n samples of a tensor model.

    ``η_i = ⟨A*, X_i⟩`` contracts the first `covariate_order` modes of A*; the others are response
    modes. Losses of the residual (squared, huber) get ``y_i = η_i + e_i``; every other loss
    draws y_i from its own model at η_i.

    Parameters
    ----------
    truth : Tucker
        A*.
    n : int
        Sample size.
    covariate_order : int
        d0, from 0 (PCA: ``η_i = A*``) to the order of A* (scalar responses).
    loss : str or Loss
        Any registered loss.
    covariates, noise : str
        Distribution specs, see :func:`sample`; covariates may also be given, as an array.
    contamination : float
        Share of the samples, in [0, 1), that are turned into bad leverage points: round(share n)
        of them, drawn last, so that the other samples do not depend on it.
    kind : {"adversarial", "random"}
        An adversarial outlier follows ``-A*``: ``X -> 4X, y -> -4y + 5 N(0, 1)`` for losses of the
        residual, else ``X -> 10X`` and y drawn at -η (for two classes: the label is flipped). A
        random one has the same X but y says nothing: ``5 N(0, 1)``, or drawn at η = 0.
    rng : numpy Generator or int

    Examples
    --------
    >>> data = simulate(truth((4, 3, 2)), 50, covariate_order=2, noise="t:1.5", rng=0)
    >>> data.X.shape, data.y.shape
    ((50, 4, 3), (50, 2))
    >>> simulate(truth((4, 3)), 50, covariate_order=2, contamination=0.1, rng=0).outliers.sum()
    np.int64(5)
    """
    loss, rng = Loss.get(loss), generator_of(rng)
    _check_sizes(truth, n, covariate_order, contamination)
    _check_unused(loss, covariate_order, covariates=covariates, noise=noise)
    if kind not in SIGNS:
        raise ValueError(f"kind must be one of {', '.join(SIGNS)}; got {kind!r}")
    shape = (n, *truth.shape[:covariate_order])
    X = _covariates(covariates, shape, rng) if covariate_order else np.ones(n)  # PCA: η_i = A*
    eta = _linear_predictor(truth, X)
    y = eta + sample(noise, eta.shape, rng=rng) if loss.residual else loss.draw(eta, rng)
    outliers = np.zeros(n, dtype=bool)
    outliers[rng.permutation(n)[: round(contamination * n)]] = True
    y[outliers] = _bad_responses(loss, eta[outliers], y[outliers], sign=SIGNS[kind], rng=rng)
    X[outliers] *= 4.0 if loss.residual else 10.0
    return Simulated(X if covariate_order else None, y, truth, outliers)


def make_model(
    model: str,
    n: int,
    *,
    reading: str = "unit",
    shape: Sequence[int] = (10, 10, 10),
    rank: int | Sequence[int] = 1,
    norm: float | None = None,
    rng: Seed,
    **options: Any,
) -> Simulated:
    """Draw n samples of one of the paper's models.

    ======  =====================================================================================
    "I"     ``y_i = ⟨A*, X_i⟩ + e_i``, tensor covariates, scalar responses
    "II"    ``y_i = ⟨A*, X_i⟩ + e_i``, the last mode of A* is that of a vector response
    "III"   ``P(y_i = 1 | X_i) = 1 / (1 + exp(-⟨A*, X_i⟩))``
    "IV"    ``Y_i = A* + E_i``, n copies along axis 0
    ======  =====================================================================================

    Parameters
    ----------
    model : {"I", "II", "III", "IV"}
    n : int
        Sample size.
    reading, shape, rank, norm
        Of A*, see :func:`truth`; the defaults are the paper's.
    rng : numpy Generator or int
    **options
        `covariates`, `noise`, `contamination` and `kind` of :func:`simulate`.

    Examples
    --------
    >>> data = make_model("II", 20, covariates="t:3", noise="t:1.5", rng=0)
    >>> data.X.shape, data.y.shape
    ((20, 10, 10), (20, 10))
    """
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {model!r}")
    response_order, loss = MODELS[model]
    rng = generator_of(rng)
    target = truth(shape, rank, reading=reading, norm=norm, rng=rng)
    order = 0 if response_order is None else target.order - response_order
    return simulate(target, n, covariate_order=order, loss=loss, rng=rng, **options)


def _covariates(
    spec: str | np.ndarray, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    if isinstance(spec, str):
        return sample(spec, shape, rng=rng)
    if np.shape(spec) != shape:
        raise ValueError(f"covariates must have the shape {shape}; got {np.shape(spec)}")
    return np.array(spec, dtype=float)  # a copy: outliers change it


def _linear_predictor(truth: Tucker, X: np.ndarray) -> np.ndarray:
    """``η_i = ⟨A*, X_i⟩`` from the factors: neither A* nor a second array like X is formed."""
    d0 = X.ndim - 1
    inside = multi_mode_dot(X, [u.T for u in truth.factors[:d0]], first=1)
    core = np.reshape(truth.core, (math.prod(truth.rank[:d0]), -1))
    projected = np.reshape(inside, (len(X), -1)) @ core
    response = np.reshape(projected, (len(X), *truth.rank[d0:]))
    return np.asarray(multi_mode_dot(response, truth.factors[d0:], first=1))


def _bad_responses(
    loss: Loss, eta: np.ndarray, y: np.ndarray, *, sign: float, rng: np.random.Generator
) -> np.ndarray:
    if loss.residual:
        return sign * 4 * y + 5 * rng.standard_normal(y.shape)
    return loss.draw(sign * eta, rng)


def _check_sizes(truth: Tucker, n: int, covariate_order: int, contamination: float) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}")
    if not 0 <= covariate_order <= truth.order:
        raise ValueError(
            f"covariate_order must lie between 0 (PCA) and the order {truth.order} of truth; got "
            f"{covariate_order}"
        )
    if not 0 <= contamination < 1:
        raise ValueError(f"contamination must be a share in [0, 1); got {contamination}")


def _check_unused(
    loss: Loss, covariate_order: int, *, covariates: str | np.ndarray, noise: str
) -> None:
    """Refuse a distribution that the model has no place for, rather than ignore it."""
    given = not isinstance(covariates, str)
    if covariate_order == 0 and (given or covariates != "normal"):
        raise ValueError(f"covariates must be left out for PCA, which has none; got {covariates!r}")
    if not loss.residual and noise != "normal":
        raise ValueError(
            f"noise must be left out for the {loss.name!r} loss, whose responses are drawn from "
            f"its own model; got {noise!r}"
        )
