"""Tensors of any order in one picture: bars or a line, an image, or a wall of slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._axes import BLUE, Places, frame, ink, integer_axis, new_axes, plain_text

MOST_BARS = 40
WIDEST = 5.0  # longer against broader: an image beyond is stretched, or it would be a thread
LABEL = 0.22  # height of a slice's label, in heights of a slice


class Look(NamedTuple):
    """What the values are, the `cmap` and `norm` of images, and the most slices to show."""

    label: str
    colours: dict[str, Any]
    most: int


def draw_tensor(
    tensor: np.ndarray,
    names: Sequence[str],
    look: Look,
    *,
    ax: Any,
    bars: np.ndarray | None = None,
    places: Sequence[Places] | None = None,
) -> Any:
    """Draw a tensor; modes of length one are left out.

    Parameters
    ----------
    tensor : array (p_1, ..., p_d)
        nan is left blank.
    names : sequence of str
        Of the modes.
    look : Look
    ax : Axes, optional
    bars : array (2, p_1, ..., p_d), optional
        Ends of intervals, drawn where the tensor is a vector.
    places : sequence, optional
        Names of the places along each mode, or None where they are counted from 0.
    """
    kept = [k for k, p in enumerate(tensor.shape) if p > 1] or [0]
    names, places = [names[k] for k in kept], [places[k] if places else None for k in kept]
    shape = [tensor.shape[k] for k in kept]
    tensor = tensor.reshape(shape)
    if tensor.ndim == 1:
        ends = None if bars is None else bars.reshape(2, *shape)
        ax = _vector(tensor, names[0], new_axes(ax, (6.0, 3.2)), look.label, ends)
        integer_axis(ax.xaxis, places[0])
        return ax
    if tensor.ndim == 2:
        ax = _image(tensor, names, new_axes(ax, (5.0, 4.0)), look)
        integer_axis(ax.yaxis, places[0])
        integer_axis(ax.xaxis, places[1])
        return ax
    return _wall(tensor, names, places, new_axes(ax, (7.0, 6.0)), look)


def _vector(x: np.ndarray, name: str, ax: Any, label: str, ends: np.ndarray | None) -> Any:
    places, few = np.arange(len(x)), len(x) <= MOST_BARS
    ax.axhline(0.0, color=ink(), linewidth=0.8, alpha=0.6)
    if few:
        ax.bar(places, x, color=BLUE, alpha=0.85)
    else:
        ax.plot(places, x, color=BLUE, linewidth=1.2)
    if ends is not None and few:
        ax.vlines(places, *ends, color=ink(), linewidth=1.2)
    elif ends is not None:
        ax.fill_between(places, *ends, color=BLUE, alpha=0.25, linewidth=0)
    if len(x) == 1:
        ax.set_xlim(-2, 2)  # one bar need not fill the picture
    frame(ax, xlabel=name, ylabel=label)
    plain_text([ax.xaxis.label])
    return ax


def _image(x: np.ndarray, names: Sequence[str], ax: Any, look: Look) -> Any:
    long = max(x.shape) > WIDEST * min(x.shape)
    picture = ax.imshow(
        np.ma.masked_invalid(x),
        aspect="auto" if long else "equal",
        interpolation="nearest",
        **look.colours,
    )
    return _finish(ax, picture, names, look.label)


def _finish(ax: Any, picture: Any, names: Sequence[str], label: str) -> Any:
    ax.set(ylabel=names[0], xlabel=names[1])
    plain_text([ax.xaxis.label, ax.yaxis.label])
    ax.figure.colorbar(picture, ax=ax, label=label, shrink=0.85)
    return ax


def _wall(
    x: np.ndarray, names: Sequence[str], places: Sequence[Places], ax: Any, look: Look
) -> Any:
    """Slices along all modes but the two longest, side by side."""
    rows, columns = sorted(sorted(range(x.ndim), key=lambda k: -x.shape[k])[:2])
    rest = [k for k in range(x.ndim) if k not in (rows, columns)]
    slices = np.transpose(x, (*rest, rows, columns)).reshape(-1, x.shape[rows], x.shape[columns])
    chosen = np.unique(np.linspace(0, len(slices) - 1, min(look.most, len(slices))).astype(int))
    index = np.unravel_index(chosen, [x.shape[k] for k in rest])
    wall, corners = _arrange(slices[chosen])
    picture = ax.imshow(np.ma.masked_invalid(wall), interpolation="nearest", **look.colours)
    ax.set_aspect("equal" if max(wall.shape) <= 2 * min(wall.shape) else "auto")
    for corner, *place in zip(corners, *index, strict=True):
        known = zip([places[k] for k in rest], place, strict=True)
        told = [str(i) if names_of is None else names_of[i] for names_of, i in known]
        _slice_frame(ax, corner, slices.shape[1:], ", ".join(told))
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    shown = "" if len(chosen) == len(slices) else f" ({len(chosen)} of {len(slices)})"
    title = ax.set_title(f"slices: {', '.join(names[k] for k in rest)}{shown}", fontsize="medium")
    plain_text([title])
    return _finish(ax, picture, (names[rows], names[columns]), look.label)


def _arrange(slices: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Put slices (m, a, b) on a wall that is about square, with room for labels between them."""
    m, height, width = slices.shape
    gaps = math.ceil(LABEL * height), math.ceil(width / 10)
    step = height + gaps[0], width + gaps[1]
    across = min(m, max(1, round(math.sqrt(m * step[0] / step[1]))))
    down = math.ceil(m / across)
    wall = np.full((down * step[0], across * step[1] - gaps[1]), np.nan)
    corners = [(k // across * step[0] + gaps[0], k % across * step[1]) for k in range(m)]
    for (top, left), part in zip(corners, slices, strict=True):
        wall[top : top + height, left : left + width] = part
    return wall, corners


def _slice_frame(ax: Any, corner: tuple[int, int], size: tuple[int, int], label: str) -> None:
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    edge = mpl.rcParams["axes.edgecolor"]
    (top, left), (height, width) = corner, size
    outline = (left - 0.5, top - 0.5), width, height
    ax.add_patch(Rectangle(*outline, fill=False, edgecolor=edge, linewidth=0.6, clip_on=False))
    ax.text(left + width / 2 - 0.5, top - 0.6, label, ha="center", va="bottom", fontsize="small")
