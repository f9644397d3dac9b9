"""What belongs to the samples, by reference: ``NAME``, ``FILE`` or ``FILE:NAME``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .limits import DataFileError, reading
from .sources import in_memory, open_arrays
from .table import Table


@dataclass(frozen=True)
class References:
    """Finds arrays with a row per sample.

    Attributes
    ----------
    source : mapping of str to array
        What lies beside the samples, in the file `path`.
    path : str
    match : str, optional
        Column of the other files that names the samples: their rows may come in any order.
    names : list of str, optional
        Names of the samples.
    """

    source: Mapping[str, Any]
    path: str
    match: str | None = None
    names: list[str] | None = None

    def find(self, reference: str) -> np.ndarray:
        """Return the array that a reference stands for, in the order of the samples."""
        if isinstance(self.source, Table) and is_pattern(self.source, reference):
            with reading(self.path):
                return self.source.matrix([reference], [])
        if reference in self.source:
            with reading(self.path):
                return in_memory(self.source[reference])
        file, name = _parted(reference)
        if not os.path.exists(file):
            raise DataFileError(
                f"{self.path!r} holds no {reference!r}, nor is there such a file; it holds "
                f"{listed(self.source)}. What lies in another file is FILE:NAME"
            )
        other = open_arrays(file)
        with reading(file):
            values = in_memory(other[_chosen(other, file, name)])
            return values if self.match is None else values[self._rows(other, self.match)]

    def columns(self, references: str) -> np.ndarray:
        """Numbers side by side; what follows ``FILE:NAME`` is of that file, if it is nowhere else.

        ``"table.csv:age,weight"`` stands for two columns of one table.
        """
        found, file = [], ""
        for part in parts(references):
            elsewhere = part not in self.source and not os.path.exists(_parted(part)[0])
            reference = f"{file}:{part}" if file and elsewhere else part
            values, file = self.find(reference), _parted(reference)[0]
            if values.dtype.kind not in "biuf":
                raise DataFileError(
                    f"{reference!r} holds {str(values.flat[0])!r:.40}, not numbers: code it as "
                    f"numbers, such as 0 and 1"
                )
            found.append(values)
        return np.column_stack(found)

    def elsewhere(self, reference: str | None) -> bool:
        """Whether a reference is to another file."""
        return reference is not None and any(
            part not in self.source and not is_pattern(self.source, part)
            for part in parts(reference)
        )

    def _rows(self, table: Mapping[str, Any], match: str) -> list[int]:
        """The row of each sample in another table."""
        if self.names is None:
            raise DataFileError("match needs samples with names: those of files, or --names")
        if match not in table:
            raise DataFileError(f"it has no column {match!r} to match; it has {listed(table)}")
        rows: dict[str, int] = {}
        twice = set()
        for k, name in enumerate(map(str, table[match])):
            if rows.setdefault(name, k) != k:
                twice.add(name)
        found = [_key(rows, name) for name in self.names]
        for key, name in zip(found, self.names, strict=True):
            if key is None or key in twice:
                held = f"{next(iter(rows), '')!r:.40}, …"
                raise DataFileError(
                    f"column {match!r} has {'no row' if key is None else 'two rows'} for {name!r}; "
                    f"it must name every sample once, and holds {held}"
                )
        return [rows[key] for key in found if key is not None]


def parts(text: str | None) -> list[str]:
    """References parted by commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def is_pattern(source: Mapping[str, Any], key: str) -> bool:
    """Whether a reference stands for several columns of a table."""
    return isinstance(source, Table) and "*" in key


def listed(source: Mapping[str, Any]) -> str:
    """Names of the arrays of a file, for a message."""
    names = [name or "(its only array)" for name in source]
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") or "(there are none)"


def _parted(reference: str) -> tuple[str, str]:
    """File and name; a colon may be part of the file's name."""
    file, colon, name = reference.rpartition(":")
    return (file, name) if colon and os.path.exists(file) else (reference, "")


def _chosen(other: Mapping[str, Any], file: str, name: str) -> str:
    if not name and len(other) == 1:
        return next(iter(other))
    if name in other:
        return name
    asked = f"it has no array or column {name!r}" if name else "it has several arrays or columns"
    raise DataFileError(f"{asked}: write {file}:NAME, with a name from {listed(other)}")


def _key(rows: Mapping[str, int], name: str) -> str | None:
    """What a table calls a sample: its name, that of its file, or this without what ends it."""
    base = name.rpartition("/")[2]
    return next((key for key in (name, base, base.partition(".")[0]) if key in rows), None)
