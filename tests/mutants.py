"""Small changes of the core, one at a time: how many do the tests notice? `make mutants`.

mutmut makes the changes (a sign, a constant, an argument left out: mutants) and runs for each the
tests that reach the changed function, the quickest first, until one fails. There are thousands,
so this draws some of each module, and reports the share that was noticed and the names of those
that were not: `mutmut show NAME` tells what they are.

    python tests/mutants.py --share 0.14 --seed 0
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

FOLDER = Path("mutants")  # where mutmut keeps its copy of the package, and what it has found
STATS = FOLDER / "mutmut-stats.json"
ANY = "tauten.robust.base.x_required__mutmut_1"  # a run needs one, even to find out their names
SECONDS = 12.0  # of tests, for a mutant that survives
SURVIVED = {0, 5, 33}  # mutmut's codes: all tests passed, or no test gets there
TIMEOUT = {36, 24, -24, 152, 255}

# mutmut 3.8 asks for an attribute that pytest 9.2 does not have any more.
MUTMUT = """
import pytest
pytest.Item._nodeid = property(lambda item: item.nodeid)
from mutmut.__main__ import cli
cli()
"""


def mutmut(*arguments):
    subprocess.run([sys.executable, "-c", MUTMUT, *arguments], check=True)


def exit_codes():
    """What became of each mutant, None for those that were not run; by module, in order."""
    files = sorted(FOLDER.glob("src/**/*.meta"))
    return [json.loads(file.read_text())["exit_code_by_key"] for file in files]


def draw(share, seed):
    """The same share of the mutants of each module."""
    rng = random.Random(seed)
    modules = [sorted(codes) for codes in exit_codes()]
    return [name for names in modules for name in rng.sample(names, round(share * len(names)))]


def limit_tests(seconds):
    """Keep, for each function, the quickest of the tests that reach it."""
    stats = json.loads(STATS.read_text())
    duration, reached = stats["duration_by_test"], stats["tests_by_mangled_function_name"]
    for function, tests in reached.items():
        kept, total = [], 0.0
        for test in sorted(tests, key=duration.get):
            total += duration[test]
            if kept and total > seconds:
                break
            kept.append(test)
        reached[function] = kept
    STATS.write_text(json.dumps(stats))


def report(names):
    codes = {name: code for module in exit_codes() for name, code in module.items()}
    alive = [name for name in names if codes[name] in SURVIVED]
    late = [name for name in names if codes[name] in TIMEOUT]
    for title, group in (("survived", alive), ("took too long, counted as killed", late)):
        print(f"\n{title}:", *group, sep="\n  ")
    drawn, survived = (Counter(name.split(".")[1] for name in group) for group in (names, alive))
    print()
    for package in [*drawn, "in all"]:
        n = drawn[package] if package in drawn else len(names)
        killed = n - (survived[package] if package in drawn else len(alive))
        print(f"{package:9}{n:5} mutants, {killed:4} killed: {killed / n:6.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.14, help="of the mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    mutmut("run", "--max-children", "1", ANY)
    names = draw(options.share, options.seed)
    limit_tests(SECONDS)
    mutmut("run", "--max-children", "1", *names)
    report(names)


if __name__ == "__main__":
    main()
