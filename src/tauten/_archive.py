"""The container: text and arrays in a sealed zip, in numpy's npz layout.

Sealed means that the last bytes, the zip's comment, are the SHA-256 of all the others: any change
is seen before anything is parsed. A seal can be forged, so what is parsed is bounded by the file's
own size: members are stored, never compressed, and an array's header must agree with its bytes.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

KINDS = "biufUMm"  # numbers, strings and times: what an array in an archive may hold
SEAL = 64  # hexadecimal digits of a SHA-256
MAGIC = b"PK\x03\x04"
MEMBER = re.compile(r"array_\d+\.npy")
NAME_AT = 30  # where a zip archive has the name of its first member


Header = tuple[tuple[int, ...], bool, np.dtype[Any]]


class ArchiveError(ValueError):
    """An archive that was damaged, or not written here."""


def pack(name: str, text: str, arrays: Sequence[np.ndarray]) -> bytes:
    """Return the bytes of a sealed archive of a text, with its name, and arrays.

    The same contents make the same bytes.

    Examples
    --------
    >>> data = pack("notes.json", "{}", [np.ones(3)])
    >>> unpack("notes.json", data)
    ('{}', [array([1., 1., 1.])])
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # ZipInfo's own date, 1980, and not today's
        archive.writestr(zipfile.ZipInfo(name), text.encode())
        for k, array in enumerate(arrays):
            archive.writestr(zipfile.ZipInfo(_member(k)), _to_bytes(array))
        archive.comment = b"0" * SEAL
    return seal(buffer.getvalue())


def begins_with(data: bytes, name: str) -> bool:
    """Say whether some first bytes of a file are those of an archive of a text with that name."""
    return data.startswith(MAGIC) and data[NAME_AT : NAME_AT + len(name)] == name.encode()


def seal(data: bytes) -> bytes:
    """Return an archive with its last bytes replaced by the checksum of the others."""
    return data[:-SEAL] + hashlib.sha256(data[:-SEAL]).hexdigest().encode()


def unpack(name: str, data: bytes) -> tuple[str, list[np.ndarray]]:
    """Return the text and the arrays of an archive, checked."""
    if not data.startswith(MAGIC):
        raise ArchiveError("it is not a file written by tauten")
    if seal(data) != data:
        raise ArchiveError(
            "its checksum does not match: it was damaged or cut short, or was not written by tauten"
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_members(name, members, len(data))
        contents = [archive.read(member) for member in members]
    return contents[0].decode(), [_from_bytes(content) for content in contents[1:]]


def header(stream: IO[bytes]) -> Header:
    """Read the header of a .npy stream: shape, whether the order is Fortran's, dtype."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        found = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        found = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ArchiveError(f"an array has the unknown layout {version}")
    if any(length < 0 for length in found[0]):
        raise ArchiveError(f"an array claims the shape {found[0]!s:.80}")
    return found


def claimed_bytes(found: Header) -> int:
    """Bytes that the entries of an array take, by its header."""
    return math.prod(found[0]) * found[2].itemsize


def _member(k: int) -> str:
    return f"array_{k}.npy"


def _check_members(name: str, members: Sequence[zipfile.ZipInfo], size: int) -> None:
    names = [member.filename for member in members]
    expected = [name, *(_member(k) for k in range(len(names) - 1))]
    if names != expected:
        strange = next((n for n in names if n != name and not MEMBER.fullmatch(n)), "")
        raise ArchiveError(f"its members are not {name} and arrays {strange!r:.80}")
    if any(
        m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members
    ):
        raise ArchiveError("its members are compressed, which ours never are")
    if sum(member.file_size for member in members) > size:
        raise ArchiveError("its members claim to be larger than the file")


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
        raise ArchiveError(f"an array has the type {dtype!s:.40}, which it has no use for")
    rest = content[buffer.tell() :]
    if claimed_bytes(found) != len(rest):
        raise ArchiveError(f"an array claims the shape {shape!s:.80}, but has {len(rest)} bytes")
    return np.frombuffer(rest, dtype).reshape(shape).copy()
