"""What verbose=1 shows."""

import re
import sys

import numpy as np
import pytest

import tauten as tt
from tauten.robust import Truncate


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 100, shape=(4, 3), rng=0)


@pytest.fixture
def no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def bars(capsys):
    """The last state of each bar, by its name."""
    out, err = capsys.readouterr()
    assert out == ""
    found = (re.match(r"(\w+): (.*)", line) for line in re.split(r"[\r\n]+", err))
    return {match[1]: match[2] for match in found if match}


def test_a_bar_with_what_matters(data, capsys):
    model = tt.TensorRegressor(1, verbose=1).fit(data.X, data.y)
    last = model.result_.history[-1]
    shown = bars(capsys)
    assert list(shown) == ["fit"]
    assert f"loss {last.value:.6g}   change {last.change:.2e}   truncated" in shown["fit"]
    assert shown["fit"].startswith("100%")  # though fewer iterations were needed than allowed


def test_time_left(data, capsys):
    tt.TensorRegressor(1, verbose=1, solver="gd:n_iter=30", robust="none").fit(data.X, data.y)
    left = re.findall(r" (\d+)/30 \[\d\d:\d\d<(?:\d\d:\d\d|\?)", capsys.readouterr().err)
    assert left[0] == "0"
    assert left[-1] == "30"


def test_choices_have_bars(data, capsys):
    model = tt.TensorRegressor("auto", robust=Truncate(tau="cv"), verbose=1).fit(data.X, data.y)
    shown = bars(capsys)
    assert list(shown) == ["ranks", "thresholds", "fit"]
    candidates = len(model.cv_results_.taus)
    assert f" {candidates}/{candidates} [" in shown["thresholds"]
    assert f" {len(model.rank_path_.ranks)}/" in shown["ranks"]


def test_the_bootstrap_has_a_bar(data, capsys):
    model = tt.TensorRegressor(1, verbose=1).fit(data.X, data.y)
    capsys.readouterr()
    model.confidence_intervals(data.X, data.y)
    assert bars(capsys) == {}
    model.confidence_intervals(data.X, data.y, method="bootstrap", n_boot=20, random_state=0)
    shown = bars(capsys)
    assert list(shown) == ["bootstrap"]
    assert " 20/20 [" in shown["bootstrap"]
    assert "replicate/s" in shown["bootstrap"]


def test_lines_without_tqdm(data, capsys, no_tqdm):
    model = tt.TensorRegressor(1, verbose=1).fit(data.X, data.y)
    model.confidence_intervals(data.X, data.y, method="bootstrap", n_boot=20, random_state=0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("iteration    1   loss ")
    assert lines[-3:] == ["bootstrap 0 of 20", "bootstrap 16 of 20", "bootstrap 20 of 20"]


def test_nothing_is_shown_unasked(data, capsys):
    model = tt.TensorRegressor("auto").fit(data.X, data.y)
    found = model.confidence_intervals(data.X, data.y, method="bootstrap", n_boot=2)
    assert np.isfinite(found.stderr).all()
    assert capsys.readouterr() == ("", "")
