"""What an experiment is: a grid of cells, how data are drawn, methods, what is measured, claims."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..datasets import Simulated, make_model, simulate
from .claims import Claim

SHAPE = (10, 10, 10)  # of A* in every experiment
LARGEST = max(SHAPE)  # p̄
STEP, ITERATIONS, WINDOW = (
    1e-3,
    300,
    50,
)  # η, T, and the last iterations Experiments 1 and 5 look at
PAPER_METHODS = ("VGD", "RGD", "HUB")
OURS = "auto"
READINGS, TUNINGS = ("ones", "unit"), ("paper", "converged")
QUICK_REPLICATIONS = 6
# Where the paper shows one method, ours is a line beside it for orientation: it needs no more
# replications than this, and would take most of the time.
OURS_BESIDE, QUICK_OURS_BESIDE = 50, 2


def theory_threshold(n: int, epsilon: float = 1.0) -> float:
    """``τ = (n / log p̄)^{1 / (1 + min(1, ε))}``.

    Examples
    --------
    >>> round(theory_threshold(100), 2)
    6.59
    """
    return (n / math.log(LARGEST)) ** (1 / (1 + min(1.0, epsilon)))


@dataclass(frozen=True)
class Cell:
    """One point of a figure: a distribution and a sample size.

    Parameters
    ----------
    model : {"I", "II", "III", "IV"}
    n : int
        Sample size.
    panel, series, x
        Where the paper's figure shows it.
    covariates, noise : str
        Distributions, see :func:`tauten.datasets.sample`.
    tau : float, optional
        Truncation threshold; None for five-fold cross-validation.

    Examples
    --------
    >>> Cell("I", n=500, panel="Model I", series="t:1.5", x=500, noise="t:1.5").key
    'Model I; t:1.5; 500'
    """

    model: str
    n: int
    panel: str
    series: Any
    x: Any
    covariates: str = "normal"
    noise: str = "normal"
    tau: float | None = None

    @property
    def key(self) -> str:
        """Name in the results file."""
        return f"{self.panel}; {self.series}; {self.x}"

    @property
    def group(self) -> str:
        """Cells of one group share their covariates, and are fitted together."""
        shared = f"Model {self.model}; {self.covariates}; n={self.n}"
        return f"{shared}; {self.noise}" if self.model == "IV" else shared


@dataclass(frozen=True)
class Settings:
    """How an experiment is run.

    Parameters
    ----------
    reading : {"unit", "ones"}
        Of A*, see :func:`tauten.datasets.truth`.
    tuning : {"paper", "converged"}
        The paper's 300 steps of 1e-3, or the same estimators at convergence.
    methods : tuple of str
        Of the paper's, those to run; ours always runs beside them.
    replications, seed : int
    quick : bool
        A part of the grid and few replications.

    Examples
    --------
    >>> Settings(reading="ones", replications=20).label
    'ones-paper'
    """

    reading: str = "unit"
    tuning: str = "paper"
    methods: tuple[str, ...] = PAPER_METHODS
    replications: int = 200
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        """Check every choice."""
        _one_of("reading", self.reading, READINGS)
        _one_of("tuning", self.tuning, TUNINGS)
        for method in self.methods:
            _one_of("methods", method, (*PAPER_METHODS, OURS))
        for name, least in (("replications", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number from {least}; got {value!r}")

    @property
    def label(self) -> str:
        """Which of the four ways of running the experiments this is."""
        return f"{self.reading}-{self.tuning}"


@dataclass(frozen=True)
class Experiment:
    """The declaration of one experiment.

    Parameters
    ----------
    name, title : str
    figure : str
        The paper's figure that it redraws.
    grid : tuple of Cell
    claims : tuple of Claim
    methods : tuple of str
        The paper's methods that it compares.
    start : {"truth", "data"}
        Where descent starts: at A*, or at the paper's data-driven point.
    measure : {"settled", "-log error", "error", "log error"}
        What the figure shows: the share of runs that settled, or a mean of ``‖Â - A*‖²``.
    xlabel, slabel : str
        What x and series are.
    note : str
        What we had to decide because the paper does not say.
    quick : callable
        Which cells are in a quick run.
    batch : int
        Most replications done, and written, in one piece.

    Examples
    --------
    >>> from tauten.experiments import EXPERIMENTS
    >>> experiment = EXPERIMENTS["exp06"]
    >>> experiment.figure, len(experiment.grid), experiment.grid[0].n
    ('Figure 6', 25, 300)
    """

    name: str
    title: str
    figure: str
    grid: tuple[Cell, ...]
    claims: tuple[Claim, ...]
    measure: str
    methods: tuple[str, ...] = ("RGD",)
    start: str = "truth"
    xlabel: str = "n"
    slabel: str = ""
    note: str = ""
    quick: Callable[[Cell], bool] = field(default=lambda cell: True)
    batch: int = 25

    def cells(self, settings: Settings) -> tuple[Cell, ...]:
        """The cells to run."""
        return tuple(c for c in self.grid if self.quick(c)) if settings.quick else self.grid

    def groups(self, settings: Settings) -> dict[str, list[Cell]]:
        """The cells to run, by group."""
        groups: dict[str, list[Cell]] = {}
        for cell in self.cells(settings):
            groups.setdefault(cell.group, []).append(cell)
        return groups

    def replications(self, settings: Settings) -> int:
        """How many data sets are drawn for each cell."""
        return (
            min(settings.replications, QUICK_REPLICATIONS)
            if settings.quick
            else settings.replications
        )

    def chosen(self, settings: Settings) -> tuple[str, ...]:
        """The methods to run: the paper's asked for, then ours."""
        return (*(m for m in self.methods if m in settings.methods), OURS)

    def fits_ours(self, settings: Settings, replication: int) -> bool:
        """Whether ours is fitted too: always where methods are compared, on data sets in pairs."""
        most = QUICK_OURS_BESIDE if settings.quick else OURS_BESIDE
        return self.start == "data" or replication < most

    def draw(self, cells: list[Cell], settings: Settings, replication: int) -> list[Simulated]:
        """One data set for each cell of a group; they share their covariates.

        The seed depends on experiment, group, cell and replication only: not on the order or the
        number of jobs, nor on reading and tuning, which are thus compared on the same noise.
        """
        first = cells[0]
        data = [
            make_model(
                first.model,
                first.n,
                reading=settings.reading,
                rng=self.rng(settings, replication, first.group),
                **_distributions(first),
            )
        ]
        for cell in cells[1:]:
            rng = self.rng(settings, replication, cell.key)
            data.append(_same_covariates(data[0], cell, rng))
        return data

    def rng(self, settings: Settings, replication: int, key: str) -> np.random.Generator:
        """A generator of its own for each experiment, replication and key."""
        digest = hashlib.sha256(f"{self.name}|{key}".encode()).digest()
        words = np.frombuffer(digest, dtype=np.uint32).tolist()
        return np.random.default_rng(np.random.SeedSequence([settings.seed, replication, *words]))


def _same_covariates(first: Simulated, cell: Cell, rng: np.random.Generator) -> Simulated:
    """A data set with the covariates of another, and noise of its own."""
    X: Any = first.X
    options = {"covariates": X, "noise": cell.noise}
    return simulate(first.truth, cell.n, covariate_order=X.ndim - 1, rng=rng, **options)


def _distributions(cell: Cell) -> dict[str, Any]:
    if cell.model == "III":
        return {"covariates": cell.covariates}
    return {"noise": cell.noise} | ({} if cell.model == "IV" else {"covariates": cell.covariates})


def _one_of(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
