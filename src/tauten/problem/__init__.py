"""Data × loss × design × robustifier: the only place where the four meet."""

from .gradient import Asked, Gradient
from .pilot import PILOT_SIZE, PilotFit
from .problem import Problem, block_gradients, gradients, scores, tensor_gradients, values
from .samplewise import Kernel
from .seen import Line, Seen, View
from .system import squared_moves, tangent_part, tangent_system

__all__ = [
    "PILOT_SIZE",
    "Asked",
    "Gradient",
    "Kernel",
    "Line",
    "PilotFit",
    "Problem",
    "Seen",
    "View",
    "block_gradients",
    "gradients",
    "scores",
    "squared_moves",
    "tangent_part",
    "tangent_system",
    "tensor_gradients",
    "values",
]
