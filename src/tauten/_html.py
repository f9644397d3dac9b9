"""Self-contained HTML pages: one skeleton, sortable tables, figures that follow light and dark.

Plain strings are escaped wherever they enter; only :class:`Html` goes in as it is. A page loads
nothing and allows no script but its own (a content security policy says so to the browser).
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import math
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from numbers import Real
from pathlib import Path
from string import Template
from typing import Any

from ._files import write_whole

# Figures for a page are drawn with these settings, in two stand-in colours that become the page's.
INK, QUIET = "#010203", "#010204"
FIGURE_STYLE: dict[str, Any] = {
    "font.size": 11.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "none",
    "legend.framealpha": 0.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "grid.color": QUIET,
}
WIDE = (
    2.5  # times its height: a figure to scroll along on a phone, where it would shrink to nothing
)
_COLOURS = (
    "<style>:root{--ink:#1c2024;--quiet:#77808b}@media(prefers-color-scheme:dark)"
    "{:root{--ink:#e6e9ec;--quiet:#8b95a1}}</style>"
)


class Html(str):
    """A piece of HTML, already escaped; text that is added to it is escaped."""

    __slots__ = ()

    def __add__(self, other: str) -> Html:
        return Html(str.__add__(self, escape(other)))


def escape(value: object) -> Html:
    """Return a value as HTML: :class:`Html` as it is, anything else as text.

    Examples
    --------
    >>> escape("a < b"), escape(Html("<br>"))
    ('a &lt; b', '<br>')
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element; ``class_`` stands for ``class``, True for an attribute without value.

    Examples
    --------
    >>> element("p", "a < b", class_="quiet")
    '<p class="quiet">a &lt; b</p>'
    """
    pairs = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for name, value in attributes.items()
    )
    return Html(f"<{tag}{pairs}>{''.join(map(escape, children))}</{tag}>")


def paragraph(*children: object) -> Html:
    """Return a paragraph."""
    return element("p", *children)


def definitions(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return a list of terms and what they are."""
    return element("dl", *(element("dt", a) + element("dd", b) for a, b in pairs))


def code(text: str) -> Html:
    """Return a block of code, which the keyboard can scroll."""
    return element("pre", element("code", text), tabindex=0)


def figure(fig: Any, alt: str, caption: str = "") -> Html:
    """Return a matplotlib figure as an embedded vector image; the figure is not closed.

    Parameters
    ----------
    fig : matplotlib Figure
        Drawn with ``matplotlib.rc_context(FIGURE_STYLE)`` it follows light and dark.
    alt : str
        What it shows, for those who do not see it.
    caption : str
    """
    import matplotlib as mpl

    drawing = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "tauten"}):  # the same figure, the same bytes
        box = None if fig.get_layout_engine() else "tight"  # where nothing else makes room
        fig.savefig(drawing, format="svg", metadata={"Date": None}, bbox_inches=box)
    svg = drawing.getvalue().replace(INK, "var(--ink)").replace(QUIET, "var(--quiet)")
    head, body = svg.split("<defs>", 1)
    data = base64.b64encode(f"{head}{_COLOURS}<defs>{body}".encode()).decode()
    image = Html(f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">')
    width, height = fig.get_size_inches()
    wide = {"class_": "wide", "tabindex": 0} if width > WIDE * height else {}
    return element("figure", image, *([element("figcaption", caption)] if caption else []), **wide)


def table(
    columns: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    *,
    sortable: bool = True,
) -> Html:
    """Return a table; numbers are aligned, and sorted by their value.

    Parameters
    ----------
    columns : sequence of str
        Headings; with `sortable`, buttons that sort.
    rows : iterable of sequences
        Cells: text, Html or numbers. The first of a row is its heading.
    caption : str
    sortable : bool

    Examples
    --------
    >>> "<td" in table(["name", "size"], [["a", 1.5]])
    True
    """
    rows = [list(row) for row in rows]
    numeric = [any(_is_number(row[k]) for row in rows) for k in range(len(columns))]
    heads = [
        element(
            "th",
            element("button", name, type="button") if sortable else name,
            scope="col",
            **({"class_": "number"} if number else {}),
        )
        for name, number in zip(columns, numeric, strict=True)
    ]
    body = [element("tr", *(_cell(cell, k) for k, cell in enumerate(row))) for row in rows]
    parts = [element("caption", element("span", caption))] if caption else []
    parts += [element("thead", element("tr", *heads)), element("tbody", *body)]
    frame = {"role": "region", "aria_label": caption or "Table", "tabindex": 0}
    return element("div", element("table", *parts), class_="scroll", **frame)


def page(
    title: str,
    body_sections: Sequence[tuple[str, str]],
    *,
    lead: str = "",
    footer: str = "",
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    body_sections : sequence of (heading, content)
        Content is text or Html. A list of links to the sections comes first.
    lead, footer : str
        Text or Html below the title and at the end.

    Examples
    --------
    >>> "<h2" in page("A fit", [("Data", paragraph("n = 3"))])
    True
    """
    folder = files("tauten")
    template = Template(folder.joinpath("_page.html").read_text(encoding="utf-8"))
    script = folder.joinpath("_sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    named = [(f"section-{k}", *section) for k, section in enumerate(body_sections, 1)]
    links = [element("li", element("a", head, href=f"#{name}")) for name, head, _ in named]
    return template.substitute(
        title=escape(title),
        lead=escape(lead),
        contents=element("nav", element("ul", *links), aria_label="Contents"),
        body="\n".join(_section(*section) for section in named),
        footer=element("footer", footer, class_="quiet") if footer else "",
        script=script,
        hash=f"sha256-{digest}",
    )


def write(path: str | os.PathLike[str], text: str) -> Path:
    """Write a page, all of it or nothing."""
    return write_whole(path, text.encode())


def number(value: float) -> str:
    """Return a number as people read it: four digits, and whole where it is large.

    Examples
    --------
    >>> number(1234567.8), number(0.00012345), number(3), number(float("inf"))
    ('1,234,568', '0.0001234', '3', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    whole = 1e3 <= abs(value) < 1e7  # noqa: PLR2004
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def _section(name: str, heading: str, content: str) -> Html:
    return element(
        "section",
        element("h2", heading, id=f"{name}-title"),
        content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _is_number(cell: object) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def _cell(cell: object, k: int) -> Html:
    tag, scope = ("td", {}) if k else ("th", {"scope": "row"})
    if not _is_number(cell):
        return element(tag, cell, **scope)
    size = float(cell)  # type: ignore[arg-type]
    if math.isnan(size):
        return element(tag, "–", class_="number", data_missing=True, **scope)
    return element(tag, number(size), class_="number", data_value=repr(size), **scope)
