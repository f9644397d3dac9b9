"""Which steps to take when none are asked for, and when they are enough."""

from __future__ import annotations

import math
from dataclasses import replace

from ..problem import Problem
from ..registry import is_word
from ..tucker import Tucker
from .anderson import Anderson
from .loop import Solver
from .newton import Newton
from .result import Result

BUDGET = 22  # Newton steps of an automatic fit, forty passes in all; separable classes need more
SETTLED = 0.02  # share of the standard error of A that a last step may have
# Shares of it that may be left to go at the end, within limits relative to A: of a fit, and of one
# that only thresholds are chosen from.
FIT, PILOT = (0.002, 1e-5, 1e-4), (0.1, 1e-3, 5e-3)
# What Newton's matrix may cost: its size (beyond, gradients are as quick, and light on a network),
# and multiplications a sample. Once, for the standard error of A, it may be larger.
LARGEST, WORK, ONCE = 900, 2e8, 2500


def solver_for(solver: str | Solver, problem: Problem, theta: Tucker) -> Solver:
    """Return the solver asked for; for ``"auto"``, the one that suits the problem."""
    return choose(problem, theta) if is_word(solver, "auto") else Solver.get(solver)


def choose(problem: Problem, theta: Tucker) -> Solver:
    """Return Newton while its matrix is quickly formed and factored, else accelerated descent.

    It ends where what is left to go is nothing beside the standard error of A, as far as thresholds
    were chosen by that.
    """
    tol = tolerance(problem, theta, *FIT)
    y = problem.data.y
    columns = math.prod(y.shape[1:-1]) * theta.rank[-1] if y.ndim > 1 else 1  # of problem.normal
    if problem.data.X is None or theta.d_eff > LARGEST or columns * theta.d_eff**2 > WORK:
        return Anderson(tol=tol)
    return Newton(BUDGET, tol) if problem.loss.residual else Newton(tol=tol)


def tolerance(problem: Problem, theta: Tucker, share: float, least: float, most: float) -> float:
    """A share of the standard error of A, relative to A; the least where that is not known."""
    wanted = share * problem.error / max(theta.norm(), math.ulp(0))
    return min(max(wanted, least), most) if wanted >= 0 else least


def worth_keeping(problem: Problem) -> bool:
    """Whether the tensor of a Newton step is to serve the next ones: see :meth:`Newton.needs`.

    They are less exact, and now and then one more; that pays where the tensor is dear. In memory it
    is a second read of X, if scores are not expected; from a file or a cluster it comes with the
    first.
    """
    return problem.data.X is not None and problem.data.all is not None and problem.data.dear


def settled(problem: Problem, result: Result) -> Result:
    """The result, converged if its last step was far below the standard error of A.

    Very bent scores leave valleys along which steps only creep: what is left to go there is lost in
    the noise.
    """
    if result.converged or result.interrupted or result.diverged or not result.history:
        return result
    if problem.data.X is None or result.theta.d_eff > ONCE:  # no error, or one too dear
        return result
    pilot = problem.pilot(result.theta).canonical()
    error = math.sqrt(max(pilot.risks([problem.robust])[0], 0.0))
    moved = result.history[-1].change * result.theta.norm()
    if not moved <= SETTLED * error < math.inf:
        return result
    share = moved / error
    reason = f"the last step was {share:.1%} of the standard error of A"
    return replace(result, converged=True, reason=reason)
