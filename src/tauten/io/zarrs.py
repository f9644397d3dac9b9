"""Zarr folders, opened and not read. Only codecs that cannot run code are let through."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from .limits import DataFileError, check_claim, missing_extra

METADATA = {".zarray", ".zmetadata", "zarr.json"}
CODECS = {  # numcodecs knows "pickle" too
    *("blosc", "bz2", "crc32", "crc32c", "gzip", "lz4", "lzma", "shuffle", "zlib", "zstd"),
    *("bitround", "bytes", "delta", "fixedscaleoffset", "sharding_indexed", "transpose"),
    *("vlen-utf8", "quantize", "endian"),
}


def open_zarr(path: str) -> dict[str, Any]:
    """Open the array of a Zarr folder, or the arrays of its groups by their paths."""
    try:
        import zarr
    except ImportError as error:
        raise missing_extra("zarr", "Zarr folders") from error
    stored = 0
    for folder, _, files in os.walk(path):
        for file in files:
            stored += os.path.getsize(os.path.join(folder, file))
            if file in METADATA:
                _check_codecs(os.path.join(folder, file))
    root = zarr.open(path, mode="r")
    found = {"": root} if hasattr(root, "chunks") else dict(_arrays(root, ""))
    for name, array in found.items():
        if array.dtype == object:
            raise DataFileError(f"array {name!r} holds Python objects: save numbers instead")
        check_claim(f"array {name!r}", array.nbytes, stored)
    return found


def _arrays(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, array in group.arrays():
        yield prefix + name, array
    for name, child in group.groups():
        yield from _arrays(child, f"{prefix}{name}/")


def _check_codecs(path: str) -> None:
    with open(path, "rb") as file:
        strange = set(_codecs(json.load(file))) - CODECS
    if strange:
        raise DataFileError(f"it is packed by {sorted(strange)[0]!r:.80}, which is not allowed")


def _codecs(tree: Any, inside: bool = False) -> Iterator[str]:
    """Names of all the codecs in a tree of metadata, nested ones included."""
    if isinstance(tree, list):
        for item in tree:
            yield from _codecs(item, inside)
    elif isinstance(tree, dict):
        if inside:
            name = str(tree.get("id", tree.get("name"))).lower()
            yield name.removeprefix("numcodecs.")
        for key, value in tree.items():
            if key != "attributes":
                packing = key in {"codecs", "index_codecs", "filters", "compressor"}
                yield from _codecs(value, packing)
