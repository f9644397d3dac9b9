"""numpy's own files: .npy, mapped and not read, and .npz, one member at a time. Never pickle."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from .._archive import claimed_bytes, header
from .arrays import Arrays
from .limits import DataFileError, check_claim, check_memory


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
