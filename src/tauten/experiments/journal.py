"""Results on disk: JSON lines, appended, safe to kill.

The first line of a file is a header that says which settings it belongs to; every other line is a
finished piece of work. A line counts once it ends: what a killed run left half-written is cut off
when the next one resumes, and done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .._files import write_whole

FORMAT = 1
Line = dict[str, Any]
Append = Callable[[Line], None]


@dataclass(frozen=True)
class Journal:
    """A file of results.

    Parameters
    ----------
    path : Path
    header : dict
        What the results depend on.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "a.jsonl", {"seed": 0})
    ...     with journal.writing() as append:
    ...         append({"split": 0, "f1": 0.7})
    ...     journal.read()
    [{'split': 0, 'f1': 0.7}]
    """

    path: Path
    header: dict[str, Any]

    def read(self) -> list[Line]:
        """The lines after the header; raise, and touch nothing, if they are not of this run."""
        content = self._whole_lines()
        if not content and not self._begun():
            return []
        lines = content.splitlines()
        self._check_header(lines)
        return [self._parse(number, line) for number, line in enumerate(lines[1:], start=2)]

    @contextmanager
    def writing(self) -> Iterator[Append]:
        """Hold the file for this process alone, cut off a half-written end, and append to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix(".lock"), "wb") as lock:
            _lock(lock, self.path)
            self.read()  # another process may have been here since it was last read
            if not self._begun():
                write_whole(self.path, _encode({"format": FORMAT, **self.header}))
            with open(self.path, "r+b") as file:
                file.truncate(len(self._whole_lines()))
                file.seek(0, os.SEEK_END)

                def append(line: Line) -> None:
                    file.write(_encode(line))
                    file.flush()
                    os.fsync(file.fileno())  # on the disk before going on

                yield append

    def _begun(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0

    def _whole_lines(self) -> bytes:
        content = self.path.read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def _check_header(self, lines: list[bytes]) -> None:
        try:
            found = dict(json.loads(lines[0]))
            known = found.pop("format") == FORMAT
        except (IndexError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{self.path} is not a results file, or its header is half-written: move it away"
            ) from error
        if not known:
            raise ValueError(f"{self.path} was written by another version: move it away")
        names = sorted(self.header.keys() | found.keys())
        told = [
            f"{name} is {_short(found.get(name))}, asked {_short(self.header.get(name))}"
            for name in names
            if found.get(name) != self.header.get(name)
        ]
        if told:
            raise ValueError(
                f"{self.path} holds results of other settings ({'; '.join(told)}): choose another "
                f"folder with out, or the same settings"
            )

    def _parse(self, number: int, line: bytes) -> Line:
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(
                f"line {number} of {self.path} is damaged ({error}): move the file away to start "
                f"anew, or delete that line to have its work done again"
            ) from error


def _encode(line: Line) -> bytes:
    return f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n".encode()


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"{len(value)} of them, from {value[0]!r} to {value[-1]!r}"
    return repr(value)


def _lock(lock: BinaryIO, path: Path) -> None:
    """Take a lock that the system gives back when the process ends, however it ends."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BlockingIOError(
            f"another process is writing {path}: wait for it, or choose another folder with out"
        ) from error
