"""Arrays in a file by name: the mapping that every binary format fills in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .limits import reading


class Arrays(Mapping[str, Any]):
    """The arrays of a file. Each is read, or opened, when asked for.

    Parameters
    ----------
    path : str
        Of the file, for messages.
    members : mapping
        What the format knows of each array before it is read.
    """

    def __init__(self, path: str, members: Mapping[str, Any]) -> None:
        self.path = path
        self.members = members

    def read(self, key: str, member: Any) -> Any:
        """Read or open an array."""
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        member = self.members[key]
        with reading(self.path):
            return self.read(key, member)

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)
