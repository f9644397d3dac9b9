"""Choices that need fits: ranks (robust BIC, cross-validation) and thresholds by cross-validation.

Folds and candidates are weights of zero and one on the same data: X is never copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from sklearn.base import clone

from ._array import column, namespace, to_numpy
from ._checks import feasible_rank
from .init import degrees_of_freedom, start, tensor_shape
from .losses import Loss
from .problem import Problem, scores, values
from .robust import Adaptive, Robustifier
from .robust.thresholds import MAD
from .solver import Solver, choose, run_together
from .tucker import Tucker

HUBER = 1.345
LARGEST_RANK = 5
ROUGH, FOLD_STEPS = 1e-2, 4  # a prediction error needs no better fit
QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

Rank = tuple[int, ...]


@dataclass(frozen=True)
class RankPath:
    """The ranks tried, in order, with their criterion; the least one is chosen."""

    rank: Rank
    ranks: list[Rank]
    criterion: list[float]


def select_rank(
    problem: Problem,
    *,
    criterion: str = "bic",
    rng: np.random.Generator,
    largest: int = LARGEST_RANK,
) -> RankPath:
    """Choose Tucker ranks: the best equal ranks, then moves of one or two modes by one.

    Parameters
    ----------
    problem : Problem
    criterion : {"bic", "cv"}
        ``"bic"``: twice Huber's loss of the standardised residuals (or the deviance) plus
        ``df log N``. ``"cv"``: five-fold robust prediction error.
    rng : Generator
        For the folds, and for starts that draw.
    largest : int
        Largest rank of a mode.
    """
    shape = tensor_shape(problem)
    largest = largest if len(shape) > 1 else 1  # a vector has rank one
    equal = [feasible_rank([min(r, p) for p in shape]) for r in range(1, largest + 1)]
    room = np.count_nonzero(_seen(problem)) / 2  # more free parameters than that tell nothing
    equal = [r for r in equal if degrees_of_freedom(shape, r) <= room] or equal[:1]
    cost = {"bic": _bic, "cv": _cross_validated}[criterion](problem, equal[-1], rng)
    tried: dict[Rank, float] = {}

    def best(candidates: Iterable[Rank]) -> Rank:
        for rank in candidates:
            if rank not in tried and degrees_of_freedom(shape, rank) <= room:
                tried[rank] = cost(rank)
        return min(tried, key=lambda rank: tried[rank], default=equal[0])

    current = best(equal)
    while (move := best(_neighbours(current, shape, largest))) != current:
        current = move
    return RankPath(current, list(tried), list(tried.values()))


def _neighbours(rank: Rank, shape: Sequence[int], largest: int) -> Iterator[Rank]:
    """Ranks one up or down in one mode, or in two together, that some tensor has."""
    modes = range(len(rank))
    for chosen, sign in product([*combinations(modes, 1), *combinations(modes, 2)], (-1, 1)):
        new = tuple(r + sign * (k in chosen) for k, r in enumerate(rank))
        inside = all(1 <= r <= min(p, largest) for r, p in zip(new, shape, strict=True))
        if inside and feasible_rank(new) == new:
            yield new


def _pilot_fit(problem: Problem, rank: Rank, rng: np.random.Generator) -> tuple[Problem, Tucker]:
    """A cheap robust fit: shrunk covariates and Huber's scores, a few steps."""
    theta = start(problem.design.init, problem, rank, rng)
    pilot = problem.pilot(theta)
    omega = np.inf if pilot.direct else float(np.median(pilot.norms())) or np.inf
    nu = HUBER * _scale(pilot.scores()) if problem.loss.residual else np.inf
    problem = replace(problem, robust=Adaptive(omega, nu, np.inf).calibrate())
    solver = choose(problem, theta).set_params(n_iter=5, tol=1e-3)
    return problem, solver.run(problem, theta).theta


def _bic(problem: Problem, largest: Rank, rng: np.random.Generator) -> Callable[[Rank], float]:
    """Robust BIC. Scale and efficiency are those of the largest fit, for every rank."""
    shape, seen = tensor_shape(problem), _seen(problem)
    N = int(np.count_nonzero(seen))
    scale, efficiency = 1.0, 1.0
    if problem.loss.residual:
        residuals = _residuals(problem, largest, rng)
        # What the fit has taken out of the residuals is given back to their scale.
        scale = _scale(residuals) * math.sqrt(N / max(N - degrees_of_freedom(shape, largest), 1))
        bent = np.clip(residuals / scale, -HUBER, HUBER)
        inside = np.mean(np.abs(residuals) <= HUBER * scale)
        efficiency = float(np.mean(bent**2) / max(inside, 1e-3)) or 1.0  # nothing left to explain

    def cost(rank: Rank) -> float:
        penalty = degrees_of_freedom(shape, rank) * math.log(N)
        if not problem.loss.residual:
            fitted, theta = _pilot_fit(problem, rank, rng)
            return 2 * float(np.sum(fitted.values(theta)[seen])) + penalty
        loss = huber_loss(_residuals(problem, rank, rng) / scale)
        return 2 * float(np.sum(loss)) / efficiency + penalty

    return cost


def _residuals(problem: Problem, rank: Rank, rng: np.random.Generator) -> np.ndarray:
    fitted, theta = _pilot_fit(problem, rank, rng)
    return fitted.scores(theta)[_seen(problem)]


def _seen(problem: Problem) -> np.ndarray:
    """Which response entries count: observed, in samples of positive weight."""
    data = problem.data
    if problem.missing:
        seen = to_numpy(data.map_rows(lambda chunk: namespace(chunk.y).isfinite(chunk.y)))
    else:
        seen = np.ones(data.y.shape, bool)
    if data.weight is None:
        return seen
    return seen & column(to_numpy(data.weight) > 0, seen.ndim)


def _cross_validated(
    problem: Problem, largest: Rank, rng: np.random.Generator
) -> Callable[[Rank], float]:
    """Five-fold robust prediction error; the folds are drawn once, for every rank."""
    folds = list(_folds(problem, rng))

    def cost(rank: Rank) -> float:
        fits = [_pilot_fit(train, rank, rng) for train, _ in folds]
        problems, points = zip(*fits, strict=True)
        return float(np.mean(_validate(problems, points, [test for _, test in folds])))

    return cost


def _folds(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[Problem, np.ndarray]]:
    """Yield the problem with the samples of one fold weighted zero, and their indices."""
    from sklearn.model_selection import KFold  # here: it takes half a second to import

    n = problem.data.n
    base = np.ones(n) if problem.data.weight is None else to_numpy(problem.data.weight)
    rows = np.flatnonzero(base)  # a sample without weight has no say in its own fold either
    if len(rows) < 2:
        raise ValueError(f"cross-validation ('cv') needs two samples or more; got {len(rows)}")
    splits = KFold(min(5, len(rows)), shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in splits.split(rows):
        weight = np.zeros(n)
        weight[rows[train]] = base[rows[train]]
        yield replace(problem, data=problem.data.reweight(problem.data.like(weight))), rows[test]


def _validate(
    problems: Sequence[Problem], points: Sequence[Tucker], tests: Sequence[np.ndarray]
) -> list[float]:
    """Robust prediction errors, in one pass: mean absolute residual, or trimmed deviance.

    The mean square and the plain deviance pick no robustness at all exactly where it is needed.
    """
    loss = problems[0].loss
    entries = (scores if loss.residual else values)(problems, points)
    return [prediction_error(loss, e[rows]) for e, rows in zip(entries, tests, strict=True)]


def prediction_error(loss: Loss, entries: np.ndarray) -> float:
    """Mean absolute residual, or deviance without its largest tenth.

    Parameters
    ----------
    loss : Loss
    entries : array (n, ...)
        Residuals of the held-out samples, or for losses of no residual their losses.
    """
    if loss.residual:
        return float(np.nanmean(np.abs(entries)))
    losses = np.sort(entries.reshape(len(entries), -1).sum(axis=1))
    return float(np.mean(losses[: math.ceil(0.9 * len(losses))]))


@dataclass(frozen=True)
class ThresholdPath:
    """Cross-validation of a threshold: the candidates, their mean error and its standard error."""

    tau: float
    taus: np.ndarray
    error: np.ndarray
    stderr: np.ndarray


def select_threshold(
    problem: Problem, theta: Tucker, solver: Solver, *, rng: np.random.Generator
) -> ThresholdPath:
    """Choose one threshold for all blocks by five-fold cross-validation.

    The candidates are quantiles of the pilot's gradient entries, and infinity: see
    :func:`cross_validate`.

    Parameters
    ----------
    problem : Problem
        Its robustifier has a parameter `tau`.
    theta : Tucker
        Start of every fold.
    solver : Solver
    rng : Generator
        Draws the folds.
    """
    sizes = np.abs(np.concatenate([g.ravel() for g in problem.pilot(theta).gradients()]))
    taus = np.unique(np.quantile(sizes, QUANTILES))
    taus = np.concatenate([taus[taus > 0], [np.inf]])
    candidates = [clone(problem.robust).set_params(tau=float(tau)) for tau in taus]
    errors = cross_validate(problem, theta, solver, candidates, rng=rng)
    mean, stderr = errors.mean(axis=0), errors.std(axis=0, ddof=1) / math.sqrt(len(errors))
    return ThresholdPath(float(taus[np.argmin(mean)]), taus, mean, stderr)


def cross_validate(
    problem: Problem,
    theta: Tucker,
    solver: Solver,
    candidates: Sequence[Robustifier],
    *,
    rng: np.random.Generator,
) -> np.ndarray:
    """Robust prediction errors (folds, candidates) of robust gradients, tightest first.

    The folds go through the candidates in order, each fit starting where the last one ended, and
    through the data together: a step of all of them is one pass.
    """
    solver = clone(solver).set_params(
        tol=max(solver.tol, ROUGH), n_iter=min(solver.n_iter, FOLD_STEPS)
    )
    folds, tests = zip(*_folds(problem, rng), strict=True)
    points: Sequence[Tucker] = [theta] * len(folds)
    fitted, ends = [], []
    for robust in candidates:
        trial = replace(problem, robust=robust).calibrate(theta)
        trials = [replace(trial, data=fold.data) for fold in folds]
        points = [result.theta for result in run_together(solver, trials, points)]
        fitted += trials
        ends += points
    errors = _validate(fitted, ends, tests * len(candidates))
    return np.reshape(errors, (len(candidates), len(folds))).T


def huber_loss(x: np.ndarray) -> np.ndarray:
    """``½ ℓ_ν(x)`` at ν = 1.345."""
    bent = np.clip(x, -HUBER, HUBER)
    return bent * (x - bent / 2)


def _scale(x: np.ndarray) -> float:
    return MAD * float(np.nanmedian(np.abs(x))) or 1.0
