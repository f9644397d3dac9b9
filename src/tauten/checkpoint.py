"""Where a fit is, in a file, so that another process can go on from there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ._archive import pack, unpack
from ._array import Array, to_numpy
from ._files import check_writable, write_whole
from .data import Samples
from .problem import PILOT_SIZE
from .select import RankPath, RidgePath, ThresholdPath
from .solver import Iteration, Result
from .solver.result import INTERRUPTED, Progress
from .tucker import Affine, Tucker

TEXT = "checkpoint.json"
LIMITS = (
    "largest",
    "moved",
    "reach",
    "before",
    "pace",
)  # of a run's progress, in the order of its fields


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
        self.anchor, self.last = theta, True
        done = self.progress
        self.progress = Progress(before=done.moved, keeps=done.keeps, tensor=done.tensor)

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
        paths: dict[str, type] = {"thresholds": ThresholdPath, "ridges": RidgePath}
        for name, path in paths.items():
            if found := notes.get(name):
                chosen, *arrays = (found[f.name] for f in fields(path))
                setattr(self, name, path(chosen, *map(np.array, arrays)))
        return self


class Checkpoint:
    """A file that holds a :class:`Stage`, and says of which problem.

    It is a sealed archive like that of a model, without pickle, written whole or not at all.

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
        progress = stage.progress
        points = [stage.anchor, *progress.trail, *chain.from_iterable(progress.memory)]
        meta = {
            "fingerprint": self.fingerprint,
            "last": stage.last,
            "notes": stage.notes(),
            "order": stage.anchor.order,
            "blocks": len(stage.anchor.blocks),
            "trail": len(progress.trail),
            "keeps": progress.keeps,
            "tensor": progress.tensor is not None,
            "limits": [getattr(progress, name) for name in LIMITS],
            "history": [asdict(iteration) for iteration in progress.history],
        }
        arrays = [block for point in points for block in point.blocks]
        arrays += [] if progress.tensor is None else [progress.tensor]
        contents = pack(TEXT, json.dumps(meta), [to_numpy(array) for array in arrays])
        try:
            write_whole(self.path, contents)
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
            text, arrays = unpack(TEXT, self.path.read_bytes())
            meta = json.loads(text)
            known, stage = meta["fingerprint"], _stage(meta, [like(array) for array in arrays])
        except Exception as error:  # a file made to break us ends here too
            raise ValueError(
                f"checkpoint {str(self.path)!r} is not one of this library: {error}. Give another "
                f"path, or remove it"
            ) from error
        if known != self.fingerprint:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is of another fit: of other data or other settings."
                f" Give another path, or remove it to start anew"
            )
        return stage

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def _stage(meta: Mapping[str, Any], arrays: Sequence[Array]) -> Stage:
    """The stage that a file tells of."""
    tensor, arrays = (arrays[-1], arrays[:-1]) if meta.get("tensor") else (None, arrays)
    anchor, *points = _points(arrays, meta["blocks"], meta["order"])
    if tensor is not None and tuple(tensor.shape) != anchor.shape:
        raise ValueError(f"its tensor is of shape {tuple(tensor.shape)}, not {anchor.shape}")
    trail, kept = points[: meta["trail"]], points[meta["trail"] :]
    history = [
        Iteration(**{**entry, "truncated": tuple(entry["truncated"])}) for entry in meta["history"]
    ]
    memory = list(zip(kept[::2], kept[1::2], strict=True))
    limits = dict(zip(LIMITS, meta["limits"], strict=True))
    keeps = bool(meta.get("keeps"))
    progress = Progress(trail, history, memory=memory, keeps=keeps, tensor=tensor, **limits)
    return Stage(anchor, meta["last"], progress=progress).recall(meta["notes"])


def _points(arrays: Sequence[Array], blocks: int, order: int) -> Iterator[Tucker]:
    """The points of a file, in order, each of so many blocks."""
    for at in range(0, len(arrays), blocks):
        core, *others = arrays[at : at + blocks]
        factors, linear = tuple(others[:order]), others[order:]
        yield Affine(core, factors, linear[0]) if linear else Tucker(core, factors)


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
