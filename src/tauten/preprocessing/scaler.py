"""Robust scaling of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.metaestimators import available_if

from .._checks import check_samples, check_tensor
from .._labels import is_labelled
from .._median import by_stripes, observed_medians
from ..robust.thresholds import MAD
from .base import TensorTransformer


def _takes_tables(scaler: TensorScaler) -> bool:
    return len(getattr(scaler, "sample_shape_", (1,))) == 1


class TensorScaler(OneToOneFeatureMixin, TensorTransformer):
    """Centre by medians and scale by median absolute deviations, which wild values do not move.

    ``(X - center_) / scale_``, with a centre and a scale for each entry, for each index of some
    modes, or one of each for all. nan is a missing value: left out, and left as it is.

    Parameters
    ----------
    per : "entry", "tensor", int or sequence of int
        What has a centre and a scale of its own: each entry of the samples, the whole tensor, or
        each index along these modes. Modes count from 1: mode k is axis k of X.
    with_centering, with_scaling : bool
        Whether to centre, and whether to scale.

    Attributes
    ----------
    center_, scale_ : array
        They broadcast against a sample: of length 1 along the modes that share them. The scale is
        1.4826 times the median absolute deviation, the standard deviation of normal data. Where
        that is 0, as more than half of the values are equal, it is that of the other values; where
        there are none, 1: constant entries become 0.

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> X = np.random.default_rng(0).normal(5, 3, size=(1001, 4, 2))
    >>> X[0] = 1e9
    >>> scaled = tt.TensorScaler(per=2).fit_transform(X)
    >>> float(scaled[1:].std())
    1.0
    """

    def __init__(
        self, per: Any = "entry", *, with_centering: bool = True, with_scaling: bool = True
    ) -> None:
        self.per = per
        self.with_centering = with_centering
        self.with_scaling = with_scaling

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find centres and scales.

        Parameters
        ----------
        X : array (n, p_1, ..., p_d)
            nan stands for a missing value.
        y : None
            Ignored; there for scikit-learn's pipelines.

        Returns
        -------
        self
        """
        shared = _shared_axes(self.per, np.ndim(check_tensor("X", X, missing=True, min_ndim=2)))
        tensors = self._learn(X)
        center = _median(tensors, shared)
        self.center_ = np.where(np.isnan(center), 0, center)[0]
        self.scale_ = _spread(tensors - self.center_, shared, self.center_)[0]
        if not self.with_centering:
            self.center_ = np.zeros_like(self.center_)
        if not self.with_scaling:
            self.scale_ = np.ones_like(self.scale_)
        return self

    def transform(self, X: Any) -> Any:
        """Return ``(X - center_) / scale_``; of an ``xarray.DataArray``, one with its labels."""
        scaled = (check_samples(self, X, missing=True) - self.center_) / self.scale_
        return X.copy(data=scaled) if is_labelled(X) else scaled

    def inverse_transform(self, X: Any) -> Any:
        """Return ``X * scale_ + center_``: undo :meth:`transform`."""
        raw = check_samples(self, X, missing=True) * self.scale_ + self.center_
        return X.copy(data=raw) if is_labelled(X) else raw

    @available_if(_takes_tables)  # type: ignore[untyped-decorator] # scikit-learn has no types
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of a table; tensors have none.

        With them, ``set_output(transform="pandas")`` works on tables.
        """
        return super().get_feature_names_out(input_features)


def _shared_axes(per: Any, ndim: int) -> tuple[int, ...]:
    """Axes along which a centre is shared: the samples', and the modes not asked for."""
    if isinstance(per, str) and per in {"entry", "tensor"}:
        return (0,) if per == "entry" else tuple(range(ndim))
    modes = [per] if isinstance(per, Integral) else per
    whole = isinstance(modes, Sequence) and all(isinstance(m, Integral) for m in modes)
    if isinstance(per, (str, bool)) or not whole:
        raise TypeError(f"per must be 'entry', 'tensor', a mode or several modes; got {per!r}")
    if not modes or not all(1 <= int(mode) < ndim for mode in modes):
        raise ValueError(
            f"per must name modes from 1 to {ndim - 1}: mode k is axis k of X, axis 0 holds the "
            f"samples; got {per!r}"
        )
    return tuple(axis for axis in range(ndim) if axis not in modes)


def _median(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Median of what is not missing; nan where nothing is left."""
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(values.shape)]
    rows = values.transpose(*axes, *kept).reshape(-1, math.prod(shape))
    middle = by_stripes(lambda some: observed_medians(rows[:, some]), rows.shape[1])
    return middle.reshape(shape)


def _spread(deviations: np.ndarray, axes: tuple[int, ...], center: np.ndarray) -> np.ndarray:
    """Scale from deviations: see :class:`TensorScaler`.

    A deviation of the size of rounding errors counts as none: a computed constant is a constant.
    """
    sizes = np.abs(deviations)
    limits = np.finfo(sizes.dtype)
    sizes[sizes <= 8 * limits.eps * np.abs(center) + limits.tiny] = 0
    spread = _median(sizes, axes)
    if not np.all(spread > 0):
        others = _median(np.where(sizes > 0, sizes, np.nan), axes)
        spread = np.where(spread > 0, spread, others)
    return np.where(np.isnan(spread), 1, MAD * spread).astype(sizes.dtype, copy=False)
