"""The paper's figures redrawn, and the numbers behind them as tables."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._html import QUIET
from .base import OURS, Experiment
from .claims import Sample

LABELS = {
    "settled": "share of runs that converged",
    "-log error": "mean of −log ‖Â − A*‖²",
    "error": "mean of ‖Â − A*‖²",
    "log error": "mean of log ‖Â − A*‖², with quartiles",
}
# Colours that stay apart in print, in the dark and for the colour-blind (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
MARKERS = "osD^vP"

Row = list[Any]


def values(sample: Sample, key: tuple[str, Any, Any, str], measure: str) -> np.ndarray:
    """What a figure averages, over the replications."""
    if measure == "settled":
        return sample.settled[key].astype(float)
    logs = sample.log_error(*key)
    return {"-log error": -logs, "error": np.exp(logs), "log error": logs}[measure]


COLUMNS = ["panel", "series", "x", "method", "runs", "mean", "standard error", "lower", "upper"]


def summary(experiment: Experiment, sample: Sample) -> list[Row]:
    """One row for each point of the figure: mean, its standard error and the quartiles."""
    rows = []
    for key in sample.errors:
        v = values(sample, key, experiment.measure)
        if len(v):
            stderr = float(np.std(v, ddof=1)) / math.sqrt(len(v)) if len(v) > 1 else math.nan
            quartiles = [float(q) for q in np.quantile(v, [0.25, 0.75])]
            rows.append([*key, len(v), float(np.mean(v)), stderr, *quartiles])
    return rows


def to_csv(columns: Sequence[str], rows: Sequence[Row]) -> bytes:
    """A table as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def draw(experiment: Experiment, sample: Sample) -> Any:
    """Redraw the figure of an experiment."""
    from matplotlib.figure import Figure

    rows = summary(experiment, sample)
    panels = sample.panels
    columns = min(len(panels), 2)
    lines = math.ceil(len(panels) / columns)
    fig = Figure(figsize=(4.4 * columns, 3.3 * lines), layout="constrained")
    axes = fig.subplots(lines, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        here = [row for row in rows if row[0] == panel]
        (_bars if experiment.measure == "log error" else _curves)(ax, experiment, here)
        ax.set_title(panel, fontsize=10)
        ax.set_xlabel(experiment.xlabel)
        ax.grid(alpha=0.25)
        if experiment.measure == "error":
            ax.set_yscale("log")
    for ax in axes[::columns]:
        ax.set_ylabel(LABELS[experiment.measure], fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    wide = 7 if columns > 1 else 4  # labels that there is room for side by side
    fig.legend(handles, labels, loc="outside lower center", ncols=wide, fontsize=8)
    return fig


def _curves(ax: Any, experiment: Experiment, rows: list[Row]) -> None:
    """One line per series, dashed for ours."""
    series = list(dict.fromkeys(row[1] for row in rows))
    for k, s in enumerate(series):
        for method in dict.fromkeys(row[3] for row in rows):
            mine = [row for row in rows if row[1] == s and row[3] == method]
            ours = method == OURS
            ax.errorbar(
                [row[2] for row in mine],
                [row[5] for row in mine],
                yerr=np.nan_to_num([row[6] for row in mine]),
                color=COLOURS[k % len(COLOURS)],
                marker=MARKERS[k % len(MARKERS)],
                markersize=3.5 if ours else 5,
                linestyle="--" if ours else "-",
                linewidth=0.9 if ours else 1.5,
                alpha=0.6 if ours else 1.0,
                label=None if ours else f"{experiment.slabel} = {s}",
            )
    ax.plot([], [], color=QUIET, linestyle="--", linewidth=0.9, label="ours (auto)")
    ax.set_xticks(sorted({row[2] for row in rows}))


def _bars(ax: Any, experiment: Experiment, rows: list[Row]) -> None:
    """Means with quartiles, methods side by side in each case."""
    cases = list(dict.fromkeys(row[2] for row in rows))
    methods = list(dict.fromkeys(row[3] for row in rows))
    for k, method in enumerate(methods):
        mine = [row for row in rows if row[3] == method]
        middle = np.array([row[5] for row in mine])
        low, high = (np.array([row[j] for row in mine]) for j in (7, 8))
        shift = (k - (len(methods) - 1) / 2) * 0.17
        ax.errorbar(
            [cases.index(row[2]) + shift for row in mine],
            middle,
            yerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
            color=COLOURS[k % len(COLOURS)],
            marker=MARKERS[k % len(MARKERS)],
            linestyle="none",
            capsize=3,
            label="ours (auto)" if method == OURS else method,
        )
    ax.set_xticks(range(len(cases)), cases)
