"""Pictures of the coefficient tensor and of its factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import to_numpy
from ..inference import Intervals
from ..tucker import Tucker
from ._axes import (
    PALETTE,
    fitted,
    frame,
    ink,
    integer_axis,
    legend,
    mode_names,
    mode_places,
    new_axes,
    plain_text,
)
from ._image import MOST_BARS, Look, draw_tensor

SIGNED = "RdBu_r"  # blue below zero, red above; told apart by all colour-blind readers


def coefficients(
    model: Any,
    *,
    ax: Any = None,
    names: Sequence[str] | None = None,
    intervals: Intervals | None = None,
    limit: float | None = None,
    max_slices: int = 16,
) -> Any:
    """Draw the coefficient tensor: bars for a vector, an image for a matrix, slices beyond.

    Parameters
    ----------
    model : fitted estimator, Tucker or array
    ax : Axes, optional
    names : sequence of str, optional
        Of the modes.
    intervals : Intervals, optional
        From ``model.confidence_intervals``: drawn as whiskers on a vector. In an image, entries
        whose interval holds zero are left blank.
    limit : float, optional
        End of the colour scale, ``-limit`` to ``limit``; by default the largest coefficient.
    max_slices : int
        Of a tensor with three modes or more, at most so many slices, evenly spaced.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6, 5, 3))
    >>> y = X[:, :3].sum(axis=(1, 2, 3)) + rng.normal(size=100)
    >>> model = tt.TensorRegressor(rank=1).fit(X, y)
    >>> ax = tt.plot.coefficients(model, names=["row", "column", "time"])
    >>> ax.get_title()
    'slices: time'
    """
    from matplotlib.colors import Normalize

    tensor = tensor_of(model)
    bars = None
    if intervals is not None:
        if intervals.estimate.shape != tensor.shape:
            raise ValueError(
                f"intervals must be of the coefficients, of shape {tensor.shape}; got "
                f"{intervals.estimate.shape}"
            )
        tensor, bars = intervals.estimate, np.stack([intervals.lower, intervals.upper])
    largest = limit or float(np.nanmax(np.abs(tensor), initial=0.0)) or 1.0
    if bars is not None and np.count_nonzero(np.array(tensor.shape) > 1) > 1:
        tensor = np.where(bars[0] * bars[1] > 0, tensor, np.nan)
    colours = {"cmap": SIGNED, "norm": Normalize(-largest, largest)}
    look = Look("coefficient", colours, max_slices)
    told = mode_names(model, tensor.ndim, names), mode_places(model, tensor.shape)
    return draw_tensor(tensor, told[0], look, ax=ax, bars=bars, places=told[1])


def loadings(
    model: Any,
    mode: int = 0,
    *,
    ax: Any = None,
    names: Sequence[str] | None = None,
    intervals: Sequence[Intervals] | None = None,
) -> Any:
    """Draw the columns of one factor, in the order of their weight in A.

    The factors are orthonormal and the core all-orthogonal, which leaves their signs free: a column
    and its negative are the same. Where two columns weigh about the same, so are their mixtures.

    Parameters
    ----------
    model : fitted estimator or Tucker
    mode : int
        Which factor, counted from 0.
    ax : Axes, optional
    names : sequence of str, optional
        Of the modes.
    intervals : sequence of Intervals, optional
        From ``model.loading_intervals``, one per mode.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6, 5, 3))
    >>> y = X[:, :3].sum(axis=(1, 2, 3)) + rng.normal(size=100)
    >>> model = tt.TensorRegressor(rank=1).fit(X, y)
    >>> found = model.loading_intervals(X, y)
    >>> ax = tt.plot.loadings(model, mode=1, intervals=found)
    >>> ax.get_xlabel()
    'mode 2'
    """
    theta = (model if isinstance(model, Tucker) else fitted(model, "tucker_")).canonical()
    if mode not in range(theta.order):
        raise ValueError(f"mode must be from 0 to {theta.order - 1}; got {mode!r}")
    factor = to_numpy(theta.factors[mode])
    found = None if intervals is None else intervals[mode]
    if found is not None:
        factor = found.estimate
    ax = new_axes(ax, (6.5, 3.4))
    ax.axhline(0.0, color=ink(), linewidth=0.8, alpha=0.6)
    for r in range(factor.shape[1]):
        _column(ax, factor, r, found)
    integer_axis(ax.xaxis, mode_places(model, theta.shape)[mode])
    frame(ax, xlabel=mode_names(model, theta.order, names)[mode], ylabel="loading")
    plain_text([ax.xaxis.label])
    if factor.shape[1] > 1:
        legend(ax, ncols=min(3, factor.shape[1]), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def tensor_of(model: Any) -> np.ndarray:
    """Return the coefficient tensor of a model, a Tucker tensor or an array."""
    if isinstance(model, Tucker):
        return to_numpy(model.full())
    tensor = np.asarray(fitted(model, "coef_") if hasattr(model, "get_params") else model, float)
    if tensor.ndim == 0 or tensor.size == 0:
        raise ValueError(f"model must be fitted, or an array of one mode or more; got {model!r}")
    return tensor


def _column(ax: Any, factor: np.ndarray, r: int, found: Intervals | None) -> None:
    """One column: points with whiskers where they are few, a line with a band where many."""
    p, columns = factor.shape
    colour = PALETTE[r % len(PALETTE)]
    style = {"color": colour, "label": f"column {r + 1}"}
    if p > MOST_BARS:
        ax.plot(factor[:, r], linewidth=1.3, **style)
        if found is not None:
            ends = found.lower[:, r], found.upper[:, r]
            ax.fill_between(np.arange(p), *ends, color=colour, alpha=0.25, linewidth=0)
        return
    places = np.arange(p) + 0.6 * ((r + 0.5) / columns - 0.5)
    ax.plot(places, factor[:, r], "o", markersize=4, **style)
    if found is not None:
        ax.vlines(places, found.lower[:, r], found.upper[:, r], color=colour, linewidth=1.5)
