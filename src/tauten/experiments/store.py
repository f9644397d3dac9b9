"""One file of results per experiment, reading and tuning: JSON lines, appended, safe to kill.

The first line is a header that says which settings the file belongs to; every other line holds a
few replications of a group of cells. A line counts once it ends: what a killed run left half-written
is cut off when the next one resumes, and done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .._files import write_whole
from .base import Experiment, Settings
from .methods import Outcome, Outcomes

FORMAT = 1
Table = dict[str, dict[int, Outcomes]]  # cell key, replication, method


def header(experiment: Experiment, settings: Settings) -> dict[str, Any]:
    """What a file's results depend on. More replications only add to it, so they are not in it."""
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "reading": settings.reading,
        "tuning": settings.tuning,
        "seed": settings.seed,
        "methods": list(experiment.chosen(settings)),
        "cells": [cell.key for cell in experiment.cells(settings)],
    }


@dataclass
class Results:
    """The results file of an experiment.

    Parameters
    ----------
    path : Path
    experiment : Experiment
    settings : Settings
    """

    path: Path
    experiment: Experiment
    settings: Settings
    table: Table = field(default_factory=dict)
    _complete: int = 0  # bytes of whole lines

    def read(self) -> Results:
        """Read what is there; raise, and touch nothing, if it is not of this run."""
        self.table = {cell.key: {} for cell in self.experiment.cells(self.settings)}
        content = self.path.read_bytes() if self.path.exists() else b""
        self._complete = content.rfind(b"\n") + 1
        lines = content[: self._complete].splitlines()
        if content:
            self._check_header(lines)
        for number, line in enumerate(lines[1:], start=2):
            try:
                self._add(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"line {number} of {self.path} is damaged ({error}): move the file away to start "
                    f"anew, or delete that line to have its replications done again"
                ) from error
        return self

    def _check_header(self, lines: list[bytes]) -> None:
        try:
            found = json.loads(lines[0])
            found["format"]
        except (IndexError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path} is not a results file, or its header is half-written: move it away"
            ) from error
        wanted = header(self.experiment, self.settings)
        differing = sorted(k for k in wanted.keys() | found.keys() if wanted.get(k) != found.get(k))
        if differing:
            told = "; ".join(f"{k}: {_short(found.get(k))}, asked {_short(wanted.get(k))}" for k in differing)
            raise ValueError(
                f"{self.path} holds results of other settings ({told}): choose another folder with "
                f"out, or the same settings"
            )

    def _add(self, line: dict[str, Any]) -> None:
        for key, methods in line["results"].items():
            for method, rows in methods.items():
                for r, (error, settled, diverged) in zip(line["replications"], rows, strict=True):
                    outcome = Outcome(float(error), bool(settled), bool(diverged))
                    self.table[key].setdefault(r, {}).setdefault(method, outcome)

    def missing(self) -> dict[str, list[int]]:
        """Replications still to do, by group."""
        wanted = range(self.experiment.replications(self.settings))
        groups = self.experiment.groups(self.settings)
        return {
            name: [r for r in wanted if any(r not in self.table[c.key] for c in cells)]
            for name, cells in groups.items()
        }

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the file for this process alone, cut off a half-written end, and append to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix(".lock"), "wb") as lock:
            _lock(lock, self.path)
            self.read()  # another process may have been here since
            if not self._complete:
                line = json.dumps(header(self.experiment, self.settings), ensure_ascii=False)
                write_whole(self.path, f"{line}\n".encode())
                self._complete = self.path.stat().st_size
            with open(self.path, "r+b") as file:
                file.truncate(self._complete)
                file.seek(0, os.SEEK_END)
                yield Writer(self, file)


@dataclass(frozen=True)
class Writer:
    """Appends finished work."""

    results: Results
    file: BinaryIO

    def append(self, replications: list[int], found: Table) -> None:
        """Write one line, and have it on the disk before going on."""
        results = {
            key: {
                method: [_row(by_replication[r][method]) for r in replications]
                for method in by_replication[replications[0]]
            }
            for key, by_replication in found.items()
        }
        line = {"replications": replications, "results": results}
        self.file.write(f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n".encode())
        self.file.flush()
        os.fsync(self.file.fileno())
        for key, by_replication in found.items():
            self.results.table[key].update(by_replication)


def _row(outcome: Outcome) -> list[float]:
    return [outcome.error, int(outcome.settled), int(outcome.diverged)]


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"{len(value)} of them, from {value[0]!r} to {value[-1]!r}"
    return repr(value)


def _lock(lock: BinaryIO, path: Path) -> None:
    """Take a lock that the system gives back when the process ends, however it ends."""
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RuntimeError(
            f"another process is writing {path}: wait for it, or choose another folder with out"
        ) from error
