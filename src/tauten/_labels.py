"""Names of modes and coordinates along them: the only file that knows xarray.

Computations see plain arrays. What an ``xarray.DataArray`` says about its modes is read off where
it comes in, and put back on the coefficients where they go out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Coordinates = Mapping[str, tuple[tuple[str, ...], np.ndarray]]


def is_labelled(value: Any) -> bool:
    """Say whether an array is an ``xarray.DataArray``, without importing xarray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(value, xarray.DataArray)


@dataclass(frozen=True)
class Labels:
    """Names of the modes of a tensor, and coordinates along them.

    Attributes
    ----------
    dims : tuple of str
        One name per mode.
    coords : mapping of str to (dims, array)
        Each coordinate with the modes that it runs along.
    """

    dims: tuple[str, ...]
    coords: Coordinates

    @classmethod
    def of(cls, value: Any, *, first: int = 1) -> Labels | None:
        """Labels of an array's modes from axis `first` on; None where it carries none."""
        if not is_labelled(value):
            return None
        dims = tuple(str(dim) for dim in value.dims[first:])
        coords = {
            str(name): (tuple(map(str, c.dims)), _plain(c.values))
            for name, c in value.coords.items()
            if c.dims and set(map(str, c.dims)) <= set(dims)
        }
        return cls(dims, coords)

    @classmethod
    def numbered(cls, name: str, count: int) -> Labels:
        """Labels of modes that came without: ``name_1``, ``name_2``, ..."""
        return cls(tuple(f"{name}_{k}" for k in range(1, count + 1)), {})

    def prefixed(self, prefix: str, taken: Labels) -> Labels:
        """The same labels; a name that is taken gets a prefix."""
        names = {*taken.dims, *taken.coords}

        def free(name: str) -> str:
            return f"{prefix}_{name}" if name in names else name

        return Labels(
            tuple(free(dim) for dim in self.dims),
            {free(name): (tuple(map(free, dims)), c) for name, (dims, c) in self.coords.items()},
        )

    def first(self, count: int) -> Labels:
        """Labels of the first modes."""
        dims = self.dims[:count]
        coords = {name: c for name, c in self.coords.items() if set(c[0]) <= set(dims)}
        return Labels(dims, coords)

    def joined(self, other: Labels) -> Labels:
        """Labels of the modes of this tensor followed by those of another."""
        return Labels(self.dims + other.dims, {**self.coords, **other.coords})

    def wrap(self, array: np.ndarray) -> Any:
        """Return an array as an ``xarray.DataArray`` with these labels."""
        import xarray

        return xarray.DataArray(array, dims=self.dims, coords=dict(self.coords))

    def check(self, name: str, other: Labels | None) -> None:
        """Raise unless the modes of an array have these names and, where given, coordinates."""
        if other is None:
            return
        if other.dims != self.dims:
            raise ValueError(
                f"{name} must have the modes {self.dims} after the samples, as in fit; got "
                f"{other.dims}. Transpose or rename its dimensions"
            )
        for dim in self.dims:
            mine, theirs = (labels.coords.get(dim, (None, None))[1] for labels in (self, other))
            if mine is not None and theirs is not None and not np.array_equal(mine, theirs):
                raise ValueError(
                    f"{name} must have the coordinates of fit along {dim!r}, in the same order; "
                    f"reindex it"
                )


def coefficient_labels(
    X: Any, y: Any, orders: tuple[int, int], classes: np.ndarray | None = None
) -> Labels | None:
    """Labels of a coefficient tensor, covariate modes first; None where X and y carry none.

    Parameters
    ----------
    X, y : array-like
        As given to fit.
    orders : tuple of int
        Number of covariate modes and of response modes.
    classes : array, optional
        Labels along the one response mode, where it holds classes.
    """
    covariate, response = Labels.of(X), Labels.of(y)
    if covariate is None and response is None:
        return None
    covariate = covariate or Labels.numbered("covariate", orders[0])
    if classes is not None and orders[1]:
        response = Labels(("class",), {"class": (("class",), _plain(classes))})
    response = response or Labels.numbered("response", orders[1])
    return covariate.joined(response.prefixed("response", covariate))


def _plain(values: np.ndarray) -> np.ndarray:
    """Strings as numpy's own, so that they can be compared and saved; anything else as it is."""
    if values.dtype == object and all(isinstance(v, str) for v in values.flat):
        return values.astype(str)
    return values
