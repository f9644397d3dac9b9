"""Models come back from files as they were, to the last bit."""

import io as stdio
import json
import os
import stat
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import tauten as tt
from tauten.datasets import make_model
from tauten.losses import Loss
from tauten.robust import Adaptive, Robustifier, Truncate
from tauten.solver import Newton

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GOLDEN = Path(__file__).parents[1] / "golden"


def again(model, tmp_path):
    path = tmp_path / "model.npz"
    tt.save(model, path)
    return tt.load(path)


def same(mine, theirs):
    """Compare everything that two objects hold, to the last bit."""
    assert type(mine) is type(theirs)
    if isinstance(mine, (np.ndarray, xr.DataArray)):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
        assert getattr(mine, "dims", None) == getattr(theirs, "dims", None)
    elif isinstance(mine, (list, tuple)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            same(a, b)
    elif isinstance(mine, dict):
        assert list(mine) == list(theirs)
        same(list(mine.values()), list(theirs.values()))
    elif isinstance(mine, np.random.Generator):
        same(mine.bit_generator.state, theirs.bit_generator.state)
    elif is_dataclass(mine):  # what it is made of: it may have worked out more, and kept it
        for part in fields(mine):
            same(getattr(mine, part.name), getattr(theirs, part.name))
    elif hasattr(mine, "__dict__"):
        same(vars(mine), vars(theirs))
    else:
        assert mine == theirs or np.isnan([mine, theirs]).all()


DATA = make_model("I", 80, shape=(4, 3), noise="t:2", rng=0)
COUNTS = np.random.default_rng(0).poisson(2.0, 80)
KINDS = np.array(["b", "a", "c"])[np.arange(80) % 3]
Z = np.random.default_rng(1).normal(size=(80, 2))


def fits():
    """One fitted model for each loss, each robust gradient and each kind of estimator."""
    classes = [name for name, loss in Loss.registry.items() if loss.classes]
    for loss in sorted(set(Loss.registry) - set(classes)):
        y = COUNTS + 1.0 if loss in {"poisson", "gamma"} else DATA.y
        yield f"loss {loss}", tt.TensorRegressor(1, loss=loss, robust="none"), (DATA.X, y), {}
    for robust in sorted(Robustifier.registry):
        model = tt.TensorRegressor(1, robust=robust, solver="newton:n_iter=3")
        yield f"robust {robust}", model, (DATA.X, DATA.y), {}
    yield "auto rank", tt.TensorRegressor(), (DATA.X, DATA.y), {"covariates": Z}
    truncate = Truncate(tau=[1.0, np.ones((4, 1)), 2.0, 3.0])
    yield (
        "instances",
        tt.TensorRegressor(
            1, robust=truncate, loss=Loss.get("huber:nu=3"), solver=Newton(n_iter=4),
            init=tt.Tucker(np.ones((1, 1)), [np.ones((4, 1)), np.ones((3, 1))]),
            random_state=np.random.default_rng(3),
        ),
        (DATA.X, DATA.y),
        {},
    )  # fmt: skip
    yield "tau by cv", tt.TensorRegressor(1, robust=Truncate("cv")), (DATA.X, DATA.y), {}
    single = DATA.X.astype(np.float32)
    yield "single precision", tt.TensorRegressor(1), (single, np.stack([DATA.y, COUNTS], 1)), {}
    few = "newton:n_iter=3"
    yield "two classes", tt.TensorClassifier(1, solver=few), (DATA.X, DATA.y > 0), {}
    weights = {"a": 2.0, "b": 1, "c": 1}
    words = KINDS.astype(object)
    model = tt.TensorClassifier(1, solver=few, class_weight=weights)
    yield "three classes", model, (DATA.X, words), {"covariates": Z}
    yield "pca", tt.TensorPCA(1), (DATA.X[:5],), {}
    missing = np.where(DATA.X > 2, np.nan, DATA.X)
    yield "pca of replicates", tt.TensorPCA(2, replicates=True, robust="mom"), (missing,), {}
    yield "scaler", tt.TensorScaler(2), (missing,), {}
    yield "tensorize", tt.Tensorize((2, -1), lags=2), (DATA.X,), {}
    yield "not fitted", tt.TensorRegressor(rank=(1, 2), robust=Adaptive(tau=np.inf)), None, {}


CASES = {name: rest for name, *rest in fits()}


@pytest.mark.parametrize("case", CASES)
def test_everything_comes_back(case, tmp_path):
    model, data, extras = CASES[case]
    if data is not None:
        model.fit(*data, **extras)
    found = again(model, tmp_path)
    same(found, model)
    covariates = extras.get("covariates")
    if hasattr(model, "predict") and data is not None:
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, method):
                theirs = getattr(model, method)(data[0], covariates=covariates)
                np.testing.assert_array_equal(
                    getattr(found, method)(data[0], covariates=covariates), theirs
                )
    elif data is not None:
        np.testing.assert_array_equal(found.transform(data[0]), model.transform(data[0]))


def test_a_fit_with_a_checkpoint_can_be_saved(tmp_path):
    path = tmp_path / "checkpoint.npz"
    model = tt.TensorRegressor(1, checkpoint=path).fit(DATA.X, DATA.y)
    found = again(model, tmp_path)
    assert found.checkpoint == str(path)
    np.testing.assert_array_equal(found.coef_, model.coef_)


def test_a_point_comes_back(tmp_path, make_theta):
    point = make_theta((4, 3, 2), (2, 2, 1))
    same(again(point, tmp_path), point)
    affine = make_theta((4, 3), (2, 2), (2,))
    same(again(affine, tmp_path), affine)


def test_labels_come_back(tmp_path):
    X = xr.DataArray(
        DATA.X,
        dims=("day", "row", "column"),
        coords={
            "row": np.datetime64("2020-01-01", "ns") + np.arange(4),
            "column": ["a", "b", "c"],
            "both": (("row", "column"), np.arange(12).reshape(4, 3)),
        },
    )
    model = tt.TensorRegressor(1).fit(X, DATA.y)
    found = again(model, tmp_path)
    xr.testing.assert_identical(found.coef_, model.coef_)
    with pytest.raises(ValueError, match="Transpose"):
        found.predict(X.rename(row="line"))


def test_feature_names_come_back(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(DATA.X[:, 0], columns=list("abc"))
    model = again(tt.TensorRegressor().fit(frame, DATA.y), tmp_path)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    model = tt.TensorRegressor(1, robust=Truncate(2.0)).fit(DATA.X, DATA.y)
    found = again(model, tmp_path)
    same(found.fit(DATA.X, DATA.y), model)


def test_the_same_model_makes_the_same_file(tmp_path):
    model = tt.TensorRegressor(1).fit(DATA.X, DATA.y)
    for name in ("one", "two"):
        tt.save(model, tmp_path / name)
    tt.save(tt.load(tmp_path / "one"), tmp_path / "three")
    files = {(tmp_path / name).read_bytes() for name in ("one", "two", "three")}
    assert len(files) == 1


def test_an_array_that_occurs_twice_is_kept_once(tmp_path):
    model = again(tt.TensorPCA(1).fit(DATA.X[:5]), tmp_path)
    assert model.low_rank_ is model.coef_
    assert model.result_.theta.core is model.tucker_.core


def test_the_file_is_an_open_one(tmp_path):
    """numpy and any zip program can read it, without us and without pickle."""
    model = tt.TensorRegressor(1).fit(DATA.X, DATA.y)
    tt.save(model, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        document = json.loads(archive["model.json"])
        index = document["model"]["state"]["coef_"]["index"]
        np.testing.assert_array_equal(archive[f"array_{index}"], model.coef_)
    assert document["tauten"] == tt.__version__
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        assert archive.testzip() is None


# ------------------------------------------------- golden files


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("model-*.npz")))
def test_files_of_earlier_versions_keep_loading(name):
    model = tt.load(GOLDEN / name)
    with np.load(GOLDEN / name.replace("model-", "expected-"), allow_pickle=False) as expected:
        found = model.predict(expected["X"], covariates=expected["covariates"])
        np.testing.assert_allclose(found, expected["predicted"], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.coef_, expected["coef"])
        assert model.robust_.tau_ == expected["tau"]


def test_there_is_a_golden_file_of_every_format():
    formats = {json.loads(np.load(p)["model.json"])["format"] for p in GOLDEN.glob("model-*.npz")}
    assert formats == set(range(1, tt.io.FORMAT + 1))


# ------------------------------------------------- what cannot be saved, and where


class Stranger(Truncate):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"a": 1}, "model must be one of TensorRegressor.* got dict"),
        (None, "model must be"),
        (tt.TensorRegressor(robust=Stranger()), r"model\.robust: a Stranger"),
        (tt.TensorRegressor(rank=print), r"model\.rank"),
        (tt.TensorClassifier(class_weight={"a": 1j}), r"model\.class_weight"),
        (tt.TensorRegressor(rank=np.array([None])), r"model\.rank: an array of object"),
    ],
)
def test_what_has_no_place_in_a_file(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        tt.save(model, tmp_path / "model.npz")
    assert os.listdir(tmp_path) == []


def test_a_file_stays_when_saving_fails(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    tt.save(tt.TensorScaler(), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        tt.save(tt.TensorPCA(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def test_places_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="a folder that exists"):
        tt.save(tt.TensorPCA(), tmp_path / "nowhere" / "model.npz")
    with pytest.raises(IsADirectoryError, match="must name a file"):
        tt.save(tt.TensorPCA(), tmp_path)
    with pytest.raises(FileNotFoundError):
        tt.load(tmp_path / "model.npz")
    with pytest.raises(TypeError):
        tt.save(tt.TensorPCA(), stdio.BytesIO())


def test_links_and_permissions_are_those_of_any_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model.npz")
    tt.save(tt.TensorPCA(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "other").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model.npz", "other")}
    assert len(modes) == 1
