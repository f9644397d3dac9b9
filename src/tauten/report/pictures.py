"""Pictures on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._html import Html, escape, figure


def picture(draw: Callable[[Any], Any], alt: str, size: tuple[float, float] = (6.2, 3.6)) -> Html:
    """What `draw` puts on axes of a size, with what it shows in words."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=size, layout="constrained")
    draw(fig.subplots())
    return figure(fig, alt, alt)


def joined(parts: Iterable[Any]) -> Html:
    """Parts of a page, one after the other."""
    return Html("\n".join(escape(part) for part in parts))
