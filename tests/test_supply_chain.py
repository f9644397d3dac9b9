"""What the package brings in, says of it, and never does: use the network."""

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "supply-chain.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("plot", "reproduce", "dask", "torch", "io", "progress")  # those of users
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.splitlines()
    if re.match(r"\| [a-z]", line) and not line.startswith("| package")
]


def requirements():
    """Package, bounds and extra of everything that users may install with the package."""
    project = PYPROJECT["project"]
    groups = {"": project["dependencies"], "(build)": PYPROJECT["build-system"]["requires"]}
    groups |= {extra: project["optional-dependencies"][extra] for extra in EXTRAS}
    for extra, lines in groups.items():
        for line in lines:
            name, bounds = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(.*)", line).groups()
            if name != "tauten":
                yield name, bounds, extra


def test_the_page_lists_every_dependency():
    assert sorted(row[:3] for row in ROWS) == sorted(requirements())
    assert all(row[4] for row in ROWS)


def test_the_page_speaks_of_every_extra():
    extras = set(PYPROJECT["project"]["optional-dependencies"]) - {"all", *EXTRAS}
    assert all(f"`{extra}`" in PAGE for extra in extras)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[2]}")
def test_licences_are_what_the_packages_say(row):
    try:
        about = importlib.metadata.metadata(row[0])
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed")
    fields = ("License-Expression", "License", "Classifier")
    said = "\n".join(text for field in fields for text in about.get_all(field, []))
    assert row[3].replace("-", " ") in said.replace("-", " ")  # older releases spell it their way


def test_no_network(tmp_path):
    """Every use of a socket raises, from C too; fit, save, load, draw and report all the same."""
    code = """
import sys

def deny(event, arguments):
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.")):
        raise RuntimeError(f"denied: {event}")

sys.addaudithook(deny)
import matplotlib
matplotlib.use("agg")
import tauten as tt
data = tt.datasets.make_model("I", 100, shape=(4, 3), rng=0)
model = tt.TensorRegressor("auto").fit(data.X, data.y)
tt.save(model, "model.npz")
model = tt.load("model.npz")
tt.plot.coefficients(model)
model.report("report.html", data.X, data.y)
tt.show_versions()
try:
    import socket
    socket.socket()
except RuntimeError as error:
    print(error)
"""
    environment = os.environ | {"MPLCONFIGDIR": str(tmp_path)}  # its first use builds a cache
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "denied: socket.__new__"
    assert (tmp_path / "report.html").stat().st_size > 10_000


def wheel(folder):
    """The name and the checksum of a wheel built from a copy of the source in a new folder."""
    skip = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "*.so", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=skip)
    command = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", *command, "--wheel-dir", str(folder), str(folder / "source")],
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
        check=True,
    )
    (path,) = folder.glob("*.whl")
    return path.name, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_the_same_wheel_twice(tmp_path):
    folders = [tmp_path / "a", tmp_path / "a-longer-name"]
    for folder in folders:
        folder.mkdir()
    first, second = map(wheel, folders)
    assert first == second
    if shutil.which("cc"):
        assert "abi3" in first[0] or "cp3" in first[0]  # the C file was compiled
