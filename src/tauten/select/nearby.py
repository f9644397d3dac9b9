"""Cross-validation near one fit: folds and candidates move within its tangent space."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import numpy as np

from .._array import Array, namespace, quiet
from .._progress import Count, ignore
from .._walks import side_by_side
from ..problem import Gradient, Problem, squared_moves, tangent_system
from ..problem.nearby import gradients_near, scores_near
from ..solver.loop import MATRICES, batches
from ..tucker import Tucker
from .folds import Error, folds, prediction_error

ENOUGH = 5  # responses to a degree of freedom of A
TOL, STEPS = 0.03, 10  # of the first step: a prediction error needs no better fit
SHRUNK = 0.9  # times the last step: a shorter one is on its way


def errors_near(
    trials: Sequence[Problem],
    theta: Tucker,
    *,
    rng: np.random.Generator,
    report: Count = ignore,
    error: Error = prediction_error,
) -> np.ndarray:
    """Prediction errors (folds, trials) of problems on the same samples, all near one fit.

    Each fit is a step from `theta`, a fit of all samples, along which predictors are taken as
    linear: what that neglects is of second order in what a fold moves a fit by. Where samples are
    few for the parameters that is far, the directions of `theta` know too much of the samples left
    out, and errors come out too small: see :data:`ENOUGH`. A step of all fits is one pass and one
    sweep, where fits at points of their own would have one each.

    Parameters
    ----------
    trials : sequence of Problem
        With a loss of the residual: see :func:`tauten.problem.nearby.linear`.
    theta : Tucker
        In canonical form.
    rng : Generator
        Draws the folds.
    report : callable
        Told how many trials are done, and of how many.
    error : callable
        See :func:`prediction_error`.
    """
    parts, tests = zip(*folds(trials[0], rng), strict=True)
    problems = [trial.on_samples_of(part) for trial in trials for part in parts]

    def tell(going: Iterable[int]) -> None:
        report(len(trials) - len({i // len(parts) for i in going}), len(trials))

    with trials[0].data.at_work(), quiet():
        inverses = [inverse for inverse in _inverses(trials, theta) for _ in parts]
        residuals = scores_near(problems, theta, _steps(problems, theta, inverses, tell))
    tell([])
    loss, every = trials[0].loss, tests * len(trials)
    found = [error(loss, entries[rows]) for entries, rows in zip(residuals, every, strict=True)]
    return np.reshape(found, (len(trials), len(parts))).T


def fit_near(problem: Problem, theta: Tucker) -> Tucker:
    """The fit of all samples of a problem near that of another one, in the same way."""
    with problem.data.at_work(), quiet():
        (step,) = _steps([problem], theta, _inverses([problem], theta))
    moves = theta.with_blocks(theta.split(step))
    return theta.map(lambda x, d: x + d, moves)


def _inverses(problems: Sequence[Problem], theta: Tucker) -> list[Array]:
    """Inverses ``B (Bᵀ M B)⁻¹ Bᵀ`` of the matrices that steps are taken with.

    These are halfway between those of iteratively reweighted least squares, with which steps creep
    where much is cut, so that fits keep what `theta` knows of the samples left out, and the slopes
    of the cut gradients themselves, with which they may swing.
    """

    def inverse(curvature: Array, correction: Array) -> Array:
        system = tangent_system(theta, curvature + correction / 2)
        outward = theta.tangent.outward
        return outward(outward(namespace(system).linalg.inv(system)).T).T

    found, here = [], 0 * theta.flat()
    for batch in batches(dict.fromkeys(range(len(problems)), 2 * here.shape[0] ** 2), MATRICES):
        some = [problems[i] for i in batch]
        at = gradients_near(some, theta, [here] * len(some), curvature=True)
        found += [inverse(one.curvature, one.correction) for one in at]
    return found


def _steps(
    problems: Sequence[Problem],
    theta: Tucker,
    inverses: Sequence[Array],
    tell: Callable[[Iterable[int]], None] = lambda going: None,
) -> list[Array]:
    """Steps from the point to the fit of each problem, all of them side by side.

    `tell` is told, by their numbers, which still go on.
    """
    begin = 0 * theta.flat()

    def answer(asked: dict[int, Array]) -> Iterator[tuple[int, Gradient]]:
        tell(asked)
        found = gradients_near([problems[i] for i in asked], theta, list(asked.values()))
        return zip(asked, found, strict=True)

    squares = squared_moves(theta, theta.shape)
    return side_by_side([_walk(inverse, squares, begin) for inverse in inverses], answer)


def _walk(inverse: Array, squares: Array, step: Array) -> Generator[Array, Gradient, Array]:
    """Yields steps whose gradient it needs; returns the last. Their lengths are by `squares`.

    They go on by half as much from where what is left to go has not shrunk.
    """
    lengths, share = [math.inf], 1.0
    for _ in range(STEPS):
        gradient = yield step
        move = -(inverse @ gradient.blocks.flat())
        length = math.sqrt(float(squares @ move[: squares.shape[0]] ** 2))
        share = share if length < SHRUNK * lengths[-1] else share / 2
        step, lengths = step + share * move, [*lengths, length]
        if share * length <= TOL * lengths[1]:
            break
    return step
