"""The command line as a user has it: real files, real processes for the main paths."""

import csv
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tauten as tt
from tauten.cli import main
from tauten.cli.app import parser

ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "default"}
TAUTEN = f"{sys.executable} -m tauten"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in this process, in a folder of its own; return code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


@pytest.fixture
def data(tmp_path):
    """Regression data with heavy tails, in files."""
    drawn = tt.datasets.make_model("I", 120, shape=(4, 3), noise="t:1.5", rng=0)
    np.savez(tmp_path / "data.npz", X=drawn.X, y=drawn.y, Z=drawn.X[:, 0, :2])
    return drawn


def bash(script, folder):
    """Run a script in a real shell, with `tauten` as the command."""
    prelude = f'set -o pipefail; tauten() {{ {TAUTEN} "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", prelude + script],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_session_in_a_shell(run, tmp_path):
    """Fit, predict from the standard input, and a pipe to head, in one shell.

    A terminal without Greek letters gets them in another form, not a traceback.
    """
    run("simulate", "--n", 200, "--shape", "4,3", "--noise", "t:1.5", "--seed", 3, "-o", "data.csv")
    done = bash(
        """
        export PYTHONIOENCODING=ascii
        tauten fit data.csv --shape 4,3 --rank 1 --model m.npz > told 2> progress || exit 11
        cat data.csv | tauten predict m.npz - > predictions.csv || exit 12
        yes "$(tail -1 data.csv)" | head -8000 | tauten predict m.npz - --ignore 13 | head -2
        echo "${PIPESTATUS[@]}"
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "sample,prediction"
    assert done.stdout.splitlines()[-1].split()[2:] == ["0", "0"]
    drawn = tt.datasets.make_model("I", 200, shape=(4, 3), noise="t:1.5", rng=3)
    model = tt.TensorRegressor(1, random_state=0).fit(drawn.X, drawn.y)
    table = list(csv.reader((tmp_path / "predictions.csv").read_text().splitlines()))
    assert table[0] == ["sample", "prediction"]
    np.testing.assert_allclose(
        [float(row[1]) for row in table[1:]], model.predict(drawn.X), rtol=1e-9
    )
    assert "200 \\xd7 4 \\xd7 3; fitting" in (tmp_path / "progress").read_text()
    assert (tmp_path / "told").read_text().startswith("TensorRegressor of 200 samples")


def test_interrupted_fit_leaves_nothing_and_says_nothing(tmp_path, data):
    command = f"{TAUTEN} fit data.npz --rank 2 --robust none --verbose --model m.npz".split()
    command += ["--solver", "gd:n_iter=100000000,step_size=1e-12,tol=0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "fitting" in process.stderr.readline()
        process.stderr.read(40)  # of the iterations, or their bar: the fit has begun
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert sorted(os.listdir(tmp_path)) == ["data.npz"]


def test_fit_is_that_of_the_library(run, tmp_path, data):
    code, out, err = run(
        "fit", "data.npz", "--x", "X", "--y", "y", "--covariates", "Z", "--rank", "1,1",
        "--robust", "truncate:tau=2", "--no-intercept", "--model", "m.npz",
    )  # fmt: skip
    assert code == 0
    Z = data.X[:, 0, :2]
    expected = tt.TensorRegressor(
        (1, 1), robust="truncate:tau=2", fit_intercept=False, random_state=0
    ).fit(data.X, data.y, covariates=Z)
    model = tt.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.covariate_coef_, expected.covariate_coef_)
    assert out == tt.report.describe(model) + "\n"
    assert err.splitlines() == ["data.npz: 120 × 4 × 3; fitting", "model: m.npz"]
    assert run("inspect", "m.npz") == (0, out, "")
    code, out, _ = run("predict", "m.npz", "data.npz", "--covariates", "Z")
    assert code == 0
    found = [float(line.split(",")[1]) for line in out.splitlines()[1:]]
    np.testing.assert_array_equal(found, expected.predict(data.X, Z))


def test_report_names_the_samples(run, tmp_path, data):
    pytest.importorskip("matplotlib")
    names = [f"patient {k}" for k in range(120)]
    (tmp_path / "names.csv").write_text("id\n" + "\n".join(names))
    code, _, err = run(
        "fit", "data.npz", "--rank", "1", "--names", "names.csv", "--report", "r.html", "--folds", 0
    )  # fmt: skip
    assert (code, "report: r.html" in err) == (0, True)
    assert "patient 1" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_classes_from_folders(run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label, brightness in {"dark": 60, "light": 160}.items():
        (tmp_path / "images" / label).mkdir(parents=True)
        for k in range(20):
            pixels = rng.integers(0, 90, (8, 8), np.uint8) + np.uint8(brightness)
            image.fromarray(pixels).save(tmp_path / "images" / label / f"{k}.png")
    fitted = run("fit", "images", "--classify", "--size", "4", "--rank", 1, "--model", "m.npz")
    assert fitted[0] == 0
    assert "classes dark, light" in fitted[1]
    code, out, _ = run("predict", "m.npz", "images")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert len(rows) == 40
    for row in rows:
        assert row["sample"].split("/")[0] == row["prediction"]
        assert float(row["P(dark)"]) + float(row["P(light)"]) == pytest.approx(1)


def test_pca(run, tmp_path):
    assert run("simulate", "--model", "IV", "--n", 30, "--shape", "4,3,2", "-o", "d.npz")[0] == 0
    code, out, _ = run("fit", "d.npz", "--pca", "--replicates", "--rank", 1, "--model", "m.npz")
    assert (code, out.split(",")[0]) == (0, "TensorPCA of 30 copies of a tensor")
    code, _, _ = run("predict", "m.npz", "d.npz", "-o", "scores.npz")
    found = np.load(tmp_path / "scores.npz")
    copies = np.load(tmp_path / "d.npz")["X"]
    np.testing.assert_array_equal(found["score"], tt.load(tmp_path / "m.npz").transform(copies))
    np.save(tmp_path / "one.npy", copies.mean(axis=0))
    assert run("fit", "one.npy", "--pca", "--rank", "1", "--quiet")[::2] == (0, "")


@pytest.mark.parametrize("model", ["I", "II", "III", "IV"])
def test_simulate_is_that_of_the_library(run, tmp_path, model):
    assert run("simulate", "--model", model, "--n", 7, "--shape", "3,2", "-o", "d.npz")[0] == 0
    drawn = tt.datasets.make_model(model, 7, shape=(3, 2), rng=0)
    found = np.load(tmp_path / "d.npz")
    np.testing.assert_array_equal(found["X"], drawn.y if drawn.X is None else drawn.X)
    np.testing.assert_array_equal(found["truth"], drawn.truth.full())
    _, out, _ = run("simulate", "--model", model, "--n", 7, "--shape", "3,2")
    values = np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(values[:, :3], found["X"].reshape(7, -1)[:, :3])
    assert run("simulate", "--n", 3, "-o", "d.csv")[0] == 0
    assert (tmp_path / "d.csv").read_text().count("\n") == 4


def test_tensor_responses_have_a_column_each(run):
    run("simulate", "--model", "II", "--n", 60, "--shape", "4,3", "-o", "d.npz")
    run("fit", "d.npz", "--rank", 1, "--model", "m.npz")
    code, out, _ = run("predict", "m.npz", "d.npz")
    assert (code, out.splitlines()[0]) == (0, "sample,prediction.0,prediction.1,prediction.2")


def test_inspect_data(run, tmp_path, data):
    code, out, _ = run("inspect", "data.npz")
    assert code == 0
    assert re.match(r"X: float64 \(120, 4, 3\): -\S+ to \S+, median \S+; .*tail index", out)
    np.save(tmp_path / "t.npy", np.random.default_rng(0).standard_t(1, 5000))
    assert "very heavy tails, tail index 0.9 ± 0.1" in run("inspect", "t.npy")[1]
    (tmp_path / "wide.csv").write_text(
        ",".join(f"c{k}" for k in range(99)) + "\n" + "1," * 98 + "x"
    )
    code, out, _ = run("inspect", "wide.csv")
    assert out.splitlines()[-1] == "and 59 more"
    tt.save(tt.TensorScaler(), tmp_path / "scaler.npz")
    assert run("inspect", "scaler.npz")[1] == "TensorScaler(), not fitted\n"
    tt.save(data.truth, tmp_path / "truth.npz")
    assert run("inspect", "truth.npz")[1] == "Tucker tensor 4 × 3 of rank 1 × 1\n"


def test_a_fit_that_does_not_converge_is_a_warning(run, tmp_path, data):
    code, _, err = run("fit", "data.npz", "--rank", 1, "--solver", "newton:n_iter=1,tol=1e-15")
    assert code == 0
    assert "tauten: warning: TensorRegressor stopped early: not converged in 1" in err


def test_a_fit_that_diverges_is_a_failure(run, tmp_path, data):
    code, out, err = run(
        "fit", "data.npz", "--rank", 1, "--robust", "none", "--solver", "gd:step_size=1e6",
        "--model", "m.npz",
    )  # fmt: skip
    assert (code, out) == (1, "")
    assert "tauten: error: the fit failed: diverged at iteration" in err
    assert not (tmp_path / "m.npz").exists()


def test_reproduce_calls_the_library(run, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        "tauten.cli.reproduce.reproduce",
        lambda names, **options: asked.update(names=names, **options) or Path("out/report.html"),
    )
    words = ("--reading", "unit", "ones", "--methods", "RGD", "--jobs", 2, "--quick", "--quiet")
    code, out, _ = run("reproduce", "exp01", "ct", *words)
    assert (code, out) == (0, f"out{os.sep}report.html\n")
    assert asked["names"] == ["exp01", "ct"]
    assert (asked["reading"], asked["jobs"], asked["quick"]) == (["unit", "ones"], 2, True)
    assert asked["methods"] == ["RGD"]
    run("reproduce")
    assert asked["names"] == "all"
    assert asked["callback"] is not None
    assert run("reproduce", "exp99")[0] == 0  # the library itself says which there are
    monkeypatch.undo()


def test_reproduce_names_what_there_is(run):
    code, _, err = run("reproduce", "exp99", "--quiet")
    assert code == 2
    assert "exp10, ct; got exp99" in err


def test_demo(run, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = run("demo", "--n", 60, "-o", "shown")
    assert code == 0
    assert re.search(r"tauten's default +\d\.\d{3} ", out)
    assert sorted(os.listdir(tmp_path / "shown")) == ["coefficients.png", "report.html"]
    assert "least squares" in (tmp_path / "shown" / "report.html").read_text(encoding="utf-8")


def test_version_and_help(run):
    assert run("--version") == (0, f"tauten {tt.__version__}\n", "")
    code, out, _ = run("--help")
    assert (code, "examples:" in out) == (0, True)
    commands = re.search(r"COMMAND\n((?:    \w.*\n|  {10,}.*\n)+)", out).group(1).split("\n")
    for command in [line.split()[0] for line in commands if re.match(r"    \w", line)]:
        code, out, _ = run(command, "--help")
        assert (code, "example" in out) == (0, True), command
        for example in re.findall(r"tauten ([^|#>\n)]+)", out[out.index("example") :]):
            parser().parse_args(example.split())
