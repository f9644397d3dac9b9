"""Files and folders as mappings from names to arrays, whatever their format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .folders import IMAGES, VOLUMES, Folder, read_image, read_volume
from .hdf import Hdf, open_mat
from .limits import DataFileError, check_exists, check_memory, reading
from .npy import Npz, open_npy
from .table import STDIN, Table
from .zarrs import open_zarr

OPENERS: dict[str, Callable[[str], Mapping[str, Any]]] = {
    ".npy": open_npy,
    ".npz": Npz,
    ".h5": Hdf,
    ".hdf5": Hdf,
    ".mat": open_mat,
    ".csv": Table.open,
    ".tsv": Table.open,
    ".txt": Table.open,
}
ZARR_ROOTS = ("zarr.json", ".zarray", ".zgroup")


def open_arrays(
    path: str | os.PathLike[str], *, size: Sequence[int] | None = None
) -> Mapping[str, Any]:
    """Open a file or folder: its arrays by name, each read as late as its format allows.

    Parameters
    ----------
    path : str or path-like
        A .npy, .npz, .h5, .mat, .csv or NIfTI file, an image, a .zarr folder, or a folder of images
        or NIfTI files; ``"-"`` is a table from the standard input.
    size : sequence of int, optional
        Height and width that images are resized to.

    Returns
    -------
    mapping of str to array
        The only array of a file that names none is ``""``.

    Raises
    ------
    DataFileError
        A ``ValueError``: the file is damaged or of another kind.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/data.npz", X=np.ones((5, 2, 3)), y=np.arange(5))
    ...     list(open_arrays(f"{folder}/data.npz"))
    ['X', 'y']
    """
    path = os.fspath(path)
    if path == STDIN:
        with reading("the standard input"):
            return Table.open(path)
    check_exists(path)
    with reading(path):
        if os.path.isdir(path):
            zarr = any(os.path.exists(os.path.join(path, f)) for f in ZARR_ROOTS)
            return open_zarr(path) if zarr else Folder(path, size)
        name = path.lower()
        if name.endswith(VOLUMES):
            return {"": read_volume(path)}
        if name.endswith(IMAGES):
            return {"": read_image(path, size)}
        opener = OPENERS.get(os.path.splitext(name)[1])
        if opener is None:
            known = ", ".join((*OPENERS, *VOLUMES, *IMAGES))
            raise DataFileError(f"files are told by the ends of their names; known are {known}")
        return opener(path)


def in_memory(values: Any) -> np.ndarray:
    """An array of any file, read as a whole."""
    if isinstance(values, np.ndarray):
        return values
    check_memory("the array", values.nbytes)
    return np.asarray(values[...])
