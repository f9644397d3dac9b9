"""CSV tables: columns by name, numbers where all their cells are numbers, else text."""

from __future__ import annotations

import csv
import fnmatch
import io
import itertools
import math
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

import numpy as np

from .limits import DataFileError

STDIN = "-"
COUNTED = 5  # numbers 0, 1, 2, ... from which a first row counts the columns
MISSING = {"", "na", "n/a", "nan", "null", "none"}


class Table(Mapping[str, np.ndarray]):
    r"""The columns of a table. Without a header they are called "1", "2", ...

    A column whose name is empty is an index, and no part of x.

    Examples
    --------
    >>> table = Table.parse(io.StringIO("age,group\n51,a\n,b\n"))
    >>> table["age"], table["group"]
    (array([51., nan]), array(['a', 'b'], dtype='<U1'))
    """

    def __init__(self, columns: Mapping[str, _Column]) -> None:
        self._columns = columns

    @classmethod
    def open(cls, path: str) -> Table:
        """Read a file, or the standard input."""
        if path == STDIN:
            return cls.parse(io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline=""))
        with open(path, encoding="utf-8-sig", newline="") as file:
            return cls.parse(file)

    @classmethod
    def parse(cls, stream: TextIO) -> Table:
        """Read a table; cells are parted by commas, semicolons or tabs."""
        first = stream.readline()
        if not first.strip():
            raise DataFileError("it is empty")
        rows = csv.reader(itertools.chain([first], stream), delimiter=max(",;\t", key=first.count))
        head = [cell.strip() for cell in next(rows)]
        second = next(rows, [])
        named = _is_header(head, second)
        names = head if named else [str(k) for k in range(1, len(head) + 1)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataFileError(f"two columns are called {twice!r}: rename one")
        columns = {name: _Column(name) for name in names}
        if not named:
            _add(head, columns, 1)
        for row in itertools.chain([second], rows):
            if row:
                _add(row, columns, rows.line_num)
        return cls(columns)

    def __getitem__(self, key: str) -> np.ndarray:
        return self._columns[key].values()

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def matrix(self, patterns: Sequence[str], without: Sequence[str]) -> np.ndarray:
        """Numbers of the columns that match a pattern (all, without patterns), but some."""
        names = [
            name
            for name in self
            if name  # a column without a name is an index, as pandas writes it
            and not _matches(name, without)
            and (not patterns or _matches(name, patterns))
        ]
        if not names:
            raise DataFileError(f"no column is left for x; it has {', '.join(self):.200}")
        text = [name for name in names if self._columns[name].is_text]
        if text:
            raise DataFileError(
                f"column {text[0]!r} holds {self._columns[text[0]].texts[0]!r:.40}, not numbers: "
                f"choose the columns of x by name (patterns such as 'pixel*'), or ignore that one"
            )
        return np.column_stack([self[name] for name in names])


class _Column:
    """Cells of one column: numbers, until a text comes while there was no number yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbers = array("d")
        self.texts: list[str] = []
        self.is_text = False
        self._empty = True

    def add(self, cell: str, line: int) -> None:
        if self.is_text:
            self.texts.append(cell)
            return
        number = _number(cell)
        if number is None and not self._empty:
            raise DataFileError(
                f"line {line}, column {self.name!r}: {cell!r:.40} is not a number, as the cells "
                f"above it are. Correct it, or leave it empty for a missing value"
            )
        if number is None:
            self.is_text = True
            self.texts = [*("" for _ in self.numbers), cell]
        else:
            self._empty = self._empty and math.isnan(number)
            self.numbers.append(number)

    def values(self) -> np.ndarray:
        return np.array(self.texts if self.is_text else self.numbers)


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell names of columns from a first row of data.

    Names are texts, or texts above numbers; or they count the columns, as pandas does.
    """
    found = [_number(cell) for cell in first]
    numbers = [number for number in found if number is not None and not math.isnan(number)]
    if None in found:
        below = [_number(cell.strip()) for cell in second]
        if not numbers or any(
            a is None and b is not None for a, b in zip(found, below, strict=False)
        ):
            return True
    elif len(numbers) < COUNTED:
        return False
    return numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])


def _add(row: Sequence[str], columns: Mapping[str, _Column], line: int) -> None:
    if len(row) != len(columns):
        raise DataFileError(f"line {line} has {len(row)} cells; the first one has {len(columns)}")
    for cell, column in zip(row, columns.values(), strict=True):
        column.add(cell.strip(), line)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return name in patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _number(cell: str) -> float | None:
    """The number in a cell, nan for a missing one, None for text."""
    if cell.lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None
