"""Steps of a pipeline before the model: robust scaling of tensors, and making tensors of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ._checks import check_number, check_same_length, check_samples, check_tensor
from ._labels import Labels, is_labelled
from .robust.thresholds import MAD


class _TensorTransformer(TransformerMixin, BaseEstimator):
    """What the steps share: samples checked, their shape and the names of their modes kept."""

    def _learn(self, X: Any) -> np.ndarray:
        tensors = check_tensor("X", X, missing=True, min_ndim=2)
        validate_data(self, X, skip_check_array=True)
        self.sample_shape_ = tensors.shape[1:]
        self.labels_ = Labels.of(X)
        return tensors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _takes_tables(scaler: TensorScaler) -> bool:
    return len(getattr(scaler, "sample_shape_", (1,))) == 1


class TensorScaler(OneToOneFeatureMixin, _TensorTransformer):
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
    empty = np.isnan(values).all(axis=axes, keepdims=True)
    median = np.nanmedian(np.where(empty, 0, values), axis=axes, keepdims=True)
    return np.where(empty, np.nan, median).astype(values.dtype, copy=False)


def _spread(deviations: np.ndarray, axes: tuple[int, ...], center: np.ndarray) -> np.ndarray:
    """Scale from deviations: see :class:`TensorScaler`.

    A deviation of the size of rounding errors counts as none: a computed constant is a constant.
    """
    sizes = np.abs(deviations)
    limits = np.finfo(sizes.dtype)
    sizes[sizes <= 8 * limits.eps * np.abs(center) + limits.tiny] = 0
    spread = _median(sizes, axes)
    others = _median(np.where(sizes > 0, sizes, np.nan), axes)
    spread = MAD * np.where(spread > 0, spread, others)
    return np.where(np.isnan(spread), 1, spread).astype(sizes.dtype, copy=False)


class Tensorize(_TensorTransformer):
    """Make tensors of the rows of a table, and samples of the lags of a time series.

    First each sample is reshaped, row by row as numpy does; then, with `lags`, each sample becomes
    the stack of itself and the samples before it.

    Parameters
    ----------
    shape : sequence of int, optional
        Mode sizes to reshape each sample to; one of them may be -1. None leaves samples alone.
    lags : int, optional
        How many successive samples to stack along a new first mode, the newest first. The first
        ``lags - 1`` samples have no full history and are dropped, so that n becomes
        ``n - lags + 1``: see :meth:`pairs` for the responses that go with it.

    Examples
    --------
    A table whose rows are images:

    >>> import numpy as np
    >>> import tauten as tt
    >>> tt.Tensorize((8, -1)).fit_transform(np.ones((10, 64))).shape
    (10, 8, 8)

    A series of matrices, each predicted from the two before it:

    >>> rng = np.random.default_rng(0)
    >>> series = rng.normal(size=(200, 3, 2))
    >>> step = tt.Tensorize(lags=2)
    >>> X, y = step.pairs(series)
    >>> X.shape, y.shape
    ((198, 2, 3, 2), (198, 3, 2))
    >>> model = tt.TensorRegressor(1).fit(X, y)
    >>> model.predict(step.transform(series)[-1:]).shape  # the next matrix, not yet seen
    (1, 3, 2)
    """

    def __init__(self, shape: Any = None, *, lags: int | None = None) -> None:
        self.shape = shape
        self.lags = lags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that samples can be reshaped and stacked.

        Parameters
        ----------
        X : array (n, p) or (n, p_1, ..., p_d)
        y : None
            Ignored; there for scikit-learn's pipelines.

        Returns
        -------
        self
        """
        if self.lags is not None:
            check_number("lags", self.lags, integer=True)
        sizes = check_tensor("X", X, missing=True, min_ndim=2).shape[1:]
        shape = sizes if self.shape is None else _resolve(self.shape, sizes)
        self._learn(X)
        self.shape_ = shape
        return self

    def transform(self, X: Any) -> Any:
        """Return the tensors.

        Parameters
        ----------
        X : array (n, p) or (n, p_1, ..., p_d)

        Returns
        -------
        array (n, *shape), or (n - lags + 1, lags, *shape)
            An ``xarray.DataArray`` where X is one and keeps its modes; the mode ``lag`` counts
            from 0, the newest.
        """
        samples = check_samples(self, X, missing=True)
        tensors = samples.reshape(-1, *self.shape_)
        if self.lags is not None:
            tensors = _windows(tensors, self.lags)
        kept = is_labelled(X) and self.shape is None
        return self._relabel(X, tensors) if kept else tensors

    def pairs(self, series: Any, target: Any = None, *, horizon: int = 1) -> tuple[Any, Any]:
        """Fit, and return samples with the responses that follow them, for an autoregression.

        Parameters
        ----------
        series : array (n, p_1, ..., p_d)
            Samples in the order of time.
        target : array (n, ...), optional
            What is to be predicted; the series itself by default.
        horizon : int
            How many steps ahead.

        Returns
        -------
        X : array (m, lags, *shape)
            Without the last ones, whose response is not known yet; ``m = n - lags + 1 - horizon``.
        y : array (m, ...)
            ``y[i]`` comes `horizon` steps after the newest sample in ``X[i]``.
        """
        check_number("horizon", horizon, integer=True)
        target = series if target is None else target
        target = target if hasattr(target, "shape") else check_tensor("target", target)
        X = self.fit(series).transform(series)
        check_same_length(series, target, "target")
        first = target.shape[0] - X.shape[0] + horizon
        if first >= target.shape[0]:
            raise ValueError(
                f"series must have more than lags - 1 + horizon = {first} samples; got "
                f"{target.shape[0]}"
            )
        return X[:-horizon], target[first:]

    def _relabel(self, X: Any, tensors: np.ndarray) -> Any:
        if self.lags is None:
            return X.copy(data=tensors)
        newest = X.isel({X.dims[0]: slice(self.lags - 1, None)})
        return newest.expand_dims(lag=np.arange(self.lags), axis=1).copy(data=tensors)


def _resolve(shape: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Mode sizes with -1 filled in, that hold as many entries as a sample."""
    given = shape if isinstance(shape, Sequence) else [shape]
    if not given or not all(isinstance(p, Integral) and (p == -1 or int(p) > 0) for p in given):
        raise ValueError(f"shape must be positive mode sizes, one perhaps -1; got {shape!r}")
    modes = [int(p) for p in given]
    entries, known = math.prod(sizes), math.prod(p for p in modes if p != -1)
    if modes.count(-1) == 1 and entries % known == 0:
        modes[modes.index(-1)] = entries // known
    if -1 in modes or math.prod(modes) != entries:
        raise ValueError(
            f"shape must hold the {entries} entries of a sample of shape {sizes}; got {shape!r}"
        )
    return tuple(modes)


def _windows(samples: np.ndarray, lags: int) -> np.ndarray:
    """Each sample with those before it, newest first, along a new axis 1."""
    if samples.shape[0] < lags:
        raise ValueError(f"X must have at least lags={lags} samples; got {samples.shape[0]}")
    n = samples.shape[0] - lags + 1
    return np.stack([samples[lags - 1 - k : lags - 1 - k + n] for k in range(lags)], axis=1)
