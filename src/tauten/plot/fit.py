"""Pictures of how a fit came about: iterations, choices, and who was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._axes import (
    BLUE,
    ORANGE,
    PALETTE,
    fitted,
    frame,
    ink,
    integer_axis,
    legend,
    name_of,
    new_axes,
    plain_text,
)

HALF = 0.5


def convergence(model: Any, *, ax: Any = None) -> Any:
    """Draw the relative change of A in each iteration, on a log scale.

    Parameters
    ----------
    model : fitted estimator or Result
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(100, 4, 5))
    >>> y = X.sum(axis=(1, 2)) + rng.standard_t(2, size=100)
    >>> model = tt.TensorRegressor(rank=1).fit(X, y)
    >>> tt.plot.convergence(model).get_yscale()
    'log'
    """
    history = _history(model)
    ax = new_axes(ax, (5.0, 3.2))
    change = np.array([step.change for step in history])
    change[~(change > 0)] = np.nan  # an exact zero has no place on a log scale
    ax.plot([step.t for step in history], change, "o-", color=BLUE, markersize=4, linewidth=1.3)
    ax.set_yscale("log")
    integer_axis(ax.xaxis)
    return frame(ax, xlabel="iteration", ylabel="relative change of A")


def truncation(model: Any, *, ax: Any = None) -> Any:
    """Draw the share of per-sample gradient entries that were truncated in each iteration.

    One line per block: the core, the factors, and the vector coefficients where there are any.
    What was bent before, in the residuals, is not counted here: see :func:`influence`.

    Parameters
    ----------
    model : fitted estimator or Result
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(100, 4, 5))
    >>> y = X.sum(axis=(1, 2)) + rng.standard_t(2, size=100)
    >>> model = tt.TensorRegressor(rank=1, robust="truncate").fit(X, y)
    >>> ax = tt.plot.truncation(model)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['core', 'factor 1', 'factor 2', 'intercept']
    """
    history = _history(model)
    ax = new_axes(ax, (5.0, 3.2))
    shares = 100 * np.array([step.truncated for step in history])
    for k, (name, share) in enumerate(zip(_block_names(model), shares.T, strict=True)):
        style = {"color": PALETTE[k % len(PALETTE)], "marker": "os^Dvp"[k % 6], "markersize": 4}
        ax.plot([step.t for step in history], share, linewidth=1.3, label=name, **style)
    ax.set_ylim(0, max(1.0, 1.15 * float(shares.max())))
    if not shares.any():
        ax.text(0.5, 0.5, "nothing was truncated", transform=ax.transAxes, ha="center")
    integer_axis(ax.xaxis)
    legend(ax, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return frame(ax, xlabel="iteration", ylabel="truncated entries, %")


def rank_path(model: Any, *, ax: Any = None, most: int = 15) -> Any:
    """Draw the ranks tried and how much worse than the chosen one they are.

    Parameters
    ----------
    model : estimator fitted with ``rank="auto"`` or ``"cv"``, or RankPath
    ax : Axes, optional
    most : int
        Show at most so many, the best ones.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(100, 4, 5))
    >>> y = X.sum(axis=(1, 2)) + rng.standard_t(2, size=100)
    >>> model = tt.TensorRegressor().fit(X, y)
    >>> ax = tt.plot.rank_path(model)
    >>> ax.get_yticklabels()[0].get_text()  # the best one comes first
    '1 × 1'
    """
    why = "its ranks were given. Fit with rank='auto' or 'cv'"
    path = model if hasattr(model, "criterion") else fitted(model, "rank_path_", why)
    order = np.argsort(path.criterion, kind="stable")[:most]
    excess = np.array(path.criterion)[order] - np.min(path.criterion)
    ax = new_axes(ax, (5.0, 1.0 + 0.28 * len(order)))
    places = np.arange(len(order))
    colours = [ORANGE if path.ranks[k] == path.rank else BLUE for k in order]
    ax.hlines(places, 0, excess, color=colours, linewidth=1.5)
    ax.scatter(excess, places, color=colours, s=28, zorder=3)
    ax.set_yticks(places, [" × ".join(map(str, path.ranks[k])) for k in order])
    ax.annotate("chosen", (0, 0), (8, 0), textcoords="offset points", va="center", fontsize="small")
    ax.margins(y=0.4 / len(order) + 0.02)
    ax.invert_yaxis()
    left_out = len(path.ranks) - len(order)
    more = f" ({left_out} worse ones not shown)" if left_out else ""
    return frame(ax, xlabel=f"criterion above the best{more}", ylabel="rank")


def threshold_path(model: Any, *, ax: Any = None) -> Any:
    """Draw the cross-validated error of each threshold τ tried, with its standard error.

    Parameters
    ----------
    model : estimator fitted with ``tau="cv"``, or ThresholdPath
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(100, 4, 5))
    >>> y = X.sum(axis=(1, 2)) + rng.standard_t(2, size=100)
    >>> model = tt.TensorRegressor(rank=1, robust="truncate:tau=cv").fit(X, y)
    >>> tt.plot.threshold_path(model).get_xscale()
    'log'
    """
    why = "its threshold was not cross-validated. Fit with robust='truncate:tau=cv'"
    path = model if hasattr(model, "taus") else fitted(model, "cv_results_", why)
    order = np.argsort(path.taus)
    taus, error, stderr = (np.asarray(a)[order] for a in (path.taus, path.error, path.stderr))
    finite = np.isfinite(taus)
    places = taus.copy()
    places[~finite] = (
        3 * taus[finite].max() if finite.any() else 1.0
    )  # infinity's place on the axis
    ax = new_axes(ax, (5.0, 3.4))
    ax.errorbar(places, error, stderr, fmt="o-", color=BLUE, markersize=4, capsize=3, linewidth=1.3)
    best = int(np.flatnonzero(taus == path.tau)[0])
    ax.plot(places[best], error[best], "o", color=ORANGE, markersize=9, label="chosen")
    ax.set_xscale("log")
    if not finite.all():
        ax.axvline(places[~finite][0], color=ink(), linestyle=":", linewidth=0.8)
        where: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "right", "va": "top"}
        style = {"textcoords": "offset points", "rotation": 90, "fontsize": "small"}
        ax.annotate("no truncation", (places[~finite][0], 1.0), (-4, -2), **where, **style)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return frame(ax, xlabel="threshold τ", ylabel="cross-validated error")


def influence(
    model: Any, *, ax: Any = None, sample_names: Sequence[object] | None = None, most: int = 15
) -> Any:
    """Draw the samples that were cut most, and how much of their gradient was cut away.

    Parameters
    ----------
    model : fitted estimator
    ax : Axes, optional
    sample_names : sequence, optional
        One per sample; by default their numbers, from 0.
    most : int
        Show at most so many.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(100, 4, 5))
    >>> y = X.sum(axis=(1, 2)) + rng.standard_t(2, size=100)
    >>> model = tt.TensorRegressor(rank=1).fit(X, y)
    >>> ax = tt.plot.influence(model, most=5)
    >>> len(ax.get_yticks())
    5
    """
    share = np.asarray(fitted(model, "influence_"))
    names = check_sample_names(sample_names, len(share))
    order = np.argsort(-share, kind="stable")[:most]
    ax = new_axes(ax, (5.5, 1.2 + 0.26 * len(order)))
    places = np.arange(len(order))
    ax.barh(places, 100 * share[order], color=BLUE, height=0.7)
    ax.set_yticks(places, [name_of(names[k]) for k in order])
    plain_text(ax.get_yticklabels())
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    title = f"{np.mean(share > HALF):.0%} of {len(share)} samples lost more than half"
    ax.set_title(title, fontsize="medium")
    return frame(ax, xlabel="cut away from the sample's gradient, %", ylabel="sample")


def check_sample_names(names: Sequence[object] | None, n: int) -> list[str]:
    """Return the names of the samples, by default their numbers."""
    if names is None:
        return [str(k) for k in range(n)]
    if isinstance(names, str) or len(names) != n:
        raise ValueError(f"sample_names must hold {n} names, one per sample; got {len(names)}")
    return [str(name) for name in names]


def _history(model: Any) -> list[Any]:
    history = model.history if hasattr(model, "history") else fitted(model, "result_").history
    if not history:
        raise ValueError("model must have taken an iteration; its history is empty")
    return list(history)


def _block_names(model: Any) -> list[str]:
    """Names of the blocks of a fit, in the paper's order."""
    result = model if hasattr(model, "history") else model.result_
    names = ["core", *(f"factor {k + 1}" for k in range(result.theta.order))]
    if len(result.theta.blocks) > len(names):
        alone = len(getattr(model, "covariate_coef_", ())) == 0
        names.append("intercept" if alone else "covariates")
    return names
