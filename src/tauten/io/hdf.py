"""HDF5 files, opened and not read; and MATLAB's, whose version 7.3 are HDF5 in disguise."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from .arrays import Arrays
from .limits import DataFileError, check_claim, check_memory, missing_extra
from .mat5 import check_tags


def _datasets(path: str) -> dict[str, Any]:
    """The datasets of an HDF5 file by their paths in it; links to other files are not followed."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("h5py", "HDF5 files") from error
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#"):  # MATLAB's own
            found[name] = item

    h5py.File(path, "r").visititems(visit)
    return found


def _check(key: str, dataset: Any) -> None:
    if dataset.external:
        raise DataFileError(f"dataset {key!r} lies in another file: give that one")
    if dataset.shape is None:
        raise DataFileError(f"dataset {key!r} is empty")
    check_claim(f"dataset {key!r}", dataset.nbytes, dataset.id.get_storage_size())


class Hdf(Arrays):
    """The datasets of an HDF5 file, as they are; strings in memory."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _datasets(path))

    def read(self, key: str, member: Any) -> Any:
        """Return an open dataset, or an array of strings."""
        import h5py

        _check(key, member)
        if h5py.check_string_dtype(member.dtype):
            return np.asarray(member.asstr()[()]).astype(str)
        return member


def open_mat(path: str) -> Arrays:
    """Open a MATLAB file of any version."""
    from scipy.io import matlab

    with open(path, "rb") as file:
        version = matlab.matfile_version(file)
    if version[0] == 2:
        return _Mat73(path)
    if version[0] == 1:
        check_tags(path)
    return _Mat(path)


class _Mat(Arrays):
    """The variables of a MATLAB file up to version 7, each read when asked for."""

    def __init__(self, path: str) -> None:
        from scipy.io import whosmat

        super().__init__(path, {name: shape for name, shape, _ in whosmat(path)})

    def read(self, key: str, member: tuple[int, ...]) -> np.ndarray:
        from scipy.io import loadmat

        claimed = math.prod(member) * 8
        check_claim(f"variable {key!r}", claimed, os.path.getsize(self.path))
        check_memory(f"variable {key!r}", claimed)
        value = loadmat(self.path, variable_names=[key], chars_as_strings=True)[key]
        if not isinstance(value, np.ndarray):
            raise DataFileError(f"variable {key!r} is sparse: save full({key}) instead")
        if value.dtype == object:
            return _words(key, [np.ravel(cell) for cell in value.flat])
        return value


def _words(key: str, cells: list[np.ndarray]) -> np.ndarray:
    """A cell array of strings as an array of strings."""
    if not all(cell.dtype.kind == "U" and cell.size <= 1 for cell in cells):
        raise DataFileError(f"variable {key!r} is a cell array of other things than strings")
    return np.array([str(cell[0]) if cell.size else "" for cell in cells])


class _Mat73(Arrays):
    """The variables of a MATLAB file of version 7.3, with MATLAB's order of axes."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _datasets(path))

    def read(self, key: str, member: Any) -> np.ndarray:
        _check(key, member)
        check_memory(f"variable {key!r}", member.nbytes)
        if member.dtype.kind not in "biuf":
            cells = [member.file[cell][()] for cell in np.ravel(member[()])]
            texts = ["".join(map(chr, np.ravel(cell))) for cell in cells]
            return _words(key, [np.array([text]) for text in texts])
        return np.asarray(member[()]).T  # written column by column
