"""The only loop, and the steps it can take."""

from .anderson import Anderson
from .descent import GradientDescent, ScaledDescent
from .loop import Solver
from .newton import Newton
from .result import Iteration, Result

__all__ = [
    "Anderson",
    "GradientDescent",
    "Iteration",
    "Newton",
    "Result",
    "ScaledDescent",
    "Solver",
]
