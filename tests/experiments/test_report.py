"""Reproduce: from names to a page that a real browser shows without a complaint."""

import csv
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small import EXPERIMENT

from tauten._html import FIGURE_STYLE
from tauten.experiments import EXPERIMENTS, NAMES, Settings, reproduce, study
from tauten.experiments.claims import Sample
from tauten.experiments.figures import draw

mpl = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    patch = pytest.MonkeyPatch()
    patch.setitem(study.EXPERIMENTS, "small", EXPERIMENT)
    patch.setattr(study, "NAMES", (*NAMES, "small"))
    page = reproduce("small", reading=("ones", "unit"), replications=3, out=folder)
    patch.undo()
    return page


def test_figures_tables_and_page_are_written(reported):
    names = {path.name for path in reported.parent.iterdir()}
    for label in ("small-ones-paper", "small-unit-paper"):
        assert {f"{label}.{kind}" for kind in ("jsonl", "png", "svg", "csv")} <= names
    assert {"report.html", "claims.csv"} <= names
    with open(reported.parent / "claims.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(EXPERIMENT.claims)
    assert {row["verdict"] for row in rows} <= {"holds", "fails", "undecided"}
    with open(reported.parent / "small-unit-paper.csv", newline="") as file:
        points = list(csv.DictReader(file))
    assert len(points) == 9
    assert all(int(point["runs"]) == 3 for point in points)


def test_a_report_on_what_was_done_does_no_more(reported, tmp_path, monkeypatch):
    """Of two tunings one was run; of the other there is nothing to say."""
    monkeypatch.setitem(study.EXPERIMENTS, "small", EXPERIMENT)
    monkeypatch.setattr(study, "NAMES", (*NAMES, "small"))
    monkeypatch.setattr(study, "run", pytest.fail)
    for path in reported.parent.glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    options = {"reading": ("ones", "unit"), "tuning": ("paper", "converged"), "report_only": True}
    page = reproduce("small", replications=200, out=tmp_path, **options)
    with open(tmp_path / "claims.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["reading"], row["tuning"]) for row in rows} == {
        ("ones", "paper"),
        ("unit", "paper"),
    }
    assert "--report-only" in page.read_text()
    assert "--methods" not in page.read_text()
    few = reproduce("small", replications=200, out=tmp_path, methods="RGD", **options)
    assert "--tuning paper converged --methods RGD --report-only" in few.read_text()
    with pytest.raises(ValueError, match=r"report_only needs results of small .* Run them first"):
        reproduce("small", out=tmp_path / "nothing", **options)
    assert not (tmp_path / "nothing").exists()


def test_the_page_in_a_browser(reported, browser):
    browser.look()
    browser.open(reported)
    assert browser.complaints() == []
    assert browser.requests() == []
    widths = browser.run("[...document.images].map(i => i.naturalWidth)")
    assert len(widths) == 2
    assert min(widths) > 200
    verdicts = "[...document.querySelector('tbody').rows].map(r => r.cells[4].innerText)"
    before = browser.run(verdicts)
    assert len(before) == 2 * len(EXPERIMENT.claims)
    browser.run("document.querySelectorAll('thead th button')[4].click()")
    assert browser.run(verdicts) == sorted(before)
    text = browser.run("document.body.innerText")
    assert "numpy" in text
    assert "tauten reproduce small --reading ones unit --tuning paper" in text


def test_running_again_changes_nothing(reported, monkeypatch):
    monkeypatch.setitem(study.EXPERIMENTS, "small", EXPERIMENT)
    monkeypatch.setattr(study, "NAMES", (*NAMES, "small"))
    before = {p.name: p.read_bytes() for p in reported.parent.iterdir()}
    reproduce("small", reading=("ones", "unit"), replications=3, out=reported.parent)
    assert {p.name: p.read_bytes() for p in reported.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        ("exp11", {}, ValueError, "names must be 'all' or among exp01, .*; got exp11"),
        ([], {}, ValueError, "got none"),
        ("exp01", {"reading": "both"}, ValueError, "reading must be one of"),
        ("ct", {"data": "/nowhere/at/all"}, FileNotFoundError, "data must be a folder"),
    ],
)
def test_wrong_requests_touch_nothing(tmp_path, names, options, error, message):
    with pytest.raises(error, match=message):
        reproduce(names, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_results_of_other_settings_touch_nothing(reported, monkeypatch):
    monkeypatch.setitem(study.EXPERIMENTS, "small", EXPERIMENT)
    monkeypatch.setattr(study, "NAMES", (*NAMES, "small"))
    before = {p.name: p.read_bytes() for p in reported.parent.iterdir()}
    with pytest.raises(ValueError, match="seed is 0, asked 1"):
        reproduce("small", seed=1, out=reported.parent)
    assert {p.name: p.read_bytes() for p in reported.parent.iterdir()} == before


@pytest.mark.parametrize("name", ["exp02", "exp04", "exp08", "exp10"])
def test_labels_stay_inside_their_figures(name, rng):
    experiment = EXPERIMENTS[name]
    methods = experiment.chosen(Settings())
    keys = [(c.panel, c.series, c.x, m) for c in experiment.grid for m in methods]
    errors = {key: rng.uniform(1.0, 2.0, size=4) for key in keys}
    settled = {key: np.ones(4, bool) for key in keys}
    with mpl.rc_context(FIGURE_STYLE):
        fig = draw(experiment, Sample(errors, settled))
        fig.draw_without_rendering()
    labels = [axis.yaxis.label for axis in fig.axes]
    for part in (*fig.legends, *labels):
        box = part.get_window_extent()
        assert fig.bbox.x0 <= box.x0 <= box.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= box.y0 <= box.y1 <= fig.bbox.y1
