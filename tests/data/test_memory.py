"""Memory that a process keeps for the next chunk."""

import ctypes
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from tauten.data import Rows
from tauten.data.memory import keep_memory_of_worker

FAULTS = """
import resource, sys
import numpy as np
from tauten.data import memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        [np.ones(2**18) for _ in range(12)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
getattr(memory, sys.argv[1])()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
@pytest.mark.parametrize(
    ("keep", "option"),
    [("keep_memory", {}), ("keep_memory_of_worker", {"MALLOC_TRIM_THRESHOLD_": "65536"})],
)
def test_memory_that_is_needed_again_is_kept(keep, option):
    """A dozen arrays of 2 MB take 6,000 new pages, each time."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-c", FAULTS, keep]
    done = subprocess.run(command, env=plain | option, check=True, capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert before > 20 * 4000
    assert after < before / 20


def test_other_processes_keep_to_their_own_rules(monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", pytest.fail)
    keep_memory_of_worker()


def test_an_allocator_without_options(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep_memory_of_worker()


def test_samples_in_memory_ask_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr("tauten.data.rows.keep_memory", lambda: asked.append(True))
    Rows(np.ones((3, 2)), np.ones(3))
    assert asked
