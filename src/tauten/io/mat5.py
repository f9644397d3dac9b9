"""The tags of MATLAB's files of versions 5 to 7, checked before scipy follows them.

Every piece of such a file begins with a tag: a number for its type, and its length. SciPy looks the
types up in a table of its own without checking the numbers, and expects imaginary parts where flags
promise them, so a damaged file can end the process.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Protocol

from .limits import DataFileError

START, ORDER_AT = 128, 126  # bytes before the first tag; where the order of bytes is told
TAG = 8
FLAGS, MATRIX, COMPRESSED = 6, 14, 15
PLAIN = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}  # types of numbers and texts
SPARSE, NUMBERS = 5, range(6, 16)  # classes of variables, in the first byte of their flags
COMPLEX = 0x800  # the flag of imaginary parts
PIECE = 2**20  # bytes skipped at a time


class Stream(Protocol):
    """What tags are read from."""

    def read(self, count: int) -> bytes:
        """At most so many bytes."""


class Inflated:
    """A stream of what was compressed, a piece at a time."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._inflate = packed, zlib.decompressobj()

    def read(self, count: int) -> bytes:
        """At most so many bytes."""
        found = self._inflate.decompress(self._packed, count)
        self._packed = self._inflate.unconsumed_tail
        return found


def check_tags(path: str) -> None:
    """Raise unless every tag of a file has a known type and lies where it should."""
    with open(path, "rb") as file:
        start, left = file.read(START), os.path.getsize(path) - START
        order = "<" if start[ORDER_AT:] == b"IM" else ">"
        while left > 0:
            left -= _check_element(file, order, left)


def _check_element(stream: Stream, order: str, left: int) -> int:
    """Check the tag that comes next, and those within; return how many bytes they all take."""
    kind, length = struct.unpack(f"{order}II", _read(stream, TAG))
    if kind >> 16:  # up to four bytes lie in the tag itself
        kind, length, taken = kind & 0xFFFF, kind >> 16, TAG
        known = kind in PLAIN and length <= 4
    else:
        taken = TAG + (length if kind == COMPRESSED else -(-length // TAG) * TAG)
        known = kind in PLAIN or (kind in {MATRIX, COMPRESSED} and taken <= left)
    if not known:
        raise DataFileError(f"a piece of it has the unknown type {kind}, or a wrong length")
    if kind == COMPRESSED:
        inside = Inflated(_read(stream, length))
        _check_element(inside, order, 2**32)
    elif kind == MATRIX:
        _check_matrix(stream, order, length)
    else:
        _skip(stream, taken - TAG)
    return taken


def _check_matrix(stream: Stream, order: str, left: int) -> None:
    if not left:
        return
    if struct.unpack(f"{order}II", _read(stream, TAG)) != (FLAGS, TAG):
        raise DataFileError("a variable does not begin with its flags")
    flags, _ = struct.unpack(f"{order}II", _read(stream, TAG))
    left, found = left - 2 * TAG, 0
    while left > 0:
        left, found = left - _check_element(stream, order, left), found + 1
    if found < _expected(flags):
        raise DataFileError("a variable lacks some of its parts")


def _expected(flags: int) -> int:
    """How many pieces a variable of numbers has: dimensions, name, indices, numbers; else none."""
    kind = flags & 0xFF
    if kind != SPARSE and kind not in NUMBERS:
        return 0
    return (5 if kind == SPARSE else 3) + bool(flags & COMPLEX)


def _read(stream: Stream, count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise DataFileError("it ends in the middle of a variable")
    return found


def _skip(stream: Stream, count: int) -> None:
    while count > 0:
        count -= len(_read(stream, min(count, PIECE)))
