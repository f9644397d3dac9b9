"""Pictures of moments: where the data are heavy-tailed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..diagnostics import kurtosis_map, local_moment
from ..tucker import Tucker
from ._axes import PALETTE, fitted, frame, legend, mode_names, new_axes
from ._image import Look, draw_tensor

NORMAL = 3.0  # its kurtosis


def kurtosis(
    X: Any, *, ax: Any = None, names: Sequence[str] | None = None, max_slices: int = 16
) -> Any:
    """Draw the kurtosis of every entry over the samples; 3 for a normal.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d)
    ax : Axes, optional
    names : sequence of str, optional
        Of the d modes.
    max_slices : int
        As for :func:`coefficients`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> X = np.random.default_rng(0).standard_t(5, size=(200, 6, 8))
    >>> ax = tt.plot.kurtosis(X, names=["row", "column"])
    >>> ax.get_ylabel(), ax.get_xlabel()
    ('row', 'column')
    """
    from matplotlib.colors import LogNorm

    found = kurtosis_map(X)
    found = found[None] if found.ndim == 0 else found
    top = float(np.nanmax(found, initial=2 * NORMAL))
    colours = {"cmap": "cividis", "norm": LogNorm(min(1.5, top / 4), top)}
    look = Look("kurtosis (normal: 3)", colours, max_slices)
    return draw_tensor(found, mode_names(None, found.ndim, names), look, ax=ax)


def local_moments(
    X: Any,
    model: Any,
    *,
    ax: Any = None,
    order: float = 2.0,
    radii: Sequence[float] = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0),
    rng: Any = 0,
) -> Any:
    """Draw local moments of the covariates around the fitted factors, by the radius δ.

    What a fit sees of the covariates are their moments near its factors (small δ), not the global
    ones (δ = 1): a curve that rises late means wild directions that hardly matter.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d0)
        Covariates. They are centred at their entrywise medians.
    model : fitted estimator, Tucker, or sequence of factors
        Of a model with a response tensor, the covariates' factors are taken.
    ax : Axes, optional
    order : float
        Of the moment.
    radii : sequence of float
        δ, in [0, 1].
    rng : Generator or int
        For the search of each maximum.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> X = np.random.default_rng(0).normal(size=(100, 6, 5))
    >>> factors = [np.eye(6)[:, :1], np.eye(5)[:, :1]]
    >>> ax = tt.plot.local_moments(X, factors, radii=[0.0, 0.5, 1.0])
    >>> len(ax.get_legend().get_texts())  # over all modes, and with one mode at its coordinates
    3
    """
    X = np.asarray(X, dtype=float)
    X = X - np.median(X, axis=0)
    factors = _factors(model, X.ndim - 1)
    ax = new_axes(ax, (5.0, 3.6))
    curves = [None, *range(len(factors))] if len(factors) > 1 else [None]
    for k, exclude in enumerate(curves):
        options: dict[str, Any] = {"order": order, "exclude": exclude, "n_starts": 2, "n_iter": 50}
        rngs = np.random.default_rng(rng)
        values = [local_moment(X, factors, radius=r, rng=rngs, **options) for r in radii]
        name = "all modes" if exclude is None else f"mode {exclude + 1} by coordinates"
        style = {"marker": "os^Dvp"[k % 6], "color": PALETTE[k % len(PALETTE)], "markersize": 4}
        ax.plot(radii, values, label=name, linewidth=1.3, **style)
    if all(value > 0 for line in ax.get_lines() for value in line.get_ydata()):
        ax.set_yscale("log")
    legend(ax, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return frame(
        ax, xlabel="radius δ around the factors", ylabel=f"local moment of order {order:g}"
    )


def _factors(model: Any, order: int) -> list[np.ndarray]:
    factors = (
        model.factors
        if isinstance(model, Tucker)
        else fitted(model, "tucker_").factors
        if hasattr(model, "get_params")
        else model
    )
    return [np.asarray(u) for u in factors[:order]]
