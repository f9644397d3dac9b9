"""One fit of one method to one data set: what goes in, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import Rows
from ..datasets import Simulated
from ..designs import Covariate, Direct
from ..losses import Loss
from ..problem import Problem
from .base import Cell


@dataclass(frozen=True)
class Outcome:
    """One fit: ``‖Â - A*‖²``, whether it settled, and whether it ran away before."""

    error: float
    settled: bool
    diverged: bool = False


Outcomes = dict[str, Outcome]  # by method


@dataclass(frozen=True)
class Trial:
    """A data set of a cell, to be fitted by some of the paper's methods.

    Parameters
    ----------
    cell : Cell
    data : Simulated
    methods : tuple of str
    from_truth : bool
        Whether descent starts at A*.
    rng : Generator
        For starts and folds.
    """

    cell: Cell
    data: Simulated
    methods: tuple[str, ...]
    from_truth: bool
    rng: np.random.Generator

    @property
    def b(self) -> float:
        """The norm of the factors of A* in its reading: 1, or √10."""
        return float(np.linalg.norm(self.data.truth.factors[0]))

    @property
    def loss(self) -> Loss:
        """The loss of the model."""
        return Loss.get("logistic" if self.cell.model == "III" else "squared")

    def problem(self) -> Problem:
        """The estimation problem, without an intercept as in the paper."""
        design = Direct() if self.cell.model == "IV" else Covariate()
        return Problem(Rows(self.data.X, self.data.y), self.loss, design)
