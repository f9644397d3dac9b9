"""Runs experiments: in parallel, resumable, with the same numbers on any number of jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed

from .base import Experiment, Settings
from .methods import fit_group
from .store import Results, Table

# A task is some replications of a group of cells: long enough to be worth sending, short enough
# that little is lost when a run is killed.
TASK_SAMPLES = 4000


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    experiment : str
    label : str
        Reading and tuning.
    done, total : int
        Replications of groups of cells.
    seconds_left : float
        Estimated from the tasks timed so far.

    Examples
    --------
    >>> Progress("exp02", "unit-paper", done=12, total=24, seconds_left=60.0).total
    24
    """

    experiment: str
    label: str
    done: int
    total: int
    seconds_left: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Task:
    """Replications of a group to do, in one piece."""

    group: str
    replications: tuple[int, ...]


def run(
    experiment: Experiment,
    settings: Settings,
    folder: str | Path,
    *,
    jobs: int = 1,
    callback: Callback | None = None,
) -> Results:
    """Do what is missing of an experiment and return all its results.

    Parameters
    ----------
    experiment : Experiment
    settings : Settings
    folder : path
        Where the results file is, or will be.
    jobs : int
        Processes; within ``joblib.parallel_config``, workers of any backend.
    callback : callable, optional
        Called with a :class:`Progress` as work gets done: first when one task of each size is done,
        which makes the first estimate of the time.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> from tauten.experiments import Cell
    >>> cell = Cell("IV", n=4, panel="Model IV", series="normal", x=4, tau=5.0)
    >>> small = Experiment("small", "A small one", "none", (cell,), claims=(), measure="error")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(small, Settings(replications=1), folder)
    >>> any(results.missing().values())
    False
    """
    results = results_file(experiment, settings, folder).read()
    if not any(results.missing().values()):
        return results
    with results.journal.writing() as append:
        results.read()  # now that no other process writes
        tasks = _tasks(experiment, settings, results)
        clock = Clock(experiment, settings, tasks, jobs)
        first, rest = _pilot(experiment, settings, tasks)
        for batch in (first, rest):
            work = (delayed(_timed)(experiment, settings, task) for task in batch)
            parallel = Parallel(
                n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
            )
            for task, found, seconds in parallel(work):
                results.save(append, list(task.replications), found)
                clock.note(task, seconds)
                if callback is not None and (batch is rest or clock.ready):
                    callback(clock.progress())
    return results


def results_file(experiment: Experiment, settings: Settings, folder: str | Path) -> Results:
    """Return the results of an experiment under some settings, not yet read."""
    part = "-quick" if settings.quick else ""
    path = Path(folder) / f"{experiment.name}-{settings.label}{part}.jsonl"
    return Results(path, experiment, settings)


def _timed(experiment: Experiment, settings: Settings, task: Task) -> tuple[Task, Table, float]:
    begin = time.perf_counter()
    cells = experiment.groups(settings)[task.group]
    found = fit_group(experiment, cells, settings, list(task.replications))
    return task, found, time.perf_counter() - begin


def _tasks(experiment: Experiment, settings: Settings, results: Results) -> list[Task]:
    """Cut what is missing into tasks, the largest samples first: the end is then evenly shared."""
    groups = experiment.groups(settings)
    tasks = []
    for name, replications in results.missing().items():
        n = groups[name][0].n if experiment.start == "truth" else TASK_SAMPLES  # validation is slow
        size = min(max(1, TASK_SAMPLES // n), experiment.batch)
        pieces = [replications[k : k + size] for k in range(0, len(replications), size)]
        tasks += [Task(name, tuple(piece)) for piece in pieces]
    return sorted(tasks, key=lambda task: -groups[task.group][0].n)


def _pilot(
    experiment: Experiment, settings: Settings, tasks: list[Task]
) -> tuple[list[Task], list[Task]]:
    """Split off one task of each model and size: they are timed before the estimate is given."""
    kinds: dict[tuple[str, int], Task] = {}
    groups = experiment.groups(settings)
    for task in tasks:
        kinds.setdefault(_kind(groups[task.group][0].model, groups[task.group][0].n), task)
    first = list(kinds.values())
    return first, [task for task in tasks if task not in first]


def _kind(model: str, n: int) -> tuple[str, int]:
    return model, n


class Clock:
    """Estimates the time left from the tasks timed so far, apart for each model and size."""

    def __init__(
        self, experiment: Experiment, settings: Settings, tasks: list[Task], jobs: int
    ) -> None:
        self._experiment, self._settings = experiment, settings
        self._groups = experiment.groups(settings)
        self._left: dict[tuple[str, int], int] = {}
        self._seen: dict[tuple[str, int], list[float]] = {}
        for task in tasks:
            kind = self._kind(task)
            self._left[kind] = self._left.get(kind, 0) + len(task.replications)
        self._total = sum(self._left.values())
        self._begin, self._busy, self._jobs = time.perf_counter(), 0.0, max(1, jobs)

    def _kind(self, task: Task) -> tuple[str, int]:
        cell = self._groups[task.group][0]
        return _kind(cell.model, cell.n)

    @property
    def ready(self) -> bool:
        """Whether every kind of task has been timed."""
        return self._seen.keys() == self._left.keys()

    def note(self, task: Task, seconds: float) -> None:
        """Take down that a task is done."""
        kind = self._kind(task)
        self._seen.setdefault(kind, []).append(seconds / len(task.replications))
        self._left[kind] -= len(task.replications)
        self._busy += seconds

    def progress(self) -> Progress:
        """How far we are, and how long the rest takes at the pace of the workers so far."""
        work = math.nan
        if self.ready:
            work = sum(
                left * sum(self._seen[kind]) / len(self._seen[kind])
                for kind, left in self._left.items()
            )
        pace = self._busy / max(time.perf_counter() - self._begin, 1e-9)
        left = sum(self._left.values())
        return Progress(
            self._experiment.name,
            self._settings.label,
            self._total - left,
            self._total,
            work / min(max(pace, 0.1), self._jobs),
        )
