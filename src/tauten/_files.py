"""Files that are never half-written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file in one step: readers see the old one or the new one, never a part.

    The bytes go to a temporary file in the same folder, which then takes the name.

    Examples
    --------
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_whole(Path(folder.name) / "a.txt", b"hello").read_text()
    'hello'
    >>> folder.cleanup()
    """
    path = Path(path)
    handle, temporary = _open_beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private, this one is not
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return path


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if a file could not be written, before the work that makes its contents."""
    handle, temporary = _open_beside(Path(path))
    os.close(handle)
    os.unlink(temporary)


def _open_beside(path: Path) -> tuple[int, str]:
    """Open a temporary file in the folder of `path`."""
    if path.is_dir():
        raise IsADirectoryError(f"path must name a file; got the folder {str(path)!r}")
    try:
        return tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"path must lie in a folder that exists; got {str(path)!r}. Make the folder first"
        ) from error
    except OSError as error:
        raise type(error)(
            f"path must lie in a folder that can be written to; got {str(path)!r}: {error.strerror}"
        ) from error


def _umask() -> int:
    """The permissions that new files do not get; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
