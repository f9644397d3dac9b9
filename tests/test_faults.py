"""Killed, out of space, not allowed: no file is ever half there, and errors say what happened."""

import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tauten as tt
from forks import forks, in_a_fork, killed, needs_fork

resource = pytest.importorskip("resource", reason="no limits on this system")
pytestmark = [forks, needs_fork]
RUNS = 50  # kills of each kind
NOBODY = 65534


@pytest.fixture(scope="module")
def data():
    return tt.datasets.make_model("I", 80, shape=(4, 3), rng=0)


@pytest.fixture(scope="module")
def models(data):
    return [tt.TensorRegressor(1, robust=f"huber:nu={nu}").fit(data.X, data.y) for nu in (1, 2)]


def leftovers(folder, name):
    """What is in a folder beside the file: only hidden temporary files may be, after a kill."""
    others = [path.name for path in folder.iterdir() if path.name != name]
    assert all(other.startswith(f".{name}.") for other in others)
    return others


@pytest.fixture
def folder():
    """A folder that other users may enter, which pytest's own may not be."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


# ------------------------------------------------- kill -9


@pytest.mark.slow
def test_save_killed_at_random_moments(models, data, tmp_path, rng):
    path = tmp_path / "model.npz"
    tt.save(models[0], path)
    expected = [model.predict(data.X) for model in models]

    def save_both():
        for model in models:
            tt.save(model, path)

    interrupted = 0
    for _ in range(RUNS):
        killed(save_both, rng.uniform(0, 0.1))
        found = tt.load(path).predict(data.X)
        assert any(np.array_equal(found, one) for one in expected)
        interrupted = len(leftovers(tmp_path, path.name))
    assert interrupted > 0  # some of the kills were in the middle of writing


@pytest.mark.slow
def test_report_killed_at_random_moments(models, data, tmp_path, rng):
    path = tmp_path / "report.html"

    def report():
        models[0].report(path, data.X, data.y, folds=0)

    report()
    for _ in range(RUNS):
        killed(report, rng.uniform(0, 1.5))
        page = path.read_text(encoding="utf-8")
        assert page.startswith("<!")
        assert page.rstrip().endswith("</html>")
    leftovers(tmp_path, path.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"rank": 2, "robust": "auto"}, {"rank": 1, "robust": tt.robust.Truncate(tau="cv")}],
    ids=["fit", "cross-validation"],
)
def test_fit_killed_at_random_moments(options, data, tmp_path, rng):
    path = tmp_path / "checkpoint.npz"
    begin = time.perf_counter()
    whole = tt.TensorRegressor(**options).fit(data.X, data.y)
    took = time.perf_counter() - begin
    model, resumed = tt.TensorRegressor(**options, checkpoint=path), 0
    for _ in range(RUNS):
        killed(partial(model.fit, data.X, data.y), rng.uniform(0, 2 * took))
        resumed += path.exists()
        model.fit(data.X, data.y)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-12)
        assert model.n_iter_ == whole.n_iter_
        assert not path.exists()
    leftovers(tmp_path, path.name)
    assert resumed > 0  # the others were killed before their first iteration, or between fits


# ------------------------------------------------- no space, no permission


def refusal(work, prepare):
    """The error of some work in a child that was prepared to fail at it."""

    def child():
        prepare()
        try:
            work()
        except OSError as error:
            return type(error).__name__, str(error)
        return "no error", ""

    return in_a_fork(child)


def no_space(size=1000):
    """No file may grow beyond a size."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def other_user():
    """Not the owner of the files; an owner that is root may do everything."""
    os.setuid(NOBODY)


needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="cannot become another user"
)


def test_save_without_space(models, data, tmp_path):
    path = tmp_path / "model.npz"
    tt.save(models[0], path)
    before = path.read_bytes()
    _, message = refusal(lambda: tt.save(models[1], path), no_space())
    assert "nothing was written, and a file that was there is unchanged" in message
    assert str(path) in message
    assert path.read_bytes() == before
    assert leftovers(tmp_path, path.name) == []


def test_report_without_space(models, data, tmp_path):
    path = tmp_path / "report.html"
    work = partial(models[0].report, path, data.X, data.y, folds=0)
    _, message = refusal(work, no_space(10_000))
    assert "nothing was written" in message
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_a_folder_that_may_not_be_written_to(models, data, folder):
    pytest.importorskip("matplotlib.style")  # it reads its owner's settings when first imported
    path = folder / "file"
    for work in (
        partial(tt.save, models[0], path),
        partial(models[0].report, path, data.X, data.y, folds=0),
    ):
        kind, message = refusal(work, other_user)
        assert kind == "PermissionError"
        assert "path must lie in a folder that can be written to" in message
    assert list(folder.iterdir()) == []


@needs_root
def test_a_file_that_may_not_be_read(models, folder):
    path = folder / "model.npz"
    tt.save(models[0], path)
    os.chmod(path, 0o600)
    kind, message = refusal(partial(tt.load, path), other_user)
    assert kind == "PermissionError"
    assert str(path) in message
