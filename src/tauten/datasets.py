"""Simulated data: the paper's Models I to IV, and any other shape, rank, loss and tail.

Distributions are short specs:

===================  ===========================================================================
``"normal"``         standard normal
``"t:2.1"``          Student's t with 2.1 degrees of freedom
``"pareto:2.1"``     Pareto with tail index 2.1 (more than 1), minus its mean: skewed, mean zero
``"kronecker:0.8"``  Gaussian tensor with covariance Σ_θ, θ = 0.8 radians, along every mode: the
                     covariates of Experiment 3; a scalar has no mode and is standard normal
===================  ===========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .losses import Loss
from .tucker import Tucker, mode_dot, multi_mode_dot

Seed = np.random.Generator | int

# Model: how many of the last modes of A are response modes (None: all of them), and the loss.
_MODELS: dict[str, tuple[int | None, str]] = {
    "I": (0, "squared"),
    "II": (1, "squared"),
    "III": (0, "logistic"),
    "IV": (None, "squared"),
}
# What the outliers follow: the tensor -A*, or nothing at all.
_SIGNS = {"adversarial": -1.0, "random": 0.0}


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


def truth(
    shape: Sequence[int] = (10, 10, 10),
    rank: int | Sequence[int] = 1,
    *,
    reading: str = "unit",
    norm: float | None = None,
    rng: Seed | None = None,
) -> Tucker:
    """Return a tensor A* to estimate.

    The paper's ``A* = √10 · 1∘1∘1 = S* x_j U_j*`` can be read in two ways, which differ in scale.

    Parameters
    ----------
    shape : sequence of ints
        Dimensions.
    rank : int or sequence of ints
        One for all modes or one per mode; 1 for the paper's readings.
    reading : {"unit", "ones", "random"}
        ``U_j* = 1/√p_j``, so that ``‖A*‖ = √10``; ``U_j* = 1``, so that ``‖A*‖ = √10 Π √p_j``;
        or uniformly random orthonormal factors and a Gaussian core.
    norm : float, optional
        Frobenius norm of A*. By default that of the reading; √10 for a random one.
    rng : numpy Generator or int
        Needed for a random one.

    Examples
    --------
    >>> round(truth(reading="ones").norm(), 6), round(truth(reading="unit").norm(), 6)
    (100.0, 3.162278)
    >>> truth((5, 6, 7), (2, 3, 2), reading="random", norm=3.0, rng=0).rank
    (2, 3, 2)
    """
    shape, rank = tuple(shape), _ranks(shape, rank)
    if reading not in {"unit", "ones", "random"}:
        raise ValueError(f"reading must be 'unit', 'ones' or 'random'; got {reading!r}")
    if norm is not None and not (0 < norm < math.inf):
        raise ValueError(f"norm must be a positive number; got {norm}")
    if reading == "random":
        return _random_truth(shape, rank, norm or math.sqrt(10), _generator(rng))
    if max(rank) > 1:
        raise ValueError(
            f"rank must be 1 for reading {reading!r}; got {rank}. Use 'random' instead"
        )
    lengths = [math.sqrt(p) for p in shape]
    scales = lengths if reading == "unit" else [1.0] * len(shape)
    # ‖A*‖ = S* Π ‖U_j*‖, and ‖U_j*‖ = √p_j / scale.
    core = math.sqrt(10) if norm is None else norm * math.prod(scales) / math.prod(lengths)
    factors = [np.full((p, 1), 1 / scale) for p, scale in zip(shape, scales, strict=True)]
    return Tucker(np.full(rank, core), tuple(factors))


def sample(spec: str, shape: Sequence[int], *, rng: Seed) -> np.ndarray:
    """Draw an array from a spec; axis 0 holds the samples.

    Examples
    --------
    >>> sample("t:2.1", (5, 3, 3), rng=0).shape
    (5, 3, 3)
    """
    name, _, parameter = str(spec).partition(":")
    if name not in {"normal", *_FAMILIES} or (name == "normal") == bool(parameter):
        raise ValueError(
            f"a distribution must be 'normal', 't:DF', 'pareto:INDEX' or 'kronecker:THETA'; got "
            f"{spec!r}"
        )
    generator, size = _generator(rng), tuple(shape)
    if name == "normal":
        return generator.standard_normal(size)
    try:
        value = float(parameter)
    except ValueError:
        value = math.nan
    return _FAMILIES[name](value, size, generator)


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
    loss, rng = Loss.get(loss), _generator(rng)
    _check_sizes(truth, n, covariate_order, contamination)
    _check_unused(loss, covariate_order, covariates=covariates, noise=noise)
    if kind not in _SIGNS:
        raise ValueError(f"kind must be one of {', '.join(_SIGNS)}; got {kind!r}")
    shape = (n, *truth.shape[:covariate_order])
    X = _covariates(covariates, shape, rng) if covariate_order else np.ones(n)  # PCA: η_i = A*
    eta = _linear_predictor(truth, X)
    y = eta + sample(noise, eta.shape, rng=rng) if loss.residual else loss.draw(eta, rng)
    outliers = np.zeros(n, dtype=bool)
    outliers[rng.permutation(n)[: round(contamination * n)]] = True
    y[outliers] = _bad_responses(loss, eta[outliers], y[outliers], sign=_SIGNS[kind], rng=rng)
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
    if model not in _MODELS:
        raise ValueError(f"model must be one of {', '.join(_MODELS)}; got {model!r}")
    response_order, loss = _MODELS[model]
    rng = _generator(rng)
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


_FAMILIES: dict[str, Callable[..., np.ndarray]] = {
    "t": _student,
    "pareto": _pareto,
    "kronecker": _kronecker,
}


def _random_truth(
    shape: tuple[int, ...], rank: tuple[int, ...], norm: float, rng: np.random.Generator
) -> Tucker:
    core = rng.standard_normal(rank)
    factors = [_orthonormal(p, r, rng) for p, r in zip(shape, rank, strict=True)]
    return Tucker(norm / np.linalg.norm(core) * core, tuple(factors))


def _orthonormal(p: int, r: int, rng: np.random.Generator) -> np.ndarray:
    q, triangle = np.linalg.qr(rng.standard_normal((p, r)))
    return q * np.sign(np.diag(triangle))  # without the signs QR is not uniform over the rotations


def _generator(rng: Seed | None) -> np.random.Generator:
    if rng is None:
        raise ValueError("rng must be a numpy Generator or an int seed; got None")
    return np.random.default_rng(rng)


def _ranks(shape: tuple[int, ...], rank: int | Sequence[int]) -> tuple[int, ...]:
    """One rank per mode, checked against what a tensor of that shape can have."""
    ranks = (int(rank),) * len(shape) if isinstance(rank, int | np.integer) else tuple(rank)
    if not shape or min(shape) < 1 or len(ranks) != len(shape) or min(ranks) < 1:
        raise ValueError(
            f"shape must hold positive ints and rank one for all or one per mode; got {shape} and "
            f"{rank}"
        )
    for mode, (p, r) in enumerate(zip(shape, ranks, strict=True)):
        limit = min(p, math.prod(ranks) // r)
        if r > limit:
            raise ValueError(
                f"rank of axis {mode} must be at most {limit}, the smaller of its dimension and "
                f"the product of the other ranks; got {r}"
            )
    return ranks


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
