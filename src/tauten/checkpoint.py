"""Where a fit is, in a file, so that another process can go on from there."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._array import Array, to_numpy
from ._files import check_writable, write_whole
from .data import Samples
from .problem import PILOT_SIZE
from .select import RankPath, RidgePath, ThresholdPath
from .solver import Iteration, Result
from .solver.result import INTERRUPTED, Progress
from .tucker import Affine, Tucker

LIMITS = ("largest", "moved", "reach")  # of a run's progress, in the order of its fields


@dataclass
class Stage:
    """Which of its runs a fit is in, and how far.

    Attributes
    ----------
    anchor : Tucker
        Where the run starts, and thresholds are chosen.
    last : bool
        Whether it is the fit itself, not the one that thresholds are chosen from.
    ranks, thresholds, ridges
        What was chosen before, where it was.
    progress : Progress
    """

    anchor: Any = None
    last: bool = False
    ranks: RankPath | None = None
    thresholds: ThresholdPath | None = None
    ridges: RidgePath | None = None
    progress: Progress = field(default_factory=Progress)

    def advance(self, theta: Tucker) -> None:
        """Go on to the last run, which starts at a point."""
        self.anchor, self.last, self.progress = theta, True, Progress()

    def interrupted(self) -> Result:
        """What there is when a run is interrupted."""
        history = self.progress.history
        theta = self.progress.trail[-1] if self.progress.trail else self.anchor
        reason = f"{INTERRUPTED} after {len(history)} iterations; what they found is kept"
        return Result(theta, len(history), False, reason, history)

    def notes(self) -> dict[str, Any]:
        """What was chosen, as plain numbers and lists."""
        chosen = {"ranks": self.ranks, "thresholds": self.thresholds, "ridges": self.ridges}
        return {
            name: {key: np.asarray(value).tolist() for key, value in vars(path).items()}
            for name, path in chosen.items()
            if path is not None
        }

    def recall(self, notes: dict[str, Any]) -> Stage:
        """Take what was chosen from notes."""
        if ranks := notes.get("ranks"):
            tried = [tuple(rank) for rank in ranks["ranks"]]
            self.ranks = RankPath(tuple(ranks["rank"]), tried, ranks["criterion"])
        if found := notes.get("thresholds"):
            arrays = (np.array(found[key]) for key in ("taus", "error", "stderr"))
            self.thresholds = ThresholdPath(found["tau"], *arrays)
        if found := notes.get("ridges"):
            arrays = (np.array(found[key]) for key in ("ridges", "error", "stderr"))
            self.ridges = RidgePath(found["ridge"], *arrays)
        return self


class Checkpoint:
    """A file that holds a :class:`Stage`, and says of which problem.

    It is numpy's npz without pickle, written whole or not at all.

    Parameters
    ----------
    path : path
    fingerprint : str
        Of the problem: see :func:`fingerprint`.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path, self.fingerprint = Path(path), fingerprint
        check_writable(self.path)

    def save(self, stage: Stage) -> None:
        """Replace what the file holds."""
        points = [stage.anchor, *stage.progress.trail]
        meta = {
            "fingerprint": self.fingerprint,
            "last": stage.last,
            "notes": stage.notes(),
            "order": stage.anchor.order,
            "limits": [getattr(stage.progress, name) for name in LIMITS],
            "history": [asdict(iteration) for iteration in stage.progress.history],
        }
        arrays: dict[str, Any] = {
            f"point_{i}_{k}": to_numpy(block)
            for i, point in enumerate(points)
            for k, block in enumerate(point.blocks)
        }
        buffer = io.BytesIO()
        np.savez(buffer, meta=np.array(json.dumps(meta)), **arrays)
        try:
            write_whole(self.path, buffer.getvalue())
        except OSError as error:
            raise type(error)(
                f"checkpoint {str(self.path)!r} could not be written: {error.strerror}. What it "
                f"held before is still there; make room, and fit again to go on from it"
            ) from error

    def load(self, like: Callable[[Any], Array]) -> Stage | None:
        """Return the stage in the file, its arrays made by `like`; None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as file:
                contents = dict(file)
                meta = json.loads(str(contents.pop("meta")))
                known = meta["fingerprint"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is not one of this library: {error}. Give another "
                f"path, or remove it"
            ) from error
        if known != self.fingerprint:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is of another fit: of other data or other settings."
                f" Give another path, or remove it to start anew"
            )
        points = _points(contents, meta["order"], like)
        history = [
            Iteration(**{**entry, "truncated": tuple(entry["truncated"])})
            for entry in meta["history"]
        ]
        progress = Progress(points[1:], history, *meta["limits"])
        return Stage(points[0], meta["last"], progress=progress).recall(meta["notes"])

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def _points(
    contents: Mapping[str, np.ndarray], order: int, like: Callable[[Any], Array]
) -> list[Tucker]:
    """The points of a file, in order."""
    points: list[Tucker] = []
    while f"point_{len(points)}_0" in contents:
        prefix = f"point_{len(points)}_"
        count = sum(name.startswith(prefix) for name in contents)
        core, *others = (like(contents[f"{prefix}{k}"]) for k in range(count))
        factors, linear = tuple(others[:order]), others[order:]
        points.append(Affine(core, factors, linear[0]) if linear else Tucker(core, factors))
    return points


def fingerprint(data: Samples, settings: Mapping[str, Any]) -> str:
    """A short text that tells one problem from another: shapes, settings, some samples.

    Examples
    --------
    >>> from tauten.data import Rows
    >>> data = Rows(np.ones((3, 2)), np.ones(3))
    >>> fingerprint(data, {"rank": 1}) == fingerprint(data, {"rank": 2})
    False
    """
    digest = hashlib.sha256()
    for name, value in sorted(settings.items()):
        plain = (
            [to_numpy(b).tobytes() for b in value.blocks] if isinstance(value, Tucker) else value
        )
        digest.update(f"{name}={plain!r};".encode())
    pilot = data.sample(PILOT_SIZE)
    for array, some in zip(
        (data.X, data.y, data.Z, data.weight),
        (pilot.X, pilot.y, pilot.Z, pilot.weight),
        strict=True,
    ):
        digest.update(repr(None if array is None else tuple(array.shape)).encode())
        if some is not None:
            digest.update(np.ascontiguousarray(to_numpy(some)).tobytes())
    return digest.hexdigest()
