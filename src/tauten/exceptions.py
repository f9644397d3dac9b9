"""Warnings that the library gives; docs/warnings.md says what each means and what to do."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

__all__ = ["ChunksWarning", "IntervalsWarning", "NotConvergedWarning"]


class NotConvergedWarning(ConvergenceWarning):
    """A fit stopped before it settled; ``model.result_.reason`` says why.

    Examples
    --------
    >>> import warnings
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = tt.TensorRegressor(1, init="random", solver="newton:n_iter=1").fit(
    ...         data.X, data.y
    ...     )
    >>> caught[0].category.__name__
    'NotConvergedWarning'
    """


class IntervalsWarning(ConvergenceWarning):
    """Standard errors or confidence intervals that mean less than they should.

    Examples
    --------
    >>> import warnings
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(1).fit(data.X, data.y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = model.confidence_intervals(data.X, 2 * data.y)  # not the data of the fit
    >>> caught[0].category.__name__
    'IntervalsWarning'
    """


class ChunksWarning(DataConversionWarning):
    """A dask array is chunked in a way that makes its workers exchange data.

    Examples
    --------
    >>> import warnings
    >>> import tauten as tt
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", tt.exceptions.ChunksWarning)  # rather fail than be slow
    """
