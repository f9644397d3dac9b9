"""The only loop.

A robust gradient is not the gradient of any function, so there is no line search: a step is taken,
and the loop stops on the relative change of A, or what that tells of the steps to come.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._array import namespace, quiet
from .._checks import check_number
from .._log import tell
from .._walks import side_by_side
from ..problem import Asked, Gradient, Problem, gradients
from ..registry import Registered
from ..tucker import Tucker
from .result import DIVERGED, LONGEST, Callback, Iteration, Progress, Result

GROWTH = 1e8  # an iterate that outgrows its start by this much is running away
MATRICES = 1e7  # entries of all the Gauss-Newton matrices that one pass may add up
ALIGNED = 0.99  # cosine of steps on a line
MOST = 10  # steps that a stretched one may stand for


class Solver(Registered):
    """The loop. A subclass says what a step is.

    Parameters
    ----------
    n_iter : int
        Most steps to take.
    tol : float
        Stop when what is left to go, relative to A, falls below: see :meth:`remaining`; 0 takes all
        `n_iter` steps.
    """

    curvature: ClassVar[bool] = False  # whether a step needs the Gauss-Newton matrix
    stretches: ClassVar[bool] = False  # whether to go the rest of the way at once: see `stretch`

    def __init__(self, n_iter: int = 50, tol: float = 1e-5) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def check(self) -> None:
        """Raise unless the parameters make sense."""
        check_number("n_iter", self.n_iter, integer=True)
        check_number("tol", self.tol, zero=True)

    def rougher(self, tol: float, n_iter: int) -> Self:
        """The same solver, ending no later than by these."""
        return clone(self).set_params(tol=max(self.tol, tol), n_iter=min(self.n_iter, n_iter))

    def needs(self, progress: Progress) -> Asked:
        """What the next step needs beside a gradient: all, if it needs the matrix."""
        return Asked(self.curvature, self.curvature, self.curvature)

    def remaining(self, progress: Progress) -> float:
        """How far the end of the way may be, relative to A: as far as the last step went."""
        return progress.history[-1].change

    def gauge(self, theta: Tucker) -> Tucker:
        """Return the same tensor with the factors this solver wants."""
        return theta

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, progress: Progress
    ) -> Tucker:
        """Return the next point."""
        raise NotImplementedError

    def run(
        self,
        problem: Problem,
        theta: Tucker,
        callback: Callback | None = None,
        progress: Progress | None = None,
    ) -> Result:
        """Iterate from a starting point.

        Parameters
        ----------
        problem : Problem
        theta : Tucker
        callback : callable, optional
            Called after each iteration with an :class:`Iteration` and the new point; the loop
            stops when it returns a true value.
        progress : Progress, optional
            Kept up to date; where it has begun already, the run goes on from there.

        Returns
        -------
        Result
        """
        return run_together(self, [problem], [theta], callback, [progress or Progress()])[0]

    def walk(
        self,
        problem: Problem,
        theta: Tucker,
        callback: Callback | None,
        progress: Progress,
    ) -> Generator[Tucker, Gradient, Result]:
        """The loop itself: yields the points whose gradient it needs, and returns a result."""
        self.check()
        if not progress.trail:
            progress.trail = [self.gauge(theta)]
            progress.largest = GROWTH * max(progress.trail[0].norm(), 1.0)
        trail, history, theta = progress.trail, progress.history, progress.trail[-1]
        before = problem.data.reads.passes

        def result(converged: bool, reason: str) -> Result:
            passes = problem.data.reads.passes - before
            found = Result(theta, len(history), converged, reason, history, passes)
            tell("stop", partial(_facts, self, found))
            return found

        def settled() -> Result | None:
            if not history or not (left := self.remaining(progress)) < self.tol:
                return None
            change = history[-1].change
            if change < self.tol:
                return result(True, f"relative change {change:.1e} below tol={self.tol:g}")
            rest = f"about {left:.1e} is left to go, below tol={self.tol:g}"
            return result(True, f"relative change {change:.1e}, so that {rest}")

        if done := settled():
            return done
        for t in range(len(history) + 1, self.n_iter + 1):
            gradient = yield theta
            with quiet():  # overflow is detected, and reported in words
                new = self.step(problem, theta, gradient, progress)
                factor = stretch(trail, progress.before, progress.moved) if self.stretches else 1.0
                if factor > 1:
                    new = theta.map(lambda x, n, f=factor: x + f * (n - x), new)
                    trail = []
                runaway = not _within(new, progress.largest)
            if runaway:
                return result(
                    False,
                    f"{DIVERGED} at iteration {t}: the steps grow without bound. Try a smaller "
                    f"step, a better start, or a smaller threshold",
                )
            new = self.gauge(new)
            length = new.distance(theta)
            change = relative_change(new, theta, length)
            progress.move(length, theta.norm(), stretched=factor > 1)
            theta = new
            progress.trail = trail = [*trail, theta][-3:]
            history.append(Iteration(t, gradient.value, change, gradient.truncated))
            tell("iteration", lambda: asdict(history[-1]), logging.DEBUG)
            if callback is not None and callback(history[-1], theta):
                return result(False, f"stopped by the callback at iteration {t}")
            if done := settled():
                return done
        if self.tol == 0:
            return result(True, f"took the {self.n_iter} steps asked for")
        last = history[-1].change if history else math.nan
        more = f"solver='{self.name}:n_iter={5 * self.n_iter}'"
        return result(
            False,
            f"not converged in {self.n_iter} iterations: the last one changed A by {last:.1e}. "
            f"Try a larger n_iter, {more}, or a smaller rank",
        )


def run_together(
    solver: Solver,
    problems: Sequence[Problem],
    thetas: Sequence[Tucker],
    callback: Callback | None = None,
    progress: Sequence[Progress] | None = None,
) -> list[Result]:
    """Fits of problems on the same samples that go through the data together.

    An iteration of all of them is one pass. They differ in weights (folds, bootstrap), robustifier
    (thresholds) or start.

    Parameters
    ----------
    solver : Solver
    problems : sequence of Problem
        On the same samples.
    thetas : sequence of Tucker
        Where each starts.
    callback : callable, optional
        Called after each iteration of each fit: see :meth:`Solver.run`.
    progress : sequence of Progress, optional
        One for each fit.
    """
    progress = [Progress() for _ in problems] if progress is None else progress
    fits = zip(problems, thetas, progress, strict=True)
    walks = [solver.walk(problem, theta, callback, p) for problem, theta, p in fits]
    with problems[0].data.at_work():
        return side_by_side(walks, partial(_gradients, solver, problems, progress))


def _facts(solver: Solver, result: Result) -> dict[str, Any]:
    return {
        "solver": solver.name,
        "n_iter": result.n_iter,
        "converged": result.converged,
        "reason": result.reason,
        "passes": result.n_passes,
    }


def _gradients(
    solver: Solver,
    problems: Sequence[Problem],
    progress: Sequence[Progress],
    points: dict[int, Tucker],
) -> Iterator[tuple[int, Gradient]]:
    """Gradients at the points, as many in one pass as their matrices have room for."""
    needs = {i: solver.needs(progress[i]) for i in points}
    sizes = {i: theta.d_eff**2 if needs[i].curvature else 0 for i, theta in points.items()}
    for batch in batches(sizes, MATRICES):
        asked = [needs[i] for i in batch]
        with quiet():
            found = gradients(
                [problems[i] for i in batch], [points[i] for i in batch], curvature=asked
            )
        yield from zip(batch, found, strict=True)


def batches(sizes: dict[int, int], room: float) -> Iterator[list[int]]:
    """The numbers of things of these sizes, in order, cut where they fill the room."""
    batch: list[int] = []
    filled = 0.0
    for i, size in sizes.items():
        filled += size
        if batch and filled > room:
            yield batch
            batch, filled = [], size
        batch.append(i)
    yield batch


def stretch(trail: Sequence[Tucker], first: float, second: float) -> float:
    """How many of the next step to take at once: one, unless the last two were on one line.

    `first` and `second` are the lengths of those two, from one point of the trail to the next.

    Steps that shrink by a ratio q from one to the next end ``1 / (1 - q)`` of them ahead (Aitken).
    They do where the Gauss-Newton matrix is far above the curvature along one direction: the size
    of A of separable classes, two components of a low-rank tensor that are almost one. Far from the
    end of the way its last part tells nothing: a stretched step is at most a tenth of A.
    """
    if len(trail) < 3:
        return 1.0
    if not 0 < second < first:
        return 1.0
    both = trail[2].distance(trail[0])
    cosine = (both**2 - first**2 - second**2) / (2 * first * second)
    far = LONGEST * trail[2].norm() / second
    return min(1 / (1 - second / first), far, MOST) if cosine > ALIGNED else 1.0


def relative_change(new: Tucker, old: Tucker, length: float) -> float:
    """Relative change of A, whose step has a length, or of the other coefficients if larger."""
    xp = namespace(new.core)
    size = max(new.norm(), np.finfo(np.float64).tiny)
    change = length / size
    for mine, theirs in zip(new.blocks[1 + new.order :], old.blocks[1 + old.order :], strict=True):
        moved = float(xp.linalg.vector_norm(mine - theirs))
        change = max(change, moved / (size + float(xp.linalg.vector_norm(mine))))
    return change


def _within(theta: Tucker, largest: float) -> bool:
    """Whether all blocks are finite, and A smaller than that."""
    xp = namespace(theta.core)
    sizes = [float(xp.linalg.vector_norm(block)) for block in theta.blocks]
    if all(map(math.isfinite, sizes)) and math.prod(sizes[: 1 + theta.order]) < largest:
        return True  # A is no larger than the product of its blocks, which needs no QR
    finite = all(bool(xp.all(xp.isfinite(block))) for block in theta.blocks)
    return finite and theta.norm() < largest
