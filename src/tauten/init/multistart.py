"""Starting points that need chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import like
from ..problem import Problem
from ..robust.thresholds import robust_scale
from ..solver import Newton
from ..solver.loop import run_together
from ..tucker import Tucker
from .base import tame
from .decomposition import decompose
from .thresholding import iht, ihts

BOOTSTRAPS = 6


def restarts(problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """The best of several starts after a short robust fit: the default where samples are few.

    Starts are :func:`iht`, :func:`spectral`, and six spectral ones of randomly reweighted samples
    (a Bayesian bootstrap), as local fits from one start alone end in the wrong place there. From
    each, a few Gauss-Newton steps on Huber scores, side by side; the least :func:`spread` wins.

    Parameters
    ----------
    problem : Problem
    rank : sequence of int
    rng : Generator
        For the weights.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 100, rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="restarts", random_state=0).fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """
    if problem.data.X is None:
        raise ValueError("init 'restarts' needs covariates: for PCA, use 'decompose'")
    weighings = [problem, *(_reweighted(problem, rng) for _ in range(BOOTSTRAPS))]
    spectrals = ihts(weighings, [rank] * len(weighings), n_iter=1)
    fits = polish(problem, [iht(problem, rank), *spectrals])
    return min(fits, key=lambda theta: spread(problem, theta))


def polish(
    problem: Problem, thetas: Sequence[Tucker], *, n_rounds: int = 2, n_iter: int = 8
) -> Sequence[Tucker]:
    """Short local fits: Gauss-Newton steps on scores truncated at 1.345 standard deviations.

    They go through the data together: a step of all of them is one pass.
    """
    for _ in range(n_rounds):
        shrink = not problem.loss.residual
        bent = [tame(problem, problem.pilot(theta), shrink=shrink) for theta in thetas]
        runs = run_together(Newton(n_iter, tol=1e-3), bent, thetas)
        thetas = [run.theta for run in runs]
    return thetas


def spread(problem: Problem, theta: Tucker) -> float:
    """Robust size of what a fit leaves unexplained, over the pilot's samples.

    The squared τ-scale ``σ² mean min((r / σ)², 9)`` of the residuals, σ their robust standard
    deviation; of a likelihood, the mean loss without the worst tenth. It sees how well most samples
    are fitted and forgives the others.
    """
    if not problem.loss.residual:
        values = np.sort(problem.pilot(theta).values())
        return float(np.mean(values[: max(1, int(0.9 * values.size))]))
    scores = problem.pilot(theta).scores()
    scores = scores[np.isfinite(scores)]
    scale = robust_scale(scores) or 1.0
    return scale**2 * float(np.mean(np.minimum((scores / scale) ** 2, 9.0)))


def _reweighted(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with its samples' weights multiplied by standard exponential ones."""
    data = problem.data
    weight = data.like(rng.exponential(size=data.n))
    weight = weight if data.weight is None else weight * data.weight
    return replace(problem, data=data.reweight(weight))


def random(problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Random orthonormal factors and a random core, of the norm of the model's default start.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, shape=(5, 4), rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="random", random_state=0).fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.2
    True
    """
    scale = (decompose if problem.data.X is None else iht)(problem, rank)
    shapes = zip(scale.shape, scale.rank, strict=True)
    factors = [np.linalg.qr(rng.standard_normal((p, r)))[0] for p, r in shapes]
    core = rng.standard_normal(scale.rank)
    core *= scale.norm() / np.linalg.norm(core)
    reference = scale.core
    return replace(
        scale, core=like(core, reference), factors=tuple(like(u, reference) for u in factors)
    )
