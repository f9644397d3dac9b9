"""Time two revisions on this machine, taking turns: ``python benchmarks/compare.py BASE [HEAD]``.

Each is built in a folder of its own; HEAD is the working tree if it is not given. The studies are
those of this tree's speed.py; a ratio below one means that HEAD is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(revision: str | None, folder: Path) -> Path:
    """Install a revision, or the working tree, into a folder; return the folder."""
    source = ROOT
    if revision is not None:
        source = folder / "source"
        source.mkdir()
        archive = subprocess.run(
            ["git", "archive", revision], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    target = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*pip, source], check=True)
    return target


def measure(installed: Path, study: str, seconds: float) -> dict[str, float]:
    """Times of a study with one revision: the least over its own turns."""
    command = [sys.executable, ROOT / "benchmarks" / "speed.py", study, "--json"]
    run = subprocess.run(
        [*command, "--seconds", str(seconds)],
        env=os.environ | {"PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(run.stdout.splitlines()[-1])
    return {f"{row['case']}, {t} thread(s)": row[f"pass {t}"] for row in rows for t in (1, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("head", nargs="?")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each revision takes")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each comparison")
    options = parser.parse_args()
    best: list[dict[str, float]] = [{}, {}]
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for name, revision in (("base", options.base), ("head", options.head)):
            (Path(folder) / name).mkdir()
            sides.append(build(revision, Path(folder) / name))
        for _ in range(options.rounds):
            for times, installed in zip(best, sides, strict=True):
                for case, time in measure(installed, "passes", options.seconds).items():
                    times[case] = min(time, times.get(case, time))
    for case, base in best[0].items():
        print(f"{case:45} {best[1][case] / base:.2f}")


if __name__ == "__main__":
    main()
