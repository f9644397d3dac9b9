"""What tells the file of a model from others."""

from __future__ import annotations

import os

from .._archive import NAME_AT, begins_with

TEXT = "model.json"


class ModelFileError(ValueError):
    """A file that holds no model, or one that this version cannot load."""


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
        return begins_with(file.read(NAME_AT + len(TEXT)), TEXT)
