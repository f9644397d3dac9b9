"""Arrays read some samples at a time: numpy memmaps, HDF5 datasets, zarr arrays, many integers."""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

PART = 2**24  # bytes read at a time where nothing else says how many
AT_ONCE = 2**29  # bytes of floats that integers in memory are turned into as a whole

State = dict[str, tuple[int, int]]  # size and time of change of each file


class Stored:
    """An array on disk. Slices and increasing indices along axis 0 give floats in memory.

    A subclass says how consecutive samples are read, and which files they are in.

    Parameters
    ----------
    array : object
        As the library opened it.

    Attributes
    ----------
    shape, ndim, dtype
        Of the array; integers are given out as double precision.
    chunk : int
        Samples that the file stores together: reading one reads them all.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = tuple(int(size) for size in array.shape)
        self.ndim = len(self.shape)
        self.raw = np.dtype(array.dtype)
        single = self.raw.kind == "f" and self.raw.itemsize == 4
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.chunk = self._file_chunk()
        self._state = self.state()

    @property
    def row_bytes(self) -> int:
        """Bytes of a sample in memory."""
        return self.dtype.itemsize * math.prod(self.shape[1:])

    @property
    def raw_row_bytes(self) -> int:
        """Bytes of a sample on disk, if it is held as it is."""
        return self.raw.itemsize * math.prod(self.shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of them all."""
        return self.shape[0] * self.row_bytes

    def __getitem__(self, rows: Any) -> np.ndarray:
        rows = rows[0] if isinstance(rows, tuple) else rows  # array[rows, ...]
        if isinstance(rows, slice):
            low, high, _ = rows.indices(self.shape[0])
            return self.read(low, high)
        return self._take(np.asarray(rows))

    def room(self, rows: int) -> np.ndarray:
        """Memory for so many samples."""
        return np.empty((rows, *self.shape[1:]), self.dtype)

    def read(self, low: int, high: int, room: np.ndarray | None = None) -> np.ndarray:
        """Return samples low to high, floats, in memory that was used before if there is some.

        New memory costs the system more than the copy of a file that it holds already.
        """
        block = self.room(high - low) if room is None else room[: high - low]
        if low == high:  # h5py before 3.12 divides by zero
            return block
        try:
            self._read(low, high, block)
        except (OSError, ValueError, RuntimeError) as error:
            raise OSError(
                f"samples {low} to {high} of {self} could not be read: {error}. Was the file cut "
                f"short, or changed, since it was opened?"
            ) from error
        return block

    def _take(self, rows: np.ndarray) -> np.ndarray:
        """Some samples, by increasing indices; those the file stores together are read once."""
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        groups = rows // self.chunk
        for group in np.unique(groups):
            places = np.flatnonzero(groups == group)
            low, high = int(rows[places[0]]), int(rows[places[-1]]) + 1
            out[places] = self.read(low, high)[rows[places] - low]
        return out

    def parts(self) -> Iterator[np.ndarray]:
        """The whole array, a part at a time."""
        step = max(1, PART // max(self.row_bytes * self.chunk, 1)) * self.chunk
        for low in range(0, self.shape[0], step):
            yield self.read(low, min(low + step, self.shape[0]))

    def touched(self, rows: np.ndarray) -> int:
        """How many samples are read to get some of them."""
        return min(self.shape[0], len(np.unique(rows // self.chunk)) * self.chunk)

    def check_unchanged(self) -> None:
        """Raise if a file is not what it was when the array was first seen."""
        state = self.state()
        if state != self._state:
            changed = sorted(
                name for name in {*state, *self._state} if state.get(name) != self._state.get(name)
            )
            raise OSError(
                f"{self} changed while it was in use ({changed[0]}): the sums of one pass would "
                f"not be of the same samples as those of the next. Fit a copy that stays as it is"
            )

    def state(self) -> State:
        """Sizes and times of change of the files."""
        found = {}
        for path in self._files():
            stat = path.stat()
            found[str(path)] = (stat.st_size, stat.st_mtime_ns)
        return found

    def _file_chunk(self) -> int:
        return int(self.array.chunks[0]) if self.array.chunks else 1

    def _read(self, low: int, high: int, block: np.ndarray) -> None:
        block[...] = self.array[low:high]

    def _files(self) -> list[Path]:
        raise NotImplementedError


class Mapped(Stored):
    """A numpy memmap, read through its file.

    Pages that are mapped count as memory of the process, and a page beyond the end of a file that
    was cut short kills it; a read does neither. A mapping with changes of its own, or one that is
    not the file's order, is read as it is.
    """

    def __init__(self, array: np.memmap) -> None:
        self._path = Path(os.fspath(array.filename)) if array.filename is not None else None
        base = _mapping(array)
        start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
        place = np.frombuffer(base, np.uint8).ctypes.data if base is not None else 0
        self._offset = start + array.__array_interface__["data"][0] - place
        plain = base is not None and self._path is not None and array.mode != "c"
        self._plain = plain and array.flags.c_contiguous
        super().__init__(array)

    def _read(self, low: int, high: int, block: np.ndarray) -> None:
        if not self._plain or self._path is None:
            super()._read(low, high, block)
            return
        same = self.raw == self.dtype
        raw = block if same else np.empty(block.shape, self.raw)
        with self._path.open("rb", buffering=0) as file:
            _fill(raw, file, self._offset + low * self.raw_row_bytes)
        if not same:
            block[...] = raw

    def _file_chunk(self) -> int:
        return 1

    def _files(self) -> list[Path]:
        return [] if self._path is None else [self._path]

    def __str__(self) -> str:
        return f"the memmap of {self._path}"


def _mapping(array: Any) -> mmap.mmap | None:
    """The memory map that an array is a view of."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.base if isinstance(array, np.ndarray) else None
    return array


def _fill(block: np.ndarray, file: FileIO, offset: int) -> None:
    """Fill a block with the bytes of a file from an offset on; other threads run meanwhile."""
    file.seek(offset)
    view, got = memoryview(block.data).cast("B"), 0
    while got < len(view):
        count = file.readinto(view[got:])
        if not count:
            raise OSError(f"the file ends {len(view) - got} bytes too early")
        got += count


class Dataset(Stored):
    """A dataset of an HDF5 file opened by h5py.

    While h5py reads, no other thread of Python runs: nothing is computed meanwhile. So a dataset
    whose file holds its numbers as they are, sample after sample, is read through its file.
    """

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        self._plain = self._holds_numbers()

    def _holds_numbers(self) -> bool:
        array = self.array
        forgotten = array.file.userblock_size  # by old HDF5 libraries, in the places of chunks
        whole = array.chunks is None or (array.chunks[1:] == array.shape[1:] and not forgotten)
        bare = self.raw == self.dtype and array.id.get_create_plist().get_nfilters() == 0
        written = array.file.mode == "r"  # else the last changes may not be in the file yet
        return bool(whole and bare and written)

    def _read(self, low: int, high: int, block: np.ndarray) -> None:
        if self.raw != self.dtype:
            super()._read(low, high, block)
        elif not self._plain or not self._read_numbers(low, high, block):
            self.array.read_direct(block, np.s_[low:high])

    def _read_numbers(self, low: int, high: int, block: np.ndarray) -> bool:
        """Read what the file holds: nothing where nothing was written, or it is in another file."""
        together = self.shape[0] if self.array.chunks is None else self.chunk
        with self._files()[0].open("rb", buffering=0) as file:
            start = low
            while start < high:
                first = start - start % together
                end = min(first + together, high)
                place = self._place(first)
                if place is None:
                    return False
                offset = place + (start - first) * self.row_bytes
                _fill(block[start - low : end - low], file, offset)
                start = end
        return True

    def _place(self, first: int) -> Any:
        """Where in the file the samples begin that are stored together from this one on."""
        if self.array.chunks is None:
            return self.array.id.get_offset()
        corner = (first, *(0,) * (self.ndim - 1))
        return self.array.id.get_chunk_info_by_coord(corner).byte_offset

    def _files(self) -> list[Path]:
        return [Path(self.array.file.filename)]

    def __str__(self) -> str:
        return f"the dataset {self.array.name!r} of {self.array.file.filename}"


class Zarr(Stored):
    """A zarr array, in a directory or in any other store."""

    def _files(self) -> list[Path]:
        root = getattr(self.array.store, "root", None)  # None: not in a directory of this machine
        if root is None:
            return []
        folder = Path(root) / self.array.path
        return [path for path in folder.rglob("*") if path.is_file()]

    def __str__(self) -> str:
        return f"the zarr array {self.array.path or '/'!r} of {self.array.store}"


class Integers(Stored):
    """Integers in memory, turned into floats a part at a time: as a whole they may be 8 times."""

    def _file_chunk(self) -> int:
        return 1

    def _files(self) -> list[Path]:
        return []

    def __str__(self) -> str:
        return f"the array of {self.raw}"


def stored(value: Any) -> Stored | None:
    """Return an array that is read by parts, or None if the value is not one."""
    if isinstance(value, Stored):
        return value
    if isinstance(value, np.memmap):
        return Mapped(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and 8 * value.size > AT_ONCE:
        return Integers(value)
    h5py, zarr = (sys.modules.get(name) for name in ("h5py", "zarr"))
    if h5py is not None and isinstance(value, h5py.Dataset):
        return Dataset(value)
    if zarr is not None and isinstance(value, zarr.Array):
        return Zarr(value)
    return None
