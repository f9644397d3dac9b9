"""The paper reproduced: ten experiments, the CT study, and a verdict on every claim.

:func:`reproduce` runs them and writes a report. Each experiment is a small declaration
(:class:`Experiment`) in a module of its own; each claim (:class:`Claim`) is a statistical statement
about its results.
"""

from .base import PAPER_METHODS, Cell, Experiment, Settings
from .claims import Claim, Quantity, Sample, Verdict, decide
from .progress import ProgressBar
from .runner import Progress, run
from .study import EXPERIMENTS, NAMES, reproduce

__all__ = [
    "EXPERIMENTS",
    "NAMES",
    "PAPER_METHODS",
    "Cell",
    "Claim",
    "Experiment",
    "Progress",
    "ProgressBar",
    "Quantity",
    "Sample",
    "Settings",
    "Verdict",
    "decide",
    "reproduce",
    "run",
]
