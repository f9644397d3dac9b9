"""What importing the package brings in, and what pyproject.toml promises."""

import importlib.metadata
import subprocess
import sys

import oldest
import tauten as tt
from tauten import _versions

OPTIONAL = ("matplotlib", "xarray", "torch", "dask", "h5py", "zarr", "nibabel", "PIL", "tensorly")
SLOW_TO_IMPORT = ("sklearn.metrics", "sklearn.model_selection", "sklearn.linear_model")


def test_import_brings_in_nothing_optional_and_nothing_slow():
    """Seen from a fresh process: scikit-learn itself may load some of pandas."""
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import tauten;"
        "print(*(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = set(run.stdout.split())
    assert "tauten.io" in new
    assert new.isdisjoint(OPTIONAL + SLOW_TO_IMPORT)


def test_public_names_are_there():
    assert set(tt.__all__) <= set(dir(tt))
    assert tt.__version__ == importlib.metadata.version("tauten")


def test_oldest_versions_are_lower_bounds():
    found = dict(line.split("==") for line in oldest.oldest(["plot", "test"]))
    assert {"numpy", "scipy", "scikit-learn", "array-api-compat", "pandas"} <= set(found)
    assert "tauten" not in found
    assert found["numpy"].startswith("2.0")


def test_versions_name_what_is_in_use(capsys):
    import numpy as np

    tt.show_versions()
    printed = capsys.readouterr().out
    assert printed == _versions.versions() + "\n"
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines())
    assert lines["numpy"] == np.__version__
    assert lines["tauten"] == tt.__version__
    assert "thread" in printed
    assert _versions.version_of("no-such-package") is None
