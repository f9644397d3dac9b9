"""Fits that are stopped, and go on from where they were."""

import errno
import json
import random
import signal
import time
from dataclasses import fields

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tauten as tt
from forks import forks, killed, needs_fork
from tauten import _files
from tauten.checkpoint import Checkpoint, Stage, _stage
from tauten.problem import Problem
from tauten.robust import Truncate
from tauten.solver.result import Progress
from tauten.tucker import Tucker


class StoppedError(Exception):
    pass


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 200, shape=(5, 4, 3), noise="t:2", rng=0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


def stop_after(monkeypatch, count):
    """Let a fit fail right after it has written so many checkpoints."""
    save, saved = Checkpoint.save, []

    def failing(self, stage):
        save(self, stage)
        saved.append(stage.last)
        if len(saved) == count:
            raise StoppedError

    monkeypatch.setattr(Checkpoint, "save", failing)
    return saved


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_so_does_one_that_keeps_tensors(count, data, path, monkeypatch):
    monkeypatch.setattr("tauten.data.base.LARGE", 0)
    test_a_stopped_fit_ends_where_it_would_have({"rank": 1}, count, data, path, monkeypatch)


def test_a_tensor_of_another_shape_is_refused():
    theta = Tucker(np.ones((1, 1)), [np.ones((2, 1)), np.ones((3, 1))])
    meta = {"blocks": 3, "order": 2, "trail": 0, "tensor": True}
    arrays = [*theta.blocks, np.ones((3, 2))]
    with pytest.raises(ValueError, match=r"its tensor is of shape \(3, 2\), not \(2, 3\)"):
        _stage(meta, arrays)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        *(({"rank": 1}, count) for count in (1, 2, 3, 4, 5, 6)),
        *(({"rank": 2, "solver": "gd:n_iter=6"}, count) for count in (1, 6, 7, 12)),
        *(({"rank": 2, "solver": "anderson"}, count) for count in (1, 4, 9)),
        ({"rank": "auto"}, 3),
        ({"rank": 1, "robust": Truncate(tau="cv")}, 2),
    ],
)
def test_a_stopped_fit_ends_where_it_would_have(options, count, data, path, monkeypatch):
    whole = tt.TensorRegressor(**options).fit(data.X, data.y)
    with monkeypatch.context() as patch:
        saved = stop_after(patch, count)
        try:
            tt.TensorRegressor(**options, checkpoint=path).fit(data.X, data.y)
        except StoppedError:
            assert path.exists()
        else:
            assert len(saved) < count  # it was done before
    again = tt.TensorRegressor(**options, checkpoint=path).fit(data.X, data.y)
    np.testing.assert_allclose(again.coef_, whole.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(again.influence_, whole.influence_, atol=1e-9)
    assert again.n_iter_ == whole.n_iter_
    mine, theirs = ([i.value for i in m.result_.history] for m in (again, whole))
    np.testing.assert_allclose(mine, theirs)
    assert getattr(again, "rank_path_", None) == getattr(whole, "rank_path_", None)
    assert not list(path.parent.iterdir())


def test_the_last_run_knows_the_last_step_of_the_one_before():
    """And its tensor, which the next steps are taken with."""
    tensor = np.ones(2)
    stage = Stage(progress=Progress(moved=0.3, before=0.5, keeps=True, tensor=tensor))
    stage.advance(Tucker(np.ones(1), [np.ones((2, 1))]))
    assert stage.last
    assert stage.progress == Progress(before=0.3, keeps=True, tensor=tensor)


def test_all_numbers_of_a_run_are_kept(path):
    names = [entry.name for entry in fields(Progress) if entry.type == "float"]
    numbers = {name: float(i) for i, name in enumerate(names)}
    theta = Tucker(np.ones(1), [np.ones((2, 1))])
    file = Checkpoint(path, "of this fit")
    pairs = [(theta.map(lambda x, i=i: x + i), theta.map(lambda x, i=i: x - i)) for i in (1, 2)]
    file.save(Stage(theta, False, progress=Progress([theta], [], **numbers, memory=pairs)))
    found = file.load(np.asarray).progress
    assert len(numbers) == 5
    assert {name: getattr(found, name) for name in numbers} == numbers
    assert len(found.trail) == 1
    for mine, theirs in zip(found.memory, pairs, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a.flat(), b.flat())


def test_threads_and_memory_may_change_in_between(data, path, monkeypatch):
    whole = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StoppedError):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    again = tt.TensorRegressor(rank=1, checkpoint=path, n_jobs=1, memory="1GB").fit(data.X, data.y)
    np.testing.assert_allclose(again.coef_, whole.coef_, rtol=0, atol=1e-12)


def test_what_was_chosen_is_not_chosen_again(data, path, monkeypatch):
    options = {"rank": "auto", "robust": Truncate(tau="cv"), "checkpoint": path}
    whole = tt.TensorRegressor(**{**options, "checkpoint": None}).fit(data.X, data.y)
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tt.TensorRegressor(**options).fit(data.X, data.y)
    for name in ("select_rank", "threshold_and_start", "start"):
        monkeypatch.setattr(tt.estimators.base, name, None)
    again = tt.TensorRegressor(**options).fit(data.X, data.y)
    np.testing.assert_array_equal(again.cv_results_.taus, whole.cv_results_.taus)
    np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-12)


def test_a_ridge_is_not_chosen_again(path, monkeypatch):
    data = tt.datasets.make_model("III", 60, shape=(5, 4), rng=0)
    whole = tt.TensorClassifier(2).fit(data.X, data.y)
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tt.TensorClassifier(2, checkpoint=path).fit(data.X, data.y)
    monkeypatch.setattr(tt.estimators.base, "select_ridge", None)
    again = tt.TensorClassifier(2, checkpoint=path).fit(data.X, data.y)
    np.testing.assert_array_equal(again.ridge_path_.ridges, whole.ridge_path_.ridges)
    assert again.ridge_ == whole.ridge_
    np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-12)


@pytest.mark.parametrize(
    "other", [{"rank": 2}, {"robust": "huber"}, {"fit_intercept": False}, {"init": "spectral"}]
)
def test_other_settings_are_refused(other, data, path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is of another fit: of other data or other settings"):
        tt.TensorRegressor(**{"rank": 1, **other}, checkpoint=path).fit(data.X, data.y)
    for X, y in ((data.X[1:], data.y[1:]), (data.X, data.y + 1)):
        with pytest.raises(ValueError, match="is of another fit"):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(X, y)
    assert path.read_bytes() == before


@pytest.mark.parametrize("contents", [b"", b"no", b"PK\x03\x04 broken"])
def test_other_files_are_refused_and_left_alone(contents, data, path):
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="is not one of this library"):
        tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    assert path.read_bytes() == contents


def test_archives_of_others_are_refused(data, path):
    np.savez(path, meta=np.array(json.dumps({"a": 1})))
    with pytest.raises(ValueError, match="is not one of this library"):
        tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    np.savez(path, meta=np.array([{}], dtype=object))  # it would be unpickled
    with pytest.raises(ValueError, match="is not one of this library"):
        tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)


def test_every_flipped_byte_is_seen(data, path, monkeypatch, rng):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StoppedError):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    good = path.read_bytes()
    for at in rng.integers(len(good), size=20):
        bad = bytearray(good)
        bad[at] ^= 1
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="is not one of this library"):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)


def test_a_folder_that_is_not_there(data, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder"):
        tt.TensorRegressor(rank=1, checkpoint=tmp_path / "no" / "fit.npz").fit(data.X, data.y)


def test_a_full_disk(data, path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "fsync", full)
        with pytest.raises(OSError, match=r"could not be written: No space left .* still there"):
            tt.TensorRegressor(rank=1, checkpoint=path).fit(data.X, data.y)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["fit.npz"]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_an_interrupt_keeps_what_was_found(count, data, monkeypatch):
    solver = tt.solver.Newton(n_iter=8, tol=0.0)
    points = []
    gradient = Problem.gradient_from

    def interrupted(self, theta, *args, **options):
        points.append(theta)
        if len(points) == count:
            signal.raise_signal(signal.SIGINT)
        return gradient(self, theta, *args, **options)

    # This start runs no solver, so that what is counted are iterations.
    model = tt.TensorRegressor(rank=1, solver=solver, robust="truncate:tau=5", init="spectral")
    monkeypatch.setattr(Problem, "gradient_from", interrupted)
    with pytest.warns(ConvergenceWarning, match=f"interrupted after {count - 1} iterations; what"):
        model.fit(data.X, data.y)
    np.testing.assert_allclose(model.coef_, points[-1].full(), atol=1e-12)
    assert model.n_iter_ == count - 1
    assert np.isnan(model.influence_).all()
    assert model.predict(data.X).shape == (200,)


@forks
@needs_fork
@pytest.mark.parametrize("runs", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_driver(runs, data, path):
    def fit(**options):
        model = tt.TensorRegressor(rank=2, solver="gd:n_iter=60", **options)
        return model.fit(data.X, data.y).coef_

    begin = time.perf_counter()
    whole, rng = fit(), random.Random(0)
    long = 2 * (time.perf_counter() - begin)  # checkpoints are written as well
    resumed = 0
    while resumed < runs:
        killed(lambda: fit(checkpoint=path), rng.uniform(0, long))
        if path.exists():  # it may be between two fits
            resumed += 1
            np.testing.assert_allclose(fit(checkpoint=path), whole, rtol=0, atol=1e-12)
        for left in path.parent.iterdir():  # a kill can leave a temporary file, never a broken one
            left.unlink()
