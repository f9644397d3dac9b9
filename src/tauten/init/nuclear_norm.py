"""The paper's starting point (appendix E): nuclear-norm penalised regression, then HOOI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import Array, column, namespace
from ..data import Rows
from ..problem import Problem
from ..robust import Adaptive, Shrink
from ..robust.thresholds import MAD
from ..tucker import Tucker, hooi
from .base import tensor_shape
from .matrices import Matricisation, by_response, most_square
from .penalised import penalised, residuals, whole

# λ as a share of the least one that leaves nothing of A. HOOI comes after and removes noise too, so
# the best penalty is a light one: on Model I, 0.05 is within 2% of the best share in [0.03, 0.7]
# under t1.2 noise and within 16% under normal noise. With classes the norm matters: 0.15.
SHARE, LIKELIHOOD_SHARE = 0.05, 0.15
# A light penalty from zero fits noise first and takes hundreds of passes to forget it. So the
# penalty falls to it from a heavy one, in rounds, before each of which δ follows the residuals.
HEAVY_SHARE, ROUNDS = 0.5, 4


def nuclear(
    problem: Problem,
    rank: Sequence[int],
    rng: np.random.Generator | None = None,
    *,
    share: float | None = None,
    n_iter: int = 60,
) -> Tucker:
    """Nuclear-norm penalised fit on the most square matricisation of A, then HOOI to the ranks.

    ``argmin_A (1/n) Σ ρ_δ(y_i - <A, X_i(ω)>) + λ ‖mat(A)‖_nuc`` (the paper's appendix E), or with
    the likelihood of classes or counts in place of Huber's ρ_δ; an intercept and vector covariates
    are not penalised. ω is the median norm of the covariates and δ follows the residuals, 1.345 of
    their robust standard deviations. Where the loss is one of the residual, y_i shrinks with X_i.

    Parameters
    ----------
    problem : Problem
    rank : sequence of int
    rng : ignored
    share : float, optional
        λ, as a share of the least one that makes A zero; by default 0.05 for losses of the residual
        and 0.15 for likelihoods.
    n_iter : int
        Most passes over the data.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="nuclear").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.2
    True
    """
    split = most_square(tensor_shape(problem))
    return _fit(problem, rank, split, omega=_median_norm(problem), share=share, n_iter=n_iter)


def nuclear_literal(
    problem: Problem,
    rank: Sequence[int],
    rng: np.random.Generator | None = None,
    *,
    share: float | None = None,
    n_iter: int = 60,
) -> Tucker:
    """:func:`nuclear` as the paper prints it: mat(A) is response modes by covariate modes.

    Only the covariates are shrunk, in a copy. For a scalar response mat(A) is one row, whose
    nuclear norm is its Euclidean norm: the low rank is of no help before HOOI.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("II", 200, rng=0)
    >>> model = tt.TensorRegressor(rank=1, init="nuclear-literal").fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.2
    True
    """
    split = by_response(tensor_shape(problem), problem.data.y.ndim - 1)
    shrunk = with_shrunk_covariates(problem, _median_norm(problem))
    return _fit(shrunk, rank, split, omega=np.inf, share=share, n_iter=n_iter)


def _fit(
    problem: Problem,
    rank: Sequence[int],
    split: Matricisation,
    *,
    omega: float,
    share: float | None,
    n_iter: int,
) -> Tucker:
    """Rounds of penalised fits, δ refreshed before each, then HOOI."""
    theta, most = whole(problem), 0.0
    if share is None:
        share = SHARE if problem.loss.residual else LIKELIHOOD_SHARE
    for c in np.geomspace(max(HEAVY_SHARE, share), share, ROUNDS):
        problem = replace(problem, robust=Adaptive(omega, np.inf, np.inf).calibrate())
        if problem.loss.residual:
            delta = 1.345 * MAD * float(np.nanmedian(np.abs(residuals(problem, theta))))
            problem = replace(problem, robust=Adaptive(omega, delta or np.inf, np.inf).calibrate())
        most = most or vanishing_level(problem, split, theta)
        theta = penalised(problem, float(c) * most, split, theta, n_iter=n_iter // ROUNDS)
    point = hooi(theta.core, rank)
    return replace(theta, core=point.core, factors=point.factors)


def vanishing_level(problem: Problem, split: Matricisation, theta: Tucker) -> float:
    """The least penalty that makes A zero: the operator norm of the gradient there."""
    gradient, _ = problem.tensor_gradient(theta)
    return float(namespace(gradient).linalg.matrix_norm(split.of(gradient), ord=2))


def with_shrunk_covariates(problem: Problem, omega: float) -> Problem:
    """The problem with ``X_i min(1, ω / ‖X_i‖_F)`` for X_i, and y as it is: a copy of X."""
    data, center = problem.data, problem.design.center
    if not isinstance(data, Rows):
        raise ValueError(
            "init 'nuclear-literal' makes a copy of X, which is not in memory; use 'nuclear'"
        )
    X: Array = data.X
    norms = data.map_rows(problem.design.norms)
    scale = Shrink(omega).calibrate().shrink(lambda: norms)
    if scale is None:
        return problem
    scale = column(scale, X.ndim)
    X = X * scale if center is None else center + (X - center) * scale
    return replace(problem, data=Rows(X, data.y, data.Z, data.weight))


def _median_norm(problem: Problem) -> float:
    return float(np.median(problem.pilot(whole(problem)).norms())) or np.inf
