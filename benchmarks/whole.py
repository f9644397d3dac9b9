"""What the compiled sweep is worth as a whole: the test-suite, and the paper's experiments.

    python benchmarks/whole.py tests
    python benchmarks/whole.py exp01 exp02 exp03 exp04 --replications 1

Each runs at once with the compiled sweep and with the plain one, on a core each, and the times are
compared. The tests of the compiled sweep itself fail without it, and what other processes do is
done with it: the ratio of the tests is a little too near to one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAIN = "import tauten.kernels.compiled as compiled\ncompiled.serves = lambda *_: False\n"
TESTS = "import pytest\npytest.main(['-q', '-n0', '-p', 'no:cacheprovider', 'tests'])\n"
EXPERIMENT = """
from tauten.experiments import reproduce
reproduce({name!r}, replications={replications}, tuning={tuning!r}, out={out!r})
"""
SWEEPS = {"compiled": "", "plain": PLAIN}


def seconds(program: str, core: int) -> float:
    """Seconds of a program in a process of its own, with one thread, on one core."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\n{program}"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=os.environ | one, capture_output=True, check=True)
    return time.perf_counter() - begin


def compare(name: str, programs: list[str]) -> None:
    """Run both at once, on the first two cores that there are."""
    cores = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(2) as pool:
        compiled, plain = pool.map(seconds, programs, cores[:2])
    print(f"{name}: compiled {compiled:.1f} s, plain {plain:.1f} s, {plain / compiled:.2f} times")


def experiment(name: str, options: argparse.Namespace, folder: str) -> None:
    fields = {"name": name, "replications": options.replications, "tuning": options.tuning}
    programs = [
        setting + EXPERIMENT.format(**fields, out=str(Path(folder, sweep)))
        for sweep, setting in SWEEPS.items()
    ]
    compare(f"{name}, tuning {options.tuning}", programs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+", help="tests, exp01, ..., exp10")
    parser.add_argument("--replications", type=int, default=1)
    parser.add_argument("--tuning", default="paper", choices=["paper", "converged"])
    options = parser.parse_args()
    for name in options.what:
        if name == "tests":
            compare("tests", [setting + TESTS for setting in SWEEPS.values()])
            continue
        with tempfile.TemporaryDirectory() as folder:
            experiment(name, options, folder)


if __name__ == "__main__":
    main()
