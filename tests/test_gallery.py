"""The worked examples run, and wild values hurt the robust fit less than its rivals."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "gallery").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # an example says itself which warnings it expects
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_tells_the_truth(path, capsys, monkeypatch):
    if path.stem == "plot_macro":
        pytest.importorskip("statsmodels")
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(path))
    assert plt.get_fignums(), "an example ends with a picture"
    plt.close("all")
    rows = re.findall(r"^(.+?) +clean (\S+) +wild (\S+)$", capsys.readouterr().out, re.M)
    loss = {method: abs(float(wild) - float(clean)) for method, clean, wild in rows}
    robust = loss.pop("tauten, auto")
    assert len(loss) >= 2
    assert robust < min(loss.values()) / 4
