"""Memory that a process keeps for the next chunk."""

import ctypes
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from tauten.data import Rows
from tauten.data.memory import keep_memory

FAULTS = """
import resource
import numpy as np
from tauten.data.memory import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [np.ones(2**15) for _ in range(12)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
@pytest.mark.parametrize("dask", [False, True])
def test_memory_that_is_needed_again_is_kept(dask):
    """A dozen arrays of 256 kB take 768 new pages, each time; dask's workers have an option set."""
    option = {"MALLOC_TRIM_THRESHOLD_": "65536"} if dask else {}
    plain = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, env=plain | option, check=True, capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert before > 50 * 500
    assert after < before / 20


@pytest.fixture
def keep():
    """Done anew, whatever this process has done before."""
    return keep_memory.__wrapped__


def test_other_processes_keep_to_their_own_rules(keep, monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", pytest.fail)
    keep()


def test_an_allocator_without_options(keep, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep()


def test_samples_in_memory_ask_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr("tauten.data.rows.keep_memory", lambda: asked.append(True))
    Rows(np.ones((3, 2)), np.ones(3))
    assert asked
