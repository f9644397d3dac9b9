"""What a file may ask for: every claim of a header is checked before anything is allocated."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

DENSEST = 1100  # deflate, the densest packing in use, makes at most 1032 bytes of one
SMALL = 2**24  # bytes that any file may claim


class DataFileError(ValueError):
    """A file that cannot be read as data; its message says why, and what to do."""


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into a DataFileError that names it."""
    where = f"cannot read {os.fspath(path)!r}"
    try:
        yield
    except DataFileError as error:
        if str(error).startswith("cannot read "):
            raise
        raise DataFileError(f"{where}: {error}") from error
    except (FileNotFoundError, ImportError):  # both say what to do
        raise
    except MemoryError as error:
        raise DataFileError(f"{where}: it does not fit in memory") from error
    except Exception as error:  # readers of binary formats raise anything when a file is damaged
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataFileError(
            f"{where}: {why:.300}. Is it complete, and of the kind that its name says?"
        ) from error


def check_exists(path: str | os.PathLike[str]) -> None:
    """Raise unless there is such a file or folder."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file or folder {os.fspath(path)!r}")


def check_claim(what: str, claimed: int, stored: int) -> None:
    """Raise if an array claims more bytes than what is stored could ever hold."""
    if claimed > max(SMALL, DENSEST * stored):
        raise DataFileError(
            f"{what} claims to be {size(claimed)} large, but only {size(stored)} are stored"
        )


def check_memory(what: str, needed: int) -> None:
    """Raise if an array that must be read as a whole is larger than the memory."""
    memory = _memory()
    if memory is not None and needed > memory:
        raise DataFileError(
            f"{what} needs {size(needed)} of memory and there are {size(memory)}. Arrays in .npy, "
            f".h5 and .zarr files are read piece by piece"
        )


def _memory() -> int | None:
    """Bytes of memory of the machine, where the system says so."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def size(count: float) -> str:
    """Say a number of bytes as people do.

    Examples
    --------
    >>> size(999), size(8e12)
    ('999 bytes', '8.0 TB')
    """
    units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    while count >= 1000 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.0f} bytes" if units[0] == "bytes" else f"{count:.1f} {units[0]}"


def missing_extra(library: str, what: str) -> ImportError:
    """The error of a format whose library is not installed."""
    return ImportError(f'{what} need {library}: pip install "tauten[io]"')
