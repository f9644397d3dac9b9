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
