"""Tables and arrays on their way out: to the standard output, or to files that are whole."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from .._files import write_whole

Row = Sequence[Any]


def check_kind(path: str | None) -> None:
    """Raise unless a file is of a kind that can be written."""
    if path is not None and not path.lower().endswith((".csv", ".npz")):
        raise ValueError(f"output must be a .csv or .npz file; got {path!r}")


def write(path: str | None, arrays: Mapping[str, np.ndarray], table: Iterable[Row]) -> None:
    """Write arrays to an .npz file, or a table of the same to a .csv or the standard output."""
    if path is None:
        _write_rows(sys.stdout, table)
    elif path.lower().endswith(".npz"):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        write_whole(path, buffer.getvalue())
    else:
        text = io.StringIO()
        _write_rows(text, table)
        write_whole(path, text.getvalue().encode())


def _write_rows(stream: TextIO, table: Iterable[Row]) -> None:
    csv.writer(stream, lineterminator="\n").writerows(table)


def columns(name: str, shape: Sequence[int]) -> list[str]:
    """Names of the entries of an array of some shape.

    Examples
    --------
    >>> columns("y", ()), columns("y", (2, 1))
    (['y'], ['y.0.0', 'y.1.0'])
    """
    return [".".join(map(str, (name, *index))) for index in np.ndindex(*shape)]


def rows(*arrays: np.ndarray | Sequence[Any]) -> Iterator[list[Any]]:
    """Samples as rows of numbers that read back to the last bit, and of words."""
    for parts in zip(*arrays, strict=True):
        yield [value for part in parts for value in np.ravel(part).tolist()]
