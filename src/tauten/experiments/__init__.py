"""The paper reproduced: ten experiments, the CT study, and a verdict on every claim."""

from __future__ import annotations

from . import exp01, exp02, exp03, exp04, exp05, exp06, exp07, exp08, exp09, exp10
from .base import Cell, Experiment, Settings
from .claims import Claim, Quantity, Sample, Verdict, decide
from .runner import Progress, run

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Claim",
    "Experiment",
    "Progress",
    "Quantity",
    "Sample",
    "Settings",
    "Verdict",
    "decide",
    "run",
]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (exp01, exp02, exp03, exp04, exp05, exp06, exp07, exp08, exp09, exp10)
}
