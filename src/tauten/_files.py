"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file in one step: readers see the old one or the new one, never a part.

    The bytes go to a temporary file beside it, and to the disk, before that takes the name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_whole(f"{folder}/a.txt", b"whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary, handle = _open_beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError):  # a full disk, a quota, a lost drive
            reason = error.strerror or error
            why = f"{reason}: nothing was written, and a file that was there is unchanged"
            raise OSError(error.errno, why, str(path)) from error
        raise
    return Path(path)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if a file could not be written, before the work that makes its contents."""
    temporary, handle = _open_beside(Path(os.path.realpath(path)))
    os.close(handle)
    os.unlink(temporary)


def _open_beside(path: Path) -> tuple[Path, int]:
    """Open a temporary file in the folder of `path`, with the permissions of any new file."""
    if path.is_dir():
        raise IsADirectoryError(f"path must name a file; got the folder {str(path)!r}")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"path must lie in a folder that exists; got {str(path)!r}. Make the folder first"
        ) from error
    except OSError as error:
        raise type(error)(
            f"path must lie in a folder that can be written to; got {str(path)!r}: {error.strerror}"
        ) from error
