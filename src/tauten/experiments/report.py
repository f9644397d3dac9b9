"""The report: one self-contained page, and every figure and table as a file of its own."""

from __future__ import annotations

import importlib.metadata
import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _html as html
from .._files import write_whole
from .claims import Claim, Verdict
from .figures import COLUMNS, Row, draw, summary, to_csv
from .store import Results

VERSIONS = ("tauten", "numpy", "scipy", "scikit-learn", "joblib", "matplotlib")
CLAIM_COLUMNS = ["experiment", "claim", "reading", "tuning", "verdict", "most telling number"]


@dataclass(frozen=True)
class Section:
    """A part of the report: text, figures by name with their description, tables by name."""

    title: str
    content: Sequence[html.Html]
    figures: Mapping[str, tuple[Any, str]]
    tables: Mapping[str, tuple[list[str], list[Row]]]
    claims: Sequence[Row]


def experiment_section(runs: Sequence[Results]) -> Section:
    """What one experiment found, under each reading and tuning that was run."""
    import matplotlib as mpl

    experiment = runs[0].experiment
    parts = [html.paragraph(f"Redraws {experiment.figure}. {experiment.note}")]
    figures, tables, claims = {}, {}, []
    for run in runs:
        sample, label = run.sample(), run.settings.label
        stem = run.path.stem
        with mpl.rc_context(html.FIGURE_STYLE):
            fig = draw(experiment, sample)
        caption = (
            f"{experiment.figure}, reading {run.settings.reading}, tuning {run.settings.tuning}"
        )
        alt = (
            f"{caption}: {experiment.measure} by {experiment.xlabel}; the numbers are in the table"
        )
        figures[stem] = (fig, alt)
        rows = summary(experiment, sample)
        tables[stem] = (COLUMNS, rows)
        parts += [
            html.figure(fig, alt, caption),
            _folded(f"Numbers, {label}", html.table(COLUMNS, rows)),
        ]
        judged = [(claim, claim.judge(sample)) for claim in experiment.claims]
        claims += claim_rows(experiment.name, run.settings.reading, run.settings.tuning, judged)
        parts.append(_folded(f"Claims in full, {label}", claims_in_full(judged)))
    return Section(experiment.title, parts, figures, tables, claims)


def claim_rows(
    name: str, reading: str, tuning: str, judged: Sequence[tuple[Claim, Verdict]]
) -> list[Row]:
    """Rows of the table of claims: of each verdict's quantities, the most telling one."""
    return [
        [name, claim.name, reading, tuning, verdict.verdict, verdict.numbers[0]]
        for claim, verdict in judged
    ]


def claims_in_full(judged: Sequence[tuple[Claim, Verdict]]) -> html.Html:
    """Statements, what is tested, verdicts, and all numbers."""
    return html.definitions(
        (
            f"{claim.statement}: {verdict.verdict}",
            html.paragraph(f"Tested as: {claim.means}.")
            + html.element("ul", *(html.element("li", number) for number in verdict.numbers)),
        )
        for claim, verdict in judged
    )


def _folded(title: str, content: html.Html) -> html.Html:
    return html.element("details", html.element("summary", title), content)


def write_report(
    folder: str | Path, sections: Sequence[Section], settings: Mapping[str, object], command: str
) -> Path:
    """Write the page, the figures as PNG and SVG, and the tables as CSV; return the page's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    claims = [row for section in sections for row in section.claims]
    for section in sections:
        for name, (fig, _) in section.figures.items():
            _save_figure(folder / name, fig)
        for name, (columns, rows) in section.tables.items():
            write_whole(folder / f"{name}.csv", to_csv(columns, rows))
    if claims:
        write_whole(folder / "claims.csv", to_csv(CLAIM_COLUMNS, claims))
    counts = {v: sum(row[4] == v for row in claims) for v in ("holds", "fails", "undecided")}
    lead = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    body = [
        (
            "Claims",
            html.paragraph(EXPLAIN)
            + html.table(CLAIM_COLUMNS, claims, "Every claim, and what was found"),
        ),
        *((s.title, html.Html("".join(s.content))) for s in sections),
        ("Run", html.definitions([*settings.items(), *versions().items()]) + html.code(command)),
    ]
    page = html.page(
        "The paper, reproduced and checked", body, lead=html.paragraph(f"Claims: {lead}.")
    )
    return html.write(folder / "report.html", page)


EXPLAIN = (
    "Each claim of the paper is a statement about quantities with standard errors. It holds if the "
    "95% confidence interval of every quantity lies inside the region that the claim puts it in; "
    "it fails if one lies outside, at a level corrected for their number; else it is undecided. "
    "Reading: A* has factors of ones (norm 100) or of norm one (norm √10). Tuning: 300 steps of "
    "0.001 as in the paper, or the same estimators at convergence. Dashed lines and 'auto' are "
    "this library's default."
)


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    found = {name: importlib.metadata.version(name) for name in VERSIONS}
    return {"Python": platform.python_version(), "machine": platform.machine(), **found}


def _save_figure(stem: Path, fig: Any) -> None:
    """As PNG and SVG on white: files are looked at and printed outside the page."""
    import matplotlib as mpl

    for kind in ("png", "svg"):
        buffer = io.BytesIO()
        options = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 150}
        with mpl.rc_context({"svg.hashsalt": "tauten"}):  # the same figure, the same bytes
            fig.savefig(buffer, format=kind, facecolor="white", **options)
        write_whole(stem.with_name(f"{stem.name}.{kind}"), buffer.getvalue())
