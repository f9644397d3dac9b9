"""The benchmarks' commands, not what they measure."""

import importlib
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
