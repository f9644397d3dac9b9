"""Starting points of PCA, where A is seen directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .._array import Array, namespace, ratio, to_numpy
from ..data import Rows
from ..problem import PILOT_SIZE, Problem
from ..robust import Huber, PseudoHuber
from ..robust.thresholds import MAD
from ..solver import ScaledDescent
from ..tucker import Tucker, hooi, hosvd


def decompose(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """Low-rank part (HOOI) of the data of PCA, robustly averaged over the replicates.

    With three replicates or more the average is the entrywise median. With fewer, entries are
    winsorised at one robust standard deviation and divided by the share of entries that this left
    alone (and that are observed), which undoes the shrinkage to first order; data that have the
    ranks up to rounding need none of that. Of many replicates, the pilot's are looked at.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("IV", 100, shape=(5, 4, 3), noise="t:1.5", rng=0)
    >>> model = tt.TensorPCA(rank=1, replicates=True, init="decompose").fit(data.y)
    >>> tt.metrics.relative_error(model.low_rank_, data.truth) < 0.3
    True
    """
    Y = to_numpy(problem.data.sample(PILOT_SIZE).y)
    if Y.shape[0] >= 3:
        seen = np.isfinite(problem.middle)
        average = np.where(seen, problem.middle, 0.0)
        return hooi(problem.data.like(average / max(seen.mean(), 1e-300)), rank)
    observed = np.isfinite(Y)
    if observed.all():
        plain = hosvd(problem.data.like(Y.mean(axis=0)), rank)
        rounding = np.finfo(Y.dtype).eps ** 0.5 * np.linalg.norm(Y)
        if np.linalg.norm(Y - to_numpy(plain.full())) <= rounding:
            return plain  # winsorised, its large entries would be outliers among small ones
    scale = MAD * np.nanmedian(np.abs(Y)) or np.inf
    kept = np.mean(observed & (np.abs(np.where(observed, Y, 0.0)) <= scale))
    winsorised = np.where(observed, np.clip(np.where(observed, Y, 0.0), -scale, scale), 0.0)
    return hooi(problem.data.like(winsorised.mean(axis=0) / max(kept, 1e-300)), rank)


def noise_location(
    problem: Problem, rank: Sequence[int], *, n_rounds: int = 20
) -> tuple[float, Tucker]:
    """A constant to take from the data of PCA when the noise is skewed, and a start without it.

    A bent score of skewed noise is not zero on average, though the noise is, and A would spend a
    component on a constant to make up for it. Here a constant μ does, with
    ``Σ ψ(Y - A - μ) = 0`` for the bend ψ of the fit; μ, ψ and a few steps of A follow each other
    until μ moves by less than a thousandth of the noise.
    """
    Y = to_numpy(problem.data.y)
    location = float(np.nanmedian(Y))
    winsorise = Huber(MAD * float(np.nanmedian(np.abs(Y - location))) or np.inf).calibrate()
    location = _location(Y, winsorise.score, location)  # the bend that `decompose` starts with
    theta = decompose(_shifted(problem, location), rank)
    for _ in range(n_rounds):
        bent = _shifted(problem, location).calibrate(theta)
        theta = ScaledDescent(n_iter=5, tol=1e-3).run(bent, theta).theta
        residuals, last = Y - to_numpy(theta.full()), location
        location = _location(residuals, bent.robust.score, last)
        if abs(location - last) <= 1e-3 * float(np.nanmedian(np.abs(residuals - location))):
            break
    return location, theta


def _shifted(problem: Problem, location: float) -> Problem:
    return replace(problem, data=Rows(None, problem.data.y - location))


def _location(values: np.ndarray, bend: Callable[[Array], Array], start: float) -> float:
    """Root μ of ``Σ ψ(x - μ)`` near a start, by reweighted means."""
    x, location = values[np.isfinite(values)], start
    for _ in range(100):
        weight = ratio(bend(x - location), x - location, otherwise=np.ones_like(x))
        location, last = float(np.average(x, weights=weight)), location
        if abs(location - last) <= 1e-6 * float(np.median(np.abs(x - location))):
            break
    return location


def pseudo_huber(
    problem: Problem,
    rank: Sequence[int],
    rng: np.random.Generator | None = None,
    *,
    delta: float | None = None,
    n_iter: int = 60,
    tol: float = 1e-4,
) -> Tucker:
    """Pseudo-Huber decomposition (Shen and Xia, 2023), the paper's start of PCA.

    Minimises ``Σ_i Σ δ² (√(1 + ((A - Y_i) / δ)²) - 1)``, over the observed entries of the n
    replicates and A of the given ranks, by gradient steps from :func:`decompose`, each cut back to
    the ranks by a sweep of HOOI. A step is the inverse of the mean curvature, and at most four.

    Parameters
    ----------
    problem : Problem
    rank : sequence of int
    rng : ignored
    delta : float, optional
        By default one robust standard deviation of the residuals, which it follows.
    n_iter : int
        Most passes over the data.
    tol : float
        Stop when A changes relatively by less.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("IV", 1, reading="ones", noise="t:1.2", rng=0)
    >>> model = tt.TensorPCA(rank=1, init="pseudo-huber").fit(data.y[0])
    >>> tt.metrics.relative_error(model.low_rank_, data.truth) < 0.2
    True
    """
    if problem.data.X is not None:
        raise ValueError("init 'pseudo-huber' is for PCA: with covariates, use 'nuclear' or 'iht'")
    theta = decompose(problem, rank)
    bend = PseudoHuber("auto" if delta is None else delta)
    for _ in range(n_iter):
        problem = replace(problem, robust=bend).calibrate(theta)
        gradient, _ = problem.tensor_gradient(theta)
        largest = namespace(gradient).max(problem.entry_curvature(theta))
        step = 1 / max(float(largest), 0.25)
        new = hooi(theta.full() - step * gradient, rank, n_iter=1, start=theta)
        change, theta = new.distance(theta), new
        if change <= tol * theta.norm():
            break
    return theta
