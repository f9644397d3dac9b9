"""What the pictures share: axes, colours, names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# Okabe and Ito's colours, which colour-blind readers tell apart and which stand out on black and on
# white; black and yellow, which do not, are left out.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
BLUE, ORANGE = PALETTE[0], PALETTE[3]
MOST_PLACES = 20  # ticks with names
SHORT = 5  # letters of names that stand side by side below an axis
Places = list[str] | None


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the Axes, or a new one in a figure of the given size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "tauten[plot]"') from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def ink() -> str:
    """Colour of text in matplotlib's current style: for lines that must show on any background."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def frame(ax: Any, **labels: str) -> Any:
    """Label the axes, and leave out the box's upper and right side."""
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend(ax: Any, **options: Any) -> None:
    """Add a legend without a box."""
    ax.legend(**({"frameon": False, "fontsize": "small"} | options))


def plain_text(texts: Iterable[Any]) -> None:
    """Show names as they are: a dollar sign starts no formula."""
    for text in texts:
        text.set_parse_math(False)


def name_of(name: object, *, longest: int = 28) -> str:
    """Return a name on one line, cut where it is long."""
    text = " ".join(str(name).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def integer_axis(axis: Any, places: Places = None) -> None:
    """Put ticks at whole numbers only; where these have names, at all that there is room for."""
    from matplotlib.ticker import MaxNLocator

    most = 8 if places is None else MOST_PLACES
    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))
    if places is None:
        return

    def told(value: float, _: Any) -> str:
        k = round(value)
        return places[k].replace("$", r"\$") if k == value and 0 <= k < len(places) else ""

    axis.set_major_formatter(told)
    if axis.axis_name == "x" and max(map(len, places)) > SHORT:
        axis.set_tick_params(rotation=90)


def fitted(model: Any, attribute: str, why: str = "") -> Any:
    """Return an attribute of a fitted model, or say what is missing."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model, attribute):
        raise ValueError(f"model has no {attribute}: {why}")
    return getattr(model, attribute)


def mode_names(model: Any, order: int, names: Sequence[str] | None) -> list[str]:
    """Return the given names of the modes of A, or names that say whose modes they are."""
    if names is not None:
        if isinstance(names, str) or len(names) != order:
            raise ValueError(f"names must be {order} strings, one per mode; got {names!r}")
        return [name_of(name) for name in names]
    dims = getattr(getattr(model, "coef_", model), "dims", None)  # an xarray knows its own
    if dims is not None:
        return [name_of(name) for name in dims]
    inputs = len(getattr(model, "sample_shape_", ())) or order
    outputs = order - inputs
    found = [f"mode {k + 1}" for k in range(inputs)]
    if outputs and getattr(getattr(model, "loss_", None), "one_hot", False):
        return [*found, "class"]
    return found + [f"response mode {k + 1}" if outputs > 1 else "response" for k in range(outputs)]


def mode_places(model: Any, shape: Sequence[int]) -> list[Places]:
    """Names of the places along each mode of A: coordinates, classes, or None."""
    coef = getattr(model, "coef_", model)
    coords = getattr(coef, "coords", {})
    if coords:
        return [_names(coords[dim].values) if dim in coords else None for dim in coef.dims]
    classes = getattr(model, "classes_", ())  # the last mode, where there are more than two
    last = len(classes) > 2
    return [*[None] * (len(shape) - last), *[_names(classes)][:last]]


def _names(values: Any) -> list[str]:
    values = np.asarray(values)
    if values.dtype.kind == "M":
        return [str(day) for day in np.datetime_as_string(values, unit="auto")]
    return [f"{v:.4g}" if values.dtype.kind == "f" else name_of(v, longest=14) for v in values]


def numbers(name: str, x: Any) -> np.ndarray:
    """Return the finite values of an array, flattened; nan stands for missing and is left out."""
    values = np.asarray(x, dtype=float).ravel()
    values = values[~np.isnan(values)]
    if len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must hold two numbers or more, and no inf; got {len(values)} that are not nan"
        )
    return values
