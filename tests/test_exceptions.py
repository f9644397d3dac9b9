"""Every warning is a class of its own, documented where users look."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import tauten as tt
from tauten import exceptions

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
SOURCES = sorted((ROOT / "src" / "tauten").rglob("*.py"))


def warned(source):
    """Names of the classes in the calls of warnings.warn of a source file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn"):
            given = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "category")]
            yield ast.unparse(given[0]) if given else "UserWarning"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_other_warnings_are_given(path):
    assert set(warned(path.read_text(encoding="utf-8"))) <= set(exceptions.__all__)


def test_every_class_is_given_and_documented():
    given = {name for path in SOURCES for name in warned(path.read_text(encoding="utf-8"))}
    assert given == set(exceptions.__all__)
    for name in given:
        assert f"({name.lower()})=\n## {name}\n" in PAGE
        known = (ConvergenceWarning, DataConversionWarning)
        assert issubclass(getattr(exceptions, name), known)


def test_the_reader_of_sources_sees_every_form():
    calls = "warnings.warn('a', A); warnings.warn('b', category=B); warnings.warn('c'); other(1)"
    assert list(warned(calls)) == ["A", "B", "UserWarning"]


def test_a_fit_that_stops_early_says_what_to_do():
    data = tt.datasets.make_model("I", 200, shape=(4, 4), rng=0)
    advice = "Try a larger n_iter, solver='newton:n_iter=5', or a smaller rank"
    with pytest.warns(exceptions.NotConvergedWarning, match=advice):
        tt.TensorRegressor(1, init="random", solver="newton:n_iter=1").fit(data.X, data.y)


def test_intervals_of_other_data_say_what_to_do():
    data = tt.datasets.make_model("I", 200, shape=(4, 4), rng=0)
    model = tt.TensorRegressor(1).fit(data.X, data.y)
    with pytest.warns(exceptions.IntervalsWarning, match="Pass the data"):
        model.confidence_intervals(data.X, data.y + 10 * data.X[:, 0, 0])


def test_events_of_the_page_are_those_of_the_log():
    from tauten import _log

    told = re.findall(r"^``(\w+)``  ", _log.__doc__, re.M)
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.M) == told
