"""Tensors of tables and of series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from .._checks import check_number, check_same_length, check_samples, check_tensor
from .._labels import is_labelled
from .base import TensorTransformer


class Tensorize(TensorTransformer):
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
