"""The only loop, and the steps it can take.

A robust gradient is not the gradient of any function, so there is no line search: a step is taken,
and the loop stops on the relative change of A.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ._array import Array, matrix_of, namespace, quiet, to_numpy
from ._checks import check_number
from ._log import tell
from .manifold import manifold_curvature
from .problem import Gradient, Problem, gradients, horizontal_system
from .registry import Registered
from .tucker import Tucker, unfold

__all__ = ["GradientDescent", "Iteration", "Newton", "Result", "ScaledDescent", "Solver"]

GROWTH = 1e8  # an iterate that outgrows its start by this much is running away
MATRICES = 1e7  # entries of all the Gauss-Newton matrices that one pass may add up
LONGEST, ALIGNED = 0.1, 0.99  # most that a stretched step changes A; cosine of steps on a line
MOST = 10  # steps that a stretched one may stand for
BISECTIONS = 4  # the trusted share of a Hessian is found to a sixteenth
BUDGET = 19  # Newton steps of an automatic fit, forty passes in all; separable classes need more
SETTLED = 0.02  # share of the standard error of A that a last step may have
TRUSTED = 0.1  # least share of the Gauss-Newton matrix that a Hessian must have in any direction
LARGEST, WORK = 2500, 2e8  # what Newton's matrix may cost: its size, and multiplications a sample


@dataclass(frozen=True)
class Iteration:
    """One iteration, as kept in the history and shown to a callback.

    Attributes
    ----------
    t : int
        Its number, from 1.
    value : float
        Mean loss before the step.
    change : float
        Relative change of A, and of the vector coefficients, in the step.
    truncated : tuple of float
        Share of per-sample gradient entries changed by the robustifier, block by block.
    """

    t: int
    value: float
    change: float
    truncated: tuple[float, ...]


DIVERGED, INTERRUPTED = "diverged", "interrupted"  # how the reason of such an end begins


@dataclass(frozen=True)
class Result:
    """What a solver returns.

    Attributes
    ----------
    theta : Tucker
        The last finite iterate.
    n_iter : int
        Steps taken.
    converged : bool
        Whether the loop ended as it should.
    reason : str
        Why it ended, in words.
    history : list of Iteration
    n_passes : float
        How often the data were read; an estimator counts its start and thresholds as well.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> result = tt.TensorRegressor(rank=1).fit(data.X, data.y).result_
    >>> result.converged, len(result.history) == result.n_iter
    (True, True)
    """

    theta: Tucker
    n_iter: int
    converged: bool
    reason: str
    history: list[Iteration]
    n_passes: float = 0.0

    @property
    def diverged(self) -> bool:
        """Whether the steps grew without bound: theta is then of no use."""
        return self.reason.startswith(DIVERGED)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it: theta is what was found so far."""
        return self.reason.startswith(INTERRUPTED)


@dataclass
class Progress:
    """Where a run is: all that it needs to go on from there.

    Attributes
    ----------
    trail : list of Tucker
        The last points, up to three; empty before the run begins.
    history : list of Iteration
    largest : float
        Norm of A beyond which it is running away.
    moved : float
        Length of the last step.
    reach : float
        Longest step, relative to A, that a Hessian is trusted with: half a step where the next was
        no shorter.
    """

    trail: list[Tucker] = field(default_factory=list)
    history: list[Iteration] = field(default_factory=list)
    largest: float = math.inf
    moved: float = math.inf
    reach: float = LONGEST

    def adapt(self, new: Tucker, old: Tucker) -> None:
        """Trust a Hessian a little further after a shorter step, much less after a longer one."""
        if new.distance(old) < self.moved:
            self.reach = min(1.25 * self.reach, LONGEST)
        else:
            self.reach = self.moved / max(old.norm(), np.finfo(np.float64).tiny) / 2


Callback = Callable[[Iteration, Tucker], Any]


class Solver(Registered):
    """The loop. A subclass says what a step is.

    Parameters
    ----------
    n_iter : int
        Most steps to take.
    tol : float
        Stop when the relative change of A falls below; 0 takes all `n_iter` steps.
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

    def gauge(self, theta: Tucker) -> Tucker:
        """Return the same tensor with the factors this solver wants."""
        return theta

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, reach: float = LONGEST
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
            return Result(theta, len(history), converged, reason, history, passes)

        def settled() -> Result | None:
            if not history or not (change := history[-1].change) < self.tol:
                return None
            return result(True, f"relative change {change:.1e} below tol={self.tol:g}")

        if done := settled():
            return done
        for t in range(len(history) + 1, self.n_iter + 1):
            gradient = yield theta
            with quiet():  # overflow is detected, and reported in words
                new = self.step(problem, theta, gradient, progress.reach)
                factor = stretch(trail) if self.stretches else 1.0
                if factor > 1:
                    new = theta.map(lambda x, n, f=factor: x + f * (n - x), new)
                    trail = []
                runaway = not _finite(new) or not new.norm() < progress.largest
            if runaway:
                return result(
                    False,
                    f"{DIVERGED} at iteration {t}: the steps grow without bound. Try a smaller "
                    f"step, a better start, or a smaller threshold",
                )
            new = self.gauge(new)
            change = relative_change(new, theta)
            if factor == 1:
                progress.adapt(new, theta)
            progress.moved = new.distance(theta)
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
        return result(
            False,
            f"not converged in {self.n_iter} iterations: the last one changed A by {last:.1e}. "
            f"Try a larger n_iter, or a smaller rank",
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
    answers: list[Any] = [None] * len(walks)  # a walk is begun by sending it nothing
    results: dict[int, Result] = {}
    while len(results) < len(walks):
        points: dict[int, Tucker] = {}
        for i in range(len(walks)):
            if i not in results:
                try:
                    points[i] = walks[i].send(answers[i])
                except StopIteration as end:
                    results[i] = end.value
                    tell("stop", partial(_facts, solver, end.value))
        for i, gradient in _gradients(problems, points, solver.curvature):
            answers[i] = gradient
    return [results[i] for i in range(len(walks))]


def _facts(solver: Solver, result: Result) -> dict[str, Any]:
    return {
        "solver": solver.name,
        "n_iter": result.n_iter,
        "converged": result.converged,
        "reason": result.reason,
        "passes": result.n_passes,
    }


def _gradients(
    problems: Sequence[Problem], points: dict[int, Tucker], curvature: bool
) -> Iterator[tuple[int, Gradient]]:
    """Gradients at the points, as many in one pass as their matrices have room for."""
    if not points:
        return
    size = next(iter(points.values())).d_eff
    room = max(1, int(MATRICES // size**2)) if curvature else len(points)
    indices = list(points)
    for low in range(0, len(indices), room):
        batch = indices[low : low + room]
        with quiet():
            found = gradients(
                [problems[i] for i in batch], [points[i] for i in batch], curvature=curvature
            )
        yield from zip(batch, found, strict=True)


class GradientDescent(Solver, name="gd"):
    """Algorithm 1 of the paper, literally: all blocks step from the same iterate.

    ``U_k ← U_k - η G_k - η a U_k (U_kᵀ U_k - b² I)``, ``S ← S - η G_0``.

    Parameters
    ----------
    step_size : float
        η.
    a, b : float
        Weight of the balancing term, and the scale that it pulls the factors to.
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> solver = tt.solver.GradientDescent(step_size=0.05, n_iter=200)
    >>> model = tt.TensorRegressor(rank=1, solver=solver).fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.2
    True
    """

    def __init__(
        self,
        step_size: float = 1e-3,
        a: float = 1.0,
        b: float = 1.0,
        n_iter: int = 300,
        tol: float = 0.0,
    ) -> None:
        super().__init__(n_iter, tol)
        self.step_size = step_size
        self.a = a
        self.b = b

    def check(self) -> None:
        """Raise unless the parameters make sense."""
        super().check()
        check_number("step_size", self.step_size)
        check_number("a", self.a, zero=True)
        check_number("b", self.b)

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, reach: float = LONGEST
    ) -> Tucker:
        """One iteration of Algorithm 1."""
        new = list(theta.map(lambda x, g: x - self.step_size * g, gradient.blocks).blocks)
        for k, pull in enumerate(theta.imbalance(self.b), start=1):
            new[k] = new[k] - self.step_size * self.a * pull
        return theta.with_blocks(new)


class ScaledDescent(Solver, name="scaled"):
    """Gradient descent in the whitened gauge: as fast as the covariates' conditioning allows.

    With orthonormal factors, ``S ← S - h G_0`` and
    ``U_k ← U_k - h (I - U_k U_kᵀ) G_k (S_(k) S_(k)ᵀ)⁻¹``, h the inverse of the largest curvature:
    of the loss at any entry for PCA (with all entries observed this is a Gauss-Newton step), by
    power iterations with covariates. For effective dimensions too large for :class:`Newton`.

    Parameters
    ----------
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, solver="scaled").fit(data.X, data.y)
    >>> model.result_.converged
    True
    """

    def __init__(self, n_iter: int = 300, tol: float = 1e-5) -> None:
        super().__init__(n_iter, tol)

    def gauge(self, theta: Tucker) -> Tucker:
        """Orthonormal factors, all-orthogonal core."""
        return theta.canonical()

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, reach: float = LONGEST
    ) -> Tucker:
        """One whitened step."""
        precondition = whitening(problem, theta)
        direction = precondition(gradient.blocks)
        if problem.data.X is None:
            level = float(namespace(theta.core).max(problem.entry_curvature(theta)))
        else:
            level = largest_eigenvalue(
                lambda d: precondition(problem.curvature_along(theta, d)), direction
            )
        h = 1 / max(level, np.finfo(np.float64).tiny)
        return theta.map(lambda x, d: x - h * d, direction)


def whitening(problem: Problem, theta: Tucker) -> Callable[[Tucker], Tucker]:
    """Return the map of a gradient to the step that would be right for white covariates."""
    xp = namespace(theta.core)
    cores = [unfold(theta.core, k) for k in range(theta.order)]
    inverses = [xp.linalg.pinv(s @ s.T, rtol=1e-10) for s in cores]

    def precondition(gradient: Tucker) -> Tucker:
        blocks = [gradient.core]
        for u, g, inverse in zip(theta.factors, gradient.factors, inverses, strict=True):
            blocks.append((g - u @ (u.T @ g)) @ inverse)
        if problem.data.Z is not None:
            blocks.append(matrix_solve(problem.data.gram(), gradient.blocks[-1]))
        return gradient.with_blocks(blocks)

    return precondition


def matrix_solve(matrix: Array, tensor: Array) -> Array:
    """Pseudo-inverse of a matrix times the first mode of a tensor."""
    xp = namespace(tensor)
    return xp.reshape(xp.linalg.pinv(matrix) @ matrix_of(tensor, 1), tensor.shape)


def largest_eigenvalue(apply: Callable[[Tucker], Tucker], start: Tucker, n_iter: int = 6) -> float:
    """Largest eigenvalue of a linear map on points, by power iterations."""
    vector, level = start, 0.0
    for _ in range(n_iter):
        size = _length(vector)
        if not size > 0:
            return level
        vector = apply(vector.map(lambda x, s=size: x / s))
        level = _length(vector)
    return level


def _length(point: Tucker) -> float:
    xp = namespace(point.core)
    return math.sqrt(sum(float(xp.sum(block**2)) for block in point.blocks))


class Newton(Solver, name="newton"):
    """Gauss-Newton (iteratively reweighted least squares) steps: a handful of iterations.

    Solves ``P M P d = -P g`` with g the robust gradient, M its Gauss-Newton matrix and P the
    projection on steps that move A: those with ``U_kᵀ dU_k = 0``, the others only rotate factors.
    For effective dimensions up to a few thousand, as M is factored.

    Parameters
    ----------
    n_iter, tol : see :class:`Solver`

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1, solver=tt.solver.Newton(tol=1e-8)).fit(data.X, data.y)
    >>> model.result_.converged
    True
    """

    def gauge(self, theta: Tucker) -> Tucker:
        """Orthonormal factors, all-orthogonal core."""
        return theta.canonical()

    curvature = True
    stretches = True

    def step(
        self, problem: Problem, theta: Tucker, gradient: Gradient, reach: float = LONGEST
    ) -> Tucker:
        """One Newton step where it can be trusted, else one of Gauss-Newton.

        No longer than A or the core's own part of it.
        """
        xp = namespace(theta.core)
        # Where classes are about separable, the Hessian tells nothing of how large A gets.
        direction = _direction(theta, gradient, reach if problem.loss.residual else 0.0)
        length = _tangent_norm(theta, direction)
        longest = max(theta.norm(), float(xp.linalg.vector_norm(direction.core)))
        shrink = longest / max(longest, length, 1e-300)
        new = theta.map(lambda x, d: x + shrink * d, direction)
        # Where data say little of a row of a factor, a step of that length multiplies A.
        while longest < new.distance(theta) < math.inf:
            new = theta.map(lambda x, n: (x + n) / 2, new)
        return new


def _direction(theta: Tucker, gradient: Gradient, reach: float) -> Tucker:
    """Newton's step with as much of the Hessian's rest as can be trusted.

    The rest is what the Gauss-Newton matrix lacks: slopes of bent scores below their weights, and
    the curvature of the set of low-rank tensors. A share of it is trusted if it leaves a tenth of
    the Gauss-Newton matrix in every direction, and a step within `reach` of A; the largest such is
    found by bisection.
    """
    xp = namespace(theta.core)
    flat = xp.concat([xp.reshape(g, (-1,)) for g in gradient.blocks.blocks])
    right = -theta.horizontal(flat[:, None])

    def solved(system: Array) -> Tucker:
        return theta.with_blocks(theta.split(xp.linalg.solve(system, right)[:, 0]))

    safe = horizontal_system(theta, gradient.curvature)
    if not reach > 0:
        return solved(safe)
    rest = gradient.correction + manifold_curvature(theta, gradient.tensor)

    def trusted(share: float) -> Tucker | None:
        system = horizontal_system(theta, gradient.curvature + share * rest)
        if not _positive(system - TRUSTED * safe):
            return None
        direction = solved(system)
        return direction if _tangent_norm(theta, direction) <= reach * theta.norm() else None

    if (whole := trusted(1.0)) is not None:
        return whole
    best, low, high = solved(safe), 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (found := trusted(middle)) is None:
            high = middle
        else:
            best, low = found, middle
    return best


def _positive(matrix: Array) -> bool:
    """Whether the symmetric part of a matrix is positive definite."""
    entries = to_numpy(matrix)
    try:
        np.linalg.cholesky(entries + entries.T)
    except np.linalg.LinAlgError:
        return False
    return True


def stretch(trail: list[Tucker]) -> float:
    """How many of the next step to take at once: one, unless the last two were on one line.

    Steps that shrink by a ratio q from one to the next end ``1 / (1 - q)`` of them ahead (Aitken).
    They do where the Gauss-Newton matrix is far above the curvature along one direction: the size
    of A of separable classes, two components of a low-rank tensor that are almost one. Far from the
    end of the way its last part tells nothing: a stretched step is at most a tenth of A.
    """
    if len(trail) < 3:
        return 1.0
    first, second = trail[1].distance(trail[0]), trail[2].distance(trail[1])
    if not 0 < second < first:
        return 1.0
    both = trail[2].distance(trail[0])
    cosine = (both**2 - first**2 - second**2) / (2 * first * second)
    far = LONGEST * trail[2].norm() / second
    return min(1 / (1 - second / first), far, MOST) if cosine > ALIGNED else 1.0


def choose(problem: Problem, theta: Tucker) -> Solver:
    """Return Newton while its matrix is quickly formed and factored, else whitened descent."""
    responses = math.prod(problem.data.y.shape[1:])
    if problem.data.X is None or theta.d_eff > LARGEST or responses * theta.d_eff**2 > WORK:
        return ScaledDescent()
    return Newton(n_iter=BUDGET) if problem.loss.residual else Newton()


def settled(problem: Problem, result: Result) -> Result:
    """The result, converged if its last step was far below the standard error of A.

    Very bent scores leave valleys along which steps only creep: what is left to go there is lost in
    the noise.
    """
    if result.converged or result.interrupted or result.diverged or not result.history:
        return result
    if problem.data.X is None or result.theta.d_eff > LARGEST:  # no error, or one too dear
        return result
    pilot = problem.pilot(result.theta).canonical()
    error = math.sqrt(max(pilot.risk(problem.robust), 0.0))
    moved = result.history[-1].change * result.theta.norm()
    if not moved <= SETTLED * error < math.inf:
        return result
    share = moved / error
    reason = f"the last step was {share:.1%} of the standard error of A: more say nothing"
    return replace(result, converged=True, reason=reason)


def relative_change(new: Tucker, old: Tucker) -> float:
    """Relative change of A, or of the other coefficients if that is larger."""
    xp = namespace(new.core)
    size = max(new.norm(), np.finfo(np.float64).tiny)
    change = new.distance(old) / size
    for mine, theirs in zip(new.blocks[1 + new.order :], old.blocks[1 + old.order :], strict=True):
        moved = float(xp.linalg.vector_norm(mine - theirs))
        change = max(change, moved / (size + float(xp.linalg.vector_norm(mine))))
    return change


def _finite(theta: Tucker) -> bool:
    xp = namespace(theta.core)
    return all(bool(xp.all(xp.isfinite(block))) for block in theta.blocks)


def _tangent_norm(theta: Tucker, direction: Tucker) -> float:
    """Norm of the change of A that a horizontal direction makes, to first order."""
    xp = namespace(theta.core)
    squares = float(xp.sum(direction.core**2))
    for k, d in enumerate(direction.factors):
        squares += float(xp.sum((d @ unfold(theta.core, k)) ** 2))
    return math.sqrt(squares)
