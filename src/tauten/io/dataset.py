"""Data in files: samples, responses, covariates and names, from the formats people have them in."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .folders import FOLDER, NAME, Folder
from .limits import DataFileError, reading
from .references import References, is_pattern, listed, parts
from .sources import in_memory, open_arrays
from .table import STDIN, Table

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a model is fitted to, or asked about.

    Attributes
    ----------
    X : array-like (n, p_1, ..., p_d)
        The samples: an array in memory or mapped into it, or an open HDF5 or Zarr array.
    y : array (n,) or (n, q_1, ..., q_m), or None
        The responses.
    covariates : array (n, c) or None
    weights : array (n,) or None
    names : list of str or None
        Names of the samples.

    Examples
    --------
    >>> Dataset(np.ones((5, 3, 2))).y is None
    True
    """

    X: Any
    y: np.ndarray | None = None
    covariates: np.ndarray | None = None
    weights: np.ndarray | None = None
    names: list[str] | None = None


def read(
    path: str | os.PathLike[str],
    *,
    x: str | None = None,
    y: str | None = AUTO,
    covariates: str | None = None,
    weights: str | None = None,
    names: str | None = None,
    ignore: str | None = None,
    match: str | None = None,
    shape: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
) -> Dataset:
    r"""Read samples, and what belongs to them, from files.

    Parameters
    ----------
    path : str or path-like
        See :func:`open_arrays`.
    x : str, optional
        Name of the array of samples; of a table, patterns of columns parted by commas, such as
        ``"pixel*"``. By default the array ``"X"`` or the only one; of a table, all columns that
        are not used otherwise.
    y, covariates, weights, names : str, optional
        Name of an array or column in the same file; ``"file"`` or ``"file:name"`` for one in
        another; of a table, also a pattern of columns. Several covariates are parted by commas,
        and ``"file:name,name"`` are of one file.
        In a folder of images or volumes, ``"folder"`` is the subfolder that each lies in, and
        ``"name"`` the file. For y, ``"auto"`` is ``"y"`` or ``"folder"`` where there is such a
        thing, and None leaves it out.
    ignore : str, optional
        Patterns of columns of the table to leave out of x.
    match : str, optional
        Column that names the samples, of the other files of `y`, `covariates` and `weights`: their
        rows may then come in any order, and others may be among them.
    shape : sequence of int, optional
        Shape of each sample, where rows of a table or matrix are tensors; one of them may be -1.
    size : sequence of int, optional
        Height and width that images are resized to.

    Returns
    -------
    Dataset

    Raises
    ------
    DataFileError
        A ``ValueError``: the file is damaged, of another kind, or lacks what was asked for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/data.csv", "w") as file:
    ...         _ = file.write("a,b,c,d,y\n1,2,3,4,0.5\n5,6,7,8,0.7\n")
    ...     data = read(f"{folder}/data.csv", y="y", shape=(2, 2))
    >>> data.X[0], data.y
    (array([[1., 2.], [3., 4.]]), array([0.5, 0.7]))
    """
    path = os.fspath(path)
    source = open_arrays(path, size=size)
    if y == AUTO:
        y = next((name for name in ("y", FOLDER) if name in source), None)
    asked = [key for text in (y, covariates, weights, names) if text for key in parts(text)]
    own = [key for key in asked if key in source or is_pattern(source, key)]
    with reading("the standard input" if path == STDIN else path):
        X = _samples(source, x, [*own, *parts(ignore)])
        X = X if shape is None else _reshaped(X, tuple(shape))
    n = X.shape[0] if len(X.shape) else 1
    known = _names(References(source, path), names, n)
    of = References(source, path, match, known)
    if match is not None and not any(map(of.elsewhere, (y, covariates, weights))):
        raise DataFileError("match needs y, covariates or weights of another file: FILE:COLUMN")
    response = None if y is None else _flat(of.find(y), n)
    Z = None if covariates is None else of.columns(covariates)
    weight = None if weights is None else _flat(of.find(weights), n)
    return Dataset(X, response, Z, weight, known)


def _samples(source: Mapping[str, Any], x: str | None, used: Sequence[str]) -> Any:
    if isinstance(source, Table):
        return source.matrix(parts(x), used)
    if x is None:
        left = [name for name in source if name not in used and name not in {FOLDER, NAME}]
        x = "X" if "X" in left else left[0] if len(left) == 1 else None
    if x is None or x not in source:
        asked = "no array is called 'X'" if x is None else f"it has no array {x!r}"
        raise DataFileError(f"{asked}: choose x from {listed(source)}")
    return source[x]


def _reshaped(X: Any, shape: tuple[int, ...]) -> Any:
    if tuple(X.shape[1:]) == shape:
        return X
    if tuple(X.shape) == shape:  # one sample, such as an image
        return in_memory(X)[None]
    if len(X.shape) != 2:
        raise DataFileError(
            f"its samples have the shape {tuple(X.shape[1:])}, not {shape}, and are no rows that "
            f"could be reshaped"
        )
    entries, known = math.prod(X.shape[1:]), math.prod(p for p in shape if p != -1)
    fits = entries % known == 0 if shape.count(-1) == 1 else entries == known
    if not fits or shape.count(-1) > 1:
        raise DataFileError(
            f"its samples have {entries} entries, which do not fill the shape {shape}. "
            f"Columns that are not part of x can be ignored"
        )
    return in_memory(X).reshape(X.shape[0], *shape)


def _names(find: References, names: str | None, n: int) -> list[str] | None:
    if names is None and isinstance(find.source, Folder):
        names = NAME
    if names is None:
        return None
    found = [str(name) for name in np.ravel(find.find(names))]
    if len(found) != n:
        raise DataFileError(f"names must be {n}, one per sample; {names!r} has {len(found)}")
    return found


def _flat(y: np.ndarray, n: int) -> np.ndarray:
    """Responses that a file holds as one row or column, as MATLAB's do, without the other axis."""
    return y.reshape(n) if y.ndim == 2 and y.size == n and 1 in y.shape else y
