"""The benchmarks' commands, not what they measure."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("speed")
    found = {name: lambda seconds, name=name: [{"study": name}] for name in module.STUDIES}
    monkeypatch.setattr(module, "STUDIES", found)
    return module


@pytest.mark.parametrize("asked", [[], ["scaling", "memory"]])
def test_studies_of_speed(asked, speed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["speed.py", *asked])
    speed.main()
    assert [line for line in capsys.readouterr().out.split("\n") if line.startswith("| ")] == [
        line for name in asked or speed.STUDIES for line in ("| study |", f"| {name} |")
    ]


def test_fits_are_compared_on_the_same_data(speed):
    """Three data sets of ours, of which the rival had the first two."""
    own = [{"seconds": s, "error": e, "memory": 0.5} for s, e in ((1, 1), (2, 4), (9, 9))]
    rival = [{"seconds": s, "error": e, "memory": 1.0} for s, e in ((10, 4), (60, 4))]
    module = importlib.import_module("speed")
    found = module.beside(rival, own)
    assert found["times slower"] == 20  # the median of 10 and 30
    assert found["on average"] == pytest.approx(70 / 3)
    assert found["error / ours"] == pytest.approx(2)  # of 4 and 1
    assert (found["seconds"], found["from"], found["to"]) == (35, 10, 60)
    assert module.beside(own, own)["times slower"] == 1


def test_the_plain_sweep_can_be_asked_for(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fit = """
import numpy as np, tauten as tt
from tauten.kernels import compiled
compiled.project = compiled.derivatives = None
data = tt.datasets.make_model("II", 200, rng=0)
print(tt.TensorRegressor(rank=1).fit(data.X, data.y).result_.converged)
"""
    program = [sys.executable, "-c", importlib.import_module("whole").PLAIN + fit]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "True\n"
