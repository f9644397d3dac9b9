"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file beside its place, wait until the disk has it, and move it there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/a.txt", b"whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = os.path.realpath(path)  # a link stays a link
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"cannot write {os.fspath(path)!r}: there is no folder {folder!r}")
    if os.path.isdir(target):
        raise IsADirectoryError(f"cannot write {os.fspath(path)!r}: it is a folder; give a file")
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    try:
        # os.open, not tempfile: permissions are those of any new file of the user
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
