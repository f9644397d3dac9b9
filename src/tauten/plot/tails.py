"""Pictures of tails: are values heavy-tailed, and how."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from ..diagnostics import tail_index
from ..robust.thresholds import MAD
from ._axes import BLUE, ORANGE, frame, ink, legend, new_axes, numbers

WILD = 12.0  # robust standard deviations beyond which a scale must be logarithmic to show the rest
MOST_POINTS = 1500


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
