"""Every Python block in the README, CONTRIBUTING and docs runs as it stands, page by page."""

import importlib
import inspect
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import tauten as tt
from tauten import experiments
from tauten.cli import main
from tauten.losses import Loss
from tauten.robust import Robustifier

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
PAGES = [README, CONTRIBUTING, *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language="python"):
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def registries():
    """Put the registries back as they were: the worked examples register themselves."""
    before = [(family, dict(family.registry)) for family in (Loss, Robustifier)]
    yield
    for family, registry in before:
        family.registry.clear()
        family.registry.update(registry)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_blocks_run(page, registries, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages save pictures and models
    scope = {"__name__": "example"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), scope)


def test_commands_run(tmp_path, monkeypatch, capsys):
    """Every command of the page on the command line; a pipe in memory, its output as input."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(blocks(ROOT / "docs" / "command-line.md", "bash")).splitlines()
    for line in lines:
        out = ""
        for command in line.split("|"):
            name, *arguments = shlex.split(command)
            assert name == "tauten"
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
            code = main(arguments)
            out, err = capsys.readouterr()
            assert code == 0, f"{line}: {err}"
    made = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "predictions.csv", "predictions.npz"} <= made


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_readme_says_the_errors_that_come_out(capsys):
    scope = {}
    exec(compile(blocks(README)[0], "README.md", "exec"), scope)
    error = float(capsys.readouterr().out.split()[0])
    plain = tt.TensorRegressor(rank=2, robust="none").fit(scope["X"], scope["y"])
    rival = tt.metrics.relative_error(plain.coef_, scope["truth"])
    said = re.search(r"# ([\d.]+); least squares: ([\d.]+)", README.read_text(encoding="utf-8"))
    assert f"{error:.2f}" == said[1]
    # Least squares does not settle on these data: its last digits depend on the machine.
    assert rival == pytest.approx(float(said[2]), rel=0.1)


def test_comparison_with_tensorly_says_the_errors_that_come_out(capsys):
    page = ROOT / "docs" / "coming-from.md"
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), {})
    *regression, ours, theirs = capsys.readouterr().out.splitlines()
    errors = [line.split("error")[1].split()[0] for line in regression]
    assert f"| normal | {errors[0]} | {errors[1]} |" in text
    assert f"freedom | {errors[2]} | {errors[3]} |" in text
    assert f"# {ours.split()[1]}\n" in text
    assert f"# {theirs.split()[1]}\n" in text


def test_algebra_is_tensorlys_as_the_table_says():
    tl = pytest.importorskip("tensorly")
    rng = np.random.default_rng(0)
    Y, Ms = rng.normal(size=(4, 5, 6)), [rng.normal(size=(2, p)) for p in (4, 5, 6)]
    theirs = tl.tenalg.mode_dot(Y, Ms[1], 1)
    np.testing.assert_allclose(tt.tucker.mode_dot(Y, Ms[1], 1), theirs)
    np.testing.assert_allclose(tt.tucker.multi_mode_dot(Y, Ms), tl.tenalg.multi_mode_dot(Y, Ms))
    for k in range(3):
        ours, theirs = tt.tucker.unfold(Y, k), tl.unfold(Y, k)
        others = [p for j, p in enumerate(Y.shape) if j != k]
        order = np.arange(theirs.shape[1]).reshape(others).T.ravel()  # the first index fastest
        np.testing.assert_array_equal(ours, theirs[:, order])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_start_says_the_errors_that_come_out(capsys):
    block = blocks(ROOT / "docs" / "start.md")[0]
    exec(compile(block, "start.md", "exec"), {})
    said = re.findall(r"# (0\.\d+)$", block, re.M)
    assert said == [f"{float(error):.2f}" for error in capsys.readouterr().out.split()]


def test_worked_examples_conform_and_are_small(registries, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, block in zip(("example_loss", "example_robust"), blocks(CONTRIBUTING), strict=True):
        assert len(block.splitlines()) < 60
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    tt.testing.check_loss(importlib.import_module("example_loss").PseudoHuber())
    tt.testing.check_robustifier(importlib.import_module("example_robust").Trim())
    data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    model = tt.TensorRegressor(1, loss="pseudo_huber:nu=2").fit(data.X, data.y)
    assert tt.metrics.relative_error(model.coef_, data.truth) < 0.3


def test_every_local_link_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("gallery/"):  # made by `make docs`, which checks these links
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


# What users are given, catch or inherit from, and do not make.
GIVEN = {"DataFileError", "Iteration", "ModelFileError", "Pilot", "Solver"}
MODULES = [module for name in tt.__all__ if inspect.ismodule(module := getattr(tt, name))]


@pytest.mark.parametrize("module", [tt, experiments, *MODULES], ids=lambda module: module.__name__)
def test_every_public_name_has_an_example(module):
    public = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    made = {name: getattr(module, name) for name in public if name not in GIVEN}
    bare = [name for name, x in made.items() if callable(x) and ">>>" not in (x.__doc__ or "")]
    assert made
    assert not bare
