"""Pictures of tails: are the data heavy-tailed, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from ..diagnostics import kurtosis_map, local_moment, tail_index
from ..robust.thresholds import MAD
from ..tucker import Tucker
from ._axes import BLUE, ORANGE, PALETTE, fitted, frame, ink, legend, mode_names, new_axes, numbers
from ._image import Look, draw_tensor

WILD = 12.0  # robust standard deviations beyond which a scale must be logarithmic to show the rest
MOST_POINTS = 1500
NORMAL = 3.0  # its kurtosis


def qq(x: Any, *, ax: Any = None, name: str = "value") -> Any:
    """Draw quantiles of values against those of a normal of the same median and spread.

    Values are standardised by their median and MAD. Heavy tails leave the line steeply at the ends.
    Where they go beyond 12 the vertical scale is logarithmic outside of ±3.

    Parameters
    ----------
    x : array
        Residuals, or any other values; taken as one sample. nan is left out.
    ax : Axes, optional
    name : str
        What the values are.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> noise = np.random.default_rng(0).standard_t(2, size=500)
    >>> ax = tt.plot.qq(noise, name="residual")
    >>> ax.get_ylabel()
    'residual, in robust standard deviations'
    """
    values = np.sort(numbers("x", x))
    centre = np.median(values)
    values = (values - centre) / (MAD * float(np.median(np.abs(values - centre))) or 1.0)
    normal = stats.norm.ppf((np.arange(len(values)) + 0.5) / len(values))
    shown = _thin(len(values))
    ax = new_axes(ax, (4.4, 3.8))
    line = np.linspace(normal[0], normal[-1], 200)
    ax.plot(line, line, color=ink(), linewidth=1.0, linestyle="--", label="normal")
    ax.plot(normal[shown], values[shown], "o", color=BLUE, markersize=3, alpha=0.7, label=name)
    if np.abs(values[[0, -1]]).max() > WILD:
        ax.set_yscale("symlog", linthresh=3.0, linscale=2.0)
        ax.set_yticks(_symlog_ticks(values), minor=False)
        ax.yaxis.set_minor_locator(_no_ticks())
    legend(ax, loc="upper left")
    return frame(ax, xlabel="quantile of a normal", ylabel=f"{name}, in robust standard deviations")


def survival(x: Any, *, ax: Any = None, share: float = 0.05, name: str = "value") -> Any:
    """Draw the share of values larger than t, for every t, on two log scales.

    A tail ``P(|x| > t) ~ t^(-α)`` is a straight line of slope -α, drawn with Hill's estimate from
    the largest `share` of the values; a normal's falls ever more steeply.

    Parameters
    ----------
    x : array
        Taken as one sample, by size. nan and zero are left out.
    ax : Axes, optional
    share : float
        For Hill's estimate.
    name : str
        What the values are.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> noise = np.random.default_rng(0).standard_t(2, size=500)
    >>> tt.plot.survival(noise).get_xscale()
    'log'
    """
    sizes = np.sort(np.abs(numbers("x", x)))
    sizes = sizes[sizes > 0]
    if len(sizes) < 2:
        raise ValueError("x must hold two values or more that are not zero")
    left = 1 - (np.arange(len(sizes)) + 0.5) / len(sizes)
    unit = float(np.median(sizes)) / stats.norm.ppf(0.75)
    shown = _thin(len(sizes))
    ax = new_axes(ax, (4.4, 3.8))
    ax.plot(sizes[shown], left[shown], "o", color=BLUE, markersize=3, alpha=0.7, label=name)
    grid = np.geomspace(np.quantile(sizes, 0.2), sizes[-1], 200)
    normal = 2 * stats.norm.sf(grid / unit)
    ax.plot(grid, normal, color=ink(), linewidth=1.0, linestyle="--", label="normal, same median")
    if len(sizes) * share >= 2:
        _hill_line(ax, sizes, share)
    ax.set(xscale="log", yscale="log", ylim=(0.35 / len(sizes), 1.3))
    ax.set_xlim(np.quantile(sizes, 0.05), 1.3 * sizes[-1])
    legend(ax, loc="lower left")
    return frame(ax, xlabel=f"t = size of {name}", ylabel="share of sizes above t")


def hill(x: Any, *, ax: Any = None, name: str = "value") -> Any:
    """Draw Hill's tail index α against the share of the largest values it is computed from.

    Trust a stretch where it is level. Moments of order α and above are infinite: below 2 there is
    no variance, below 4 no fourth moment. The band is ``± 1.96 α / √k``.

    Parameters
    ----------
    x : array
        Taken as one sample, by size. nan is left out.
    ax : Axes, optional
    name : str
        What the values are.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> noise = np.random.default_rng(0).standard_t(2, size=500)
    >>> tt.plot.hill(noise).get_ylabel()
    'tail index α of value'
    """
    values = numbers("x", x)
    if np.count_nonzero(values) < 20:
        raise ValueError(
            f"x must hold 20 values or more that are not zero; got {np.count_nonzero(values)}"
        )
    smallest, largest = max(0.01, 5 / len(values)), 0.3 * np.count_nonzero(values) / len(values)
    shares = np.unique(np.geomspace(smallest, max(largest, 1.5 * smallest), 40))
    found = np.array([tail_index(values, share=share) for share in shares])
    found[~np.isfinite(found)] = np.nan
    alpha, stderr = found.T
    ax = new_axes(ax, (4.8, 3.4))
    band = np.maximum(alpha - 1.96 * stderr, 0), alpha + 1.96 * stderr
    ax.fill_between(100 * shares, *band, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(100 * shares, alpha, color=BLUE, linewidth=1.5)
    top = min(max(6.0, 1.3 * float(np.nanmax(alpha, initial=0.0))), 20.0)
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
    for order, meaning in ((2, "variance"), (4, "4th moment")):
        ax.axhline(order, color=ink(), linestyle=":", linewidth=0.9)
        text = f"below {order}:\nno {meaning}"
        ax.annotate(text, (1, order), (5, 0), textcoords="offset points", fontsize="small", **where)
    ax.set(xscale="log", ylim=(0, top), xlim=100 * shares[[0, -1]])
    _percent_ticks(ax)
    return frame(ax, xlabel="largest values used, %", ylabel=f"tail index α of {name}")


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


def _hill_line(ax: Any, sizes: np.ndarray, share: float) -> None:
    """The straight line of Hill's estimate, through the point where its tail begins."""
    alpha, stderr = tail_index(sizes, share=share)
    if not math.isfinite(alpha):
        return
    start = sizes[-int(share * len(sizes)) - 1]
    ends = np.array([start, sizes[-1]])
    label = f"Hill: α = {alpha:.1f} ± {1.96 * stderr:.1f}"
    ax.plot(ends, share * (ends / start) ** -alpha, color=ORANGE, linewidth=2.0, label=label)


def _thin(n: int) -> np.ndarray:
    """Ranks to draw: all where they are few, else all of both ends and some of the middle."""
    if n <= MOST_POINTS:
        return np.arange(n)
    end = MOST_POINTS // 3
    middle = np.linspace(end, n - end - 1, end).astype(int)
    return np.concatenate([np.arange(end), middle, np.arange(n - end, n)])


def _symlog_ticks(values: np.ndarray) -> list[float]:
    """Zero and some powers of ten of both signs, few enough to be read."""
    ticks = [0.0]
    for sign, end in ((-1, -values[0]), (1, values[-1])):
        powers = range(1, math.floor(math.log10(max(end, 1.0))) + 1)
        ticks += [sign * 10.0**p for p in powers if p % max(1, math.ceil(len(powers) / 3)) == 0]
    return sorted(ticks)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _percent_ticks(ax: Any) -> None:
    """Plain numbers on a log scale."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(_no_ticks())
