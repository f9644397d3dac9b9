"""The only loop, and the steps it can take."""

from .descent import GradientDescent, ScaledDescent
from .loop import Solver
from .newton import Newton
from .result import Iteration, Result

__all__ = ["GradientDescent", "Iteration", "Newton", "Result", "ScaledDescent", "Solver"]
