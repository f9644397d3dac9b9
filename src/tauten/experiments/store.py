"""The results of an experiment under some settings, in one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .base import Experiment, Settings
from .claims import Sample
from .journal import Append, Journal, Line
from .outcomes import Outcome, Outcomes

Table = dict[str, dict[int, Outcomes]]  # cell key, replication, method


@dataclass
class Results:
    """Results of an experiment.

    Parameters
    ----------
    path : Path
        Their file.
    experiment : Experiment
    settings : Settings
    table : dict
        Outcomes by cell, replication and method.
    """

    path: Path
    experiment: Experiment
    settings: Settings
    table: Table = field(default_factory=dict)

    @property
    def journal(self) -> Journal:
        """The file. More replications only add to it, so their number is not in its header."""
        return Journal(
            self.path,
            {
                "experiment": self.experiment.name,
                "reading": self.settings.reading,
                "tuning": self.settings.tuning,
                "seed": self.settings.seed,
                "methods": list(self.experiment.chosen(self.settings)),
                "cells": [cell.key for cell in self.experiment.cells(self.settings)],
            },
        )

    def read(self) -> Results:
        """Read what is there; raise, and touch nothing, if it is not of this run."""
        self.table = {cell.key: {} for cell in self.experiment.cells(self.settings)}
        for number, line in enumerate(self.journal.read(), start=2):
            try:
                self._add(line)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"line {number} of {self.path} holds no results of this experiment ({error!r})"
                    f": move the file away to start anew, or delete that line to have its work "
                    f"done again"
                ) from error
        return self

    def _add(self, line: Line) -> None:
        for key, methods in line["results"].items():
            for method, rows in methods.items():
                for r, row in zip(line["replications"], rows, strict=True):
                    outcomes = self.table[key].setdefault(r, {})
                    if row is not None:
                        error, settled, diverged = row
                        outcomes[method] = Outcome(float(error), bool(settled), bool(diverged))

    def missing(self) -> dict[str, list[int]]:
        """Replications still to do, by group."""
        wanted = range(self.experiment.replications(self.settings))
        groups = self.experiment.groups(self.settings)
        return {
            name: [r for r in wanted if any(r not in self.table[c.key] for c in cells)]
            for name, cells in groups.items()
        }

    @property
    def begun(self) -> bool:
        """Whether there is a replication of every cell."""
        return all(self.table.values())

    def save(self, append: Append, replications: list[int], found: Table) -> None:
        """Take in finished work, and write it."""
        methods = self.experiment.chosen(self.settings)
        results = {
            key: {m: [_row(by_replication[r].get(m)) for r in replications] for m in methods}
            for key, by_replication in found.items()
        }
        line = {"replications": replications, "results": results}
        append(line)
        self._add(line)

    def sample(self) -> Sample:
        """The results as claims ask for them."""
        errors, settled = {}, {}
        for cell in self.experiment.cells(self.settings):
            rows = [self.table[cell.key][r] for r in sorted(self.table[cell.key])]
            for method in self.experiment.chosen(self.settings):
                key = (cell.panel, cell.series, cell.x, method)
                fits = [row[method] for row in rows if method in row]
                errors[key] = np.array([fit.error for fit in fits])
                settled[key] = np.array([fit.settled for fit in fits])
        return Sample(errors, settled)


def _row(outcome: Outcome | None) -> list[Any] | None:
    if outcome is None:
        return None
    return [outcome.error, int(outcome.settled), int(outcome.diverged)]
