"""numpy's own files: .npy, mapped and not read, and .npz, one member at a time. Never pickle."""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO, Any

import numpy as np

from .arrays import Arrays
from .limits import DataFileError, check_claim, check_memory

Header = tuple[tuple[int, ...], bool, np.dtype[Any]]


def header(stream: IO[bytes]) -> Header:
    """Read the header of a .npy stream: shape, whether the order is Fortran's, dtype."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        found = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        found = np.lib.format.read_array_header_2_0(stream)
    else:
        raise DataFileError(f"an array has the unknown layout {version}")
    if any(length < 0 for length in found[0]):
        raise DataFileError(f"an array claims the shape {found[0]!s:.80}")
    return found


def claimed_bytes(found: Header) -> int:
    """Bytes that the entries of an array take, by its header."""
    return math.prod(found[0]) * found[2].itemsize


def open_npy(path: str) -> dict[str, np.ndarray]:
    """Map the array of a .npy file into memory; it has no name."""
    with open(path, "rb") as file:
        found = header(file)
        start = file.tell()
    _check_plain(found[2])
    stored = os.path.getsize(path) - start
    if claimed_bytes(found) != stored:
        raise DataFileError(f"its header claims {claimed_bytes(found)} bytes; there are {stored}")
    if not stored:
        return {"": np.empty(found[0], found[2])}
    return {"": np.load(path, mmap_mode="r", allow_pickle=False)}


class Npz(Arrays):
    """The arrays of a .npz file, each read when asked for."""

    def __init__(self, path: str) -> None:
        self._archive = zipfile.ZipFile(path)
        members = self._archive.infolist()
        arrays = [member for member in members if member.filename.endswith(".npy")]
        super().__init__(path, {member.filename.removesuffix(".npy"): member for member in arrays})

    def read(self, key: str, member: zipfile.ZipInfo) -> np.ndarray:
        """Read an array, once its header agrees with what is there."""
        with self._archive.open(member) as stream:
            found = header(stream)
            _check_plain(found[2])
            check_claim(f"array {key!r}", claimed_bytes(found), member.compress_size)
            if not claimed_bytes(found) < member.file_size:  # the header takes some
                raise DataFileError(f"array {key!r} has fewer bytes than its header claims")
            check_memory(f"array {key!r}", claimed_bytes(found))
        with self._archive.open(member) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)


def _check_plain(dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise DataFileError(
            "it holds Python objects, which are not read since reading them could run code. "
            "Save numbers or strings instead"
        )
