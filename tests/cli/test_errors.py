"""Bad input: exit code 2, one or two lines that say what to do, and no traceback."""

import os
import stat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tauten as tt
from tauten.cli import main
from tauten.cli.app import COMMANDS, parser


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data and a model."""
    monkeypatch.chdir(tmp_path)
    drawn = tt.datasets.make_model("I", 60, shape=(4, 3), rng=0)
    np.savez("data.npz", X=drawn.X, y=drawn.y)
    np.savez("nan.npz", X=np.where(drawn.X > 2, np.nan, drawn.X), y=drawn.y)
    np.savez("classes.npz", X=drawn.X, y=np.where(drawn.y > 0, "a", "b"))
    np.savez("words.npz", X=np.full((60, 4), "a"), y=drawn.y)
    np.savez("short.npz", X=drawn.X, y=drawn.y[:50])
    np.savez("other.npz", X=drawn.X.transpose(0, 2, 1), y=drawn.y)
    np.save("X.npy", drawn.X)
    tt.save(tt.TensorRegressor(1).fit(drawn.X, drawn.y), "model.npz")
    tt.save(tt.TensorScaler(), "scaler.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and then nothing")
    (tmp_path / "table.csv").write_text("a,b,y\n1,2,3\n4,x,6\n")
    return tmp_path


CASES = {
    "": "required: COMMAND; see tauten --help",
    "fly": "invalid choice: 'fly'",
    "fit": "required: DATA; see tauten fit --help",
    "fit none.npz": "there is no file or folder 'none.npz'",
    "fit data.npz --rank x": "argument --rank: 'x' is not auto, cv, a rank such as 2 or one per",
    "fit data.npz --rank 9,9": "rank of mode 1 must be a whole number from 1 to its dimension 4",
    "fit data.npz --robust trunk": "unknown robustifier 'trunk'",
    "fit data.npz --robust truncate:t=1": "'t=1' is not a parameter of 'truncate'",
    "fit data.npz --loss sqared": "did you mean 'squared'?",
    "fit data.npz --ro auto": "arguments: --ro auto: did you mean --robust?; see tauten fit",
    "fit data.npz --y Z": "'data.npz' holds no 'Z', nor is there such a file; it holds X, y",
    "fit data.npz --x Z": "cannot read 'data.npz': it has no array 'Z': choose x from X, y",
    "fit data.npz --shape 5,5": "its samples have the shape (4, 3), not (5, 5)",
    "fit data.npz --size 0": "argument --size: '0' is not a height and a width such as 32x32",
    "fit data.npz --seed -1": "argument --seed: '-1' is not a whole number from 0 on",
    "fit data.npz --report r.html --folds 1": "folds must be 0, for none, or at least 2; got 1",
    "fit data.npz --robust truncate:tau=big": "one of auto, theory, tuning-free, cv; got 'big'",
    "fit data.npz --pca --classify": "not allowed with argument",
    "fit data.npz --pca --y y": "--y does not go with --pca",
    "fit data.npz --pca --loss huber": "--loss does not go with --pca",
    "fit data.npz --replicates": "--replicates goes with --pca only",
    "fit data.npz --classify": "y must hold a class per sample: Unknown label type: continuous. Is",
    "fit classes.npz": "y holds text such as 'a': if these are classes, add --classify",
    "fit X.npy": "no responses in 'X.npy': say where they are with --y NAME",
    "fit nan.npz": "X must be an array of numbers: Input X contains NaN. Fill in or leave out",
    "fit words.npz": "X must be an array of numbers: could not convert string to float: 'a'. Code",
    "fit short.npz": "must have the same number of samples along axis 0",
    "fit bad.npz": "cannot read 'bad.npz': File is not a zip file",
    "fit table.csv": "column 'b': 'x' is not a number",
    "fit data.npz --model data.npz": "'data.npz' would be overwritten, but is read as well",
    "fit data.npz --model none/m.npz": "path must lie in a folder that exists",
    "fit data.npz --report .": "path must name a file; got the folder",
    "predict model.npz none.npz": "there is no file or folder 'none.npz'",
    "predict none.npz data.npz": "error: No such file or directory: 'none.npz'",
    "predict data.npz data.npz": "cannot load 'data.npz'",
    "predict scaler.npz data.npz": "'scaler.npz' holds no fit that predicts, but a TensorScaler",
    "predict model.npz other.npz": "its samples have the shape (3, 4), not (4, 3)",
    "predict model.npz data.npz -o p.xls": "output must be a .csv or .npz file; got 'p.xls'",
    "predict model.npz data.npz --covariates y": "covariates must have as many columns as in fit",
    "inspect bad.npz": "cannot read 'bad.npz'",
    "simulate --n 0": "n must be at least 1; got 0",
    "simulate --noise tt:1": "a distribution must be 'normal', 't:DF'",
    "simulate --model V": "invalid choice: 'V'",
    "simulate --rank 2": "rank must be 1 for reading 'unit'",
    "demo -o data.npz": "error: File exists: 'data.npz'",
    "completion tcsh": "invalid choice: 'tcsh'",
}


@pytest.mark.parametrize("line", CASES)
def test_bad_input(folder, line, capsys):
    before = sorted(os.listdir(folder))
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    told = [text for text in err.splitlines() if text.startswith("tauten: error: ")]
    assert len(told) == 1
    assert CASES[line] in told[0]
    assert len(err.splitlines()) <= 2
    assert "Traceback" not in err
    assert sorted(os.listdir(folder)) == before


def test_debug_shows_where(folder, capsys):
    assert main(["fit", "none.npz", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_output_is_checked_before_the_work(folder, capsys, monkeypatch):
    def fit(*_, **__):
        raise AssertionError("the fit was begun")

    monkeypatch.setattr(tt.TensorRegressor, "fit", fit)
    assert main(["fit", "data.npz", "--model", "none/m.npz"]) == 2
    assert main(["fit", "data.npz", "--report", "none/r.html"]) == 2
    assert main(["fit", "data.npz"]) == 1
    assert "unexpected AssertionError: the fit was begun" in capsys.readouterr().err


def test_numerical_failure(folder, capsys, monkeypatch):
    def fit(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(tt.TensorRegressor, "fit", fit)
    assert main(["fit", "data.npz"]) == 1
    assert capsys.readouterr().err.endswith("error: the fit failed: SVD did not converge\n")


def test_missing_extra(folder, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (folder / "a.h5").write_bytes(b"")
    assert main(["inspect", "a.h5"]) == 2
    assert 'HDF5 files need h5py: pip install "tauten[io]"' in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_cannot_be_written(folder, capsys):
    (folder / "locked").mkdir()
    os.chmod(folder / "locked", stat.S_IRUSR | stat.S_IXUSR)
    assert main(["fit", "data.npz", "--model", "locked/m.npz"]) == 2


def words():
    """Words that are options, values of options, files, or anything."""
    flags = sorted(
        {
            flag
            for command in parser()._subparsers._group_actions[0].choices.values()
            for action in command._actions
            for flag in action.option_strings
        }
        - {"-o", "--output", "--out", "--model", "--report"}
    )
    names = [module.__name__.rpartition(".")[2] for module in COMMANDS]
    files = ["data.npz", "bad.npz", "table.csv", "model.npz", "none", "."]
    values = ["1", "-1", "0", "1e9", "y", "X", "auto", "I", "2,2", "truncate:tau=1", "bash", "t:2"]
    known = st.sampled_from(flags + files + values + names)
    return known | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    command=st.sampled_from(
        ["fit", "predict", "inspect", "completion", "--version", "", "simulate"]
    ),
    rest=st.lists(words(), max_size=6),
)
def test_any_arguments(folder, capsys, monkeypatch, command, rest):
    """Whatever is typed ends with an exit code, and never with a traceback."""
    monkeypatch.setattr(tt.TensorRegressor, "fit", lambda *_, **__: _raise(ValueError("no")))
    monkeypatch.setattr("tauten.datasets.make_model", lambda *_, **__: _raise(ValueError("no")))
    rest = [word for word in rest if word not in {"-", "--debug"}]
    assert main([command, *rest]) in {0, 2}
    assert "Traceback" not in capsys.readouterr().err


def _raise(error):
    raise error
