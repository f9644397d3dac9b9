"""The container: text and arrays in a sealed zip, in numpy's npz layout.

Sealed means that the last bytes, the zip's comment, are the SHA-256 of all the others: any change
is seen before anything is parsed. A seal can be forged, so what is parsed is bounded by the file's
own size: members are stored, never compressed, and an array's header must agree with its bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Sequence

import numpy as np

from .npy import claimed_bytes, header

TEXT = "model.json"
KINDS = "biufUMm"  # numbers, strings and times: what an array in a file may hold
SEAL = 64  # hexadecimal digits of a SHA-256
MAGIC = b"PK\x03\x04"
NAME_AT = 30  # where a zip archive has the name of its first member


class ModelFileError(ValueError):
    """A file that holds no model, or one that this version cannot load."""


def pack(text: str, arrays: Sequence[np.ndarray]) -> bytes:
    """Return the bytes of a sealed archive; the same contents make the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # ZipInfo's own date, 1980, and not today's
        archive.writestr(zipfile.ZipInfo(TEXT), text.encode())
        for k, array in enumerate(arrays):
            archive.writestr(zipfile.ZipInfo(_member(k)), _to_bytes(array))
        archive.comment = b"0" * SEAL
    return seal(buffer.getvalue())


def is_model(path: str | os.PathLike[str]) -> bool:
    """Say whether a file looks like one written by :func:`tauten.save`, by its first bytes.

    Examples
    --------
    >>> is_model("no such file")
    False
    """
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(NAME_AT + len(TEXT))
    return start.startswith(MAGIC) and start[NAME_AT:] == TEXT.encode()


def seal(data: bytes) -> bytes:
    """Return an archive with its last bytes replaced by the checksum of the others."""
    return data[:-SEAL] + hashlib.sha256(data[:-SEAL]).hexdigest().encode()


def unpack(data: bytes) -> tuple[str, list[np.ndarray]]:
    """Return the text and the arrays of an archive, checked."""
    if not data.startswith(MAGIC):
        raise ModelFileError("it is not a file written by tauten.save")
    if seal(data) != data:
        raise ModelFileError(
            "its checksum does not match: it was damaged or cut short, or was not written by "
            "tauten.save"
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_members(members, len(data))
        contents = [archive.read(member) for member in members]
    return contents[0].decode(), [_from_bytes(content) for content in contents[1:]]


def _member(k: int) -> str:
    return f"array_{k}.npy"


def _check_members(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    names = [member.filename for member in members]
    expected = [TEXT, *(_member(k) for k in range(len(names) - 1))]
    if names != expected:
        strange = next((n for n in names if not re.fullmatch(r"model\.json|array_\d+\.npy", n)), "")
        raise ModelFileError(f"its members are not those of a model {strange!r:.80}")
    if any(
        m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members
    ):
        raise ModelFileError("its members are compressed, which those of a model never are")
    if sum(member.file_size for member in members) > size:
        raise ModelFileError("its members claim to be larger than the file")


def _to_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    plain = np.asarray(array, order="C").view(array.dtype.str)  # without pandas's notes in a dtype
    np.lib.format.write_array(buffer, plain, allow_pickle=False)
    return buffer.getvalue()


def _from_bytes(content: bytes) -> np.ndarray:
    """Read an array; nothing is allocated before its header agrees with what is there."""
    buffer = io.BytesIO(content)
    shape, fortran, dtype = found = header(buffer)
    if dtype.kind not in KINDS or fortran:
        raise ModelFileError(f"an array has the type {dtype!s:.40}, which a model has no use for")
    rest = content[buffer.tell() :]
    if claimed_bytes(found) != len(rest):
        raise ModelFileError(f"an array claims the shape {shape!s:.80}, but has {len(rest)} bytes")
    return np.frombuffer(rest, dtype).reshape(shape).copy()
