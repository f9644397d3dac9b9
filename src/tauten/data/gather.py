"""From what a user has, wherever it lives, to samples that can be gone over."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

import numpy as np

from .._array import Array, is_foreign, like, namespace, to_numpy
from .base import Samples
from .blocks import Blocks, check_blocks, is_dask
from .files import Files, check_finite
from .rows import Rows
from .stored import Stored, stored
from .threads import available_threads

MEMORY = 2**30  # bytes, where none are asked for

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{unit}i": 2 ** (10 * k) for k, unit in enumerate("KMGT", start=1)}


def gather(
    X: Array | None,
    y: Array,
    Z: Array | None = None,
    weight: Array | None = None,
    *,
    intercept: bool = False,
    memory: Any = None,
    n_jobs: int | None = None,
    keep: bool = True,
) -> Samples:
    """Return samples from arrays in memory, on disk, or in a dask cluster: as X is (in PCA, y).

    Parameters
    ----------
    X, y, Z, weight : see :class:`tauten.data.Samples`
        As :func:`tauten._checks.check_tensor` returns them. Brought to the library, device and
        precision of X.
    intercept : bool
        Whether Z gets a first column of ones.
    memory : int, str or None
        See :func:`memory_bytes`.
    n_jobs : int, optional
        See :func:`available_threads`. A cluster has threads of its own.
    keep : bool
        Whether the samples of a cluster are kept in its memory.

    Examples
    --------
    >>> import numpy as np
    >>> data = gather(np.ones((10, 3)), np.ones(10), intercept=True)
    >>> type(data).__name__, data.Z.shape
    ('Rows', (10, 1))
    """
    main, budget = y if X is None else X, memory_bytes(memory)
    threads = None if n_jobs is None else available_threads(n_jobs)
    if isinstance(Z, Stored):
        Z = _read(Z, "covariates")
    if intercept:
        Z = _with_ones(Z, main)
    if isinstance(y, Stored) and y.ndim == 1 and y is not main:
        y = _read(y, "y")
    y, Z, weight = (a if a is main else _matched(a, main) for a in (y, Z, weight))
    if is_dask(main):
        return Blocks(X, y, Z, weight, memory=budget, keep=keep)
    if isinstance(main, Stored) or isinstance(y, Stored):
        files = Files(X, y, Z, weight, memory=budget, threads=threads)
        return files.whole() if 2 * files.nbytes <= budget else files
    return Rows(X, y, Z, weight, threads=threads)


def in_memory(value: Any) -> Any:
    """Return an array on disk, in a dask cluster or on another device as numpy's; others as is."""
    array = stored(value) if not isinstance(value, np.memmap) else None
    if array is not None:
        return np.asarray(array.array[:])
    if is_dask(value):
        return value.compute()
    return to_numpy(value) if is_foreign(value) else value


def lazy(name: str, value: Any) -> Any:
    """Return an array that is not in memory as one that can be read by parts, others as None."""
    if is_dask(value):
        return check_blocks(name, value)
    array = stored(value)
    if array is not None and array.raw.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers; got {array} of {array.raw}")
    return array


def memory_bytes(memory: Any) -> int:
    """Return a number of bytes from one, or from a text such as ``"1GB"`` or ``"512 MiB"``.

    None is one gigabyte (2³⁰ bytes).

    Examples
    --------
    >>> memory_bytes("1.5GB"), memory_bytes("1MiB"), memory_bytes(None)
    (1500000000, 1048576, 1073741824)
    """
    if memory is None:
        return MEMORY
    size = math.nan
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*((?:[KMGT]i?)?)B?\s*", memory, re.IGNORECASE)
        if match and re.fullmatch(r"\d+\.?\d*|\.\d+", match[1]):
            size = float(match[1]) * UNITS[match[2].capitalize()]
    elif isinstance(memory, Real) and not isinstance(memory, bool):
        size = float(memory)
    if not (size >= 1 and math.isfinite(size)):
        raise ValueError(
            f"memory must be a positive number of bytes, a text such as '1GB', or None; got "
            f"{memory!r}"
        )
    return int(size)


def _read(array: Stored, name: str) -> np.ndarray:
    """All of an array on disk, checked."""
    whole = array[:]
    check_finite(name, whole, 0)
    return whole


def _matched(array: Array | None, main: Array) -> Array | None:
    """An array in the precision, library and device of X; what is on disk stays there."""
    if array is None or isinstance(array, Stored):
        return array
    if is_dask(array):
        return array.astype(main.dtype) if is_dask(main) else np.asarray(array, dtype=main.dtype)
    if isinstance(main, Stored) or is_dask(main):
        return to_numpy(array).astype(main.dtype, copy=False)
    return like(array, main)


def _with_ones(Z: Array | None, main: Array) -> Array:
    """The intercept's column of ones, then the covariates'."""
    if is_dask(main):
        import dask.array as da

        ones = da.ones((main.shape[0], 1), dtype=main.dtype, chunks=(main.chunks[0], 1))
        if Z is None:
            return ones
        Z = Z if is_dask(Z) else da.from_array(to_numpy(Z), chunks=(main.chunks[0], -1))
        return da.concatenate([ones, Z], axis=1).rechunk({1: -1})
    if isinstance(main, Stored):
        ones = np.ones((main.shape[0], 1), main.dtype)
        return ones if Z is None else np.hstack([ones, Z])
    ones = like(np.ones((main.shape[0], 1)), main)
    return ones if Z is None else namespace(main).concat([ones, like(Z, main)], axis=1)
