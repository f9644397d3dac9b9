"""``tauten reproduce``: the paper's experiments, and a verdict on each of its claims."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..experiments import NAMES, PAPER_METHODS, ProgressBar, reproduce
from .options import Parser, note, seed

EPILOG = """examples:
  tauten reproduce --quick                         # a first look, in minutes
  tauten reproduce exp02 exp05 --jobs 4 --out reproduction
  tauten reproduce ct --data images.zip
"""
# Options that are parameters of :func:`tauten.experiments.reproduce`.
ASKED = (
    *("reading", "tuning", "methods", "replications", "report_only", "splits", "seed", "jobs"),
    *("quick", "data", "out"),
)


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and judge its claims",
        description="Run experiments of the paper and write a report with a verdict on each claim. "
        "What is done already is not done again; a run may be stopped at any moment.",
        epilog=EPILOG,
    )
    command.suggest(
        "names", values=["all", *NAMES], nargs="*", metavar="NAME", help=f"all, {', '.join(NAMES)}"
    )
    add = command.add_argument
    add(
        "--reading",
        nargs="+",
        choices=("unit", "ones"),
        default=["unit"],
        help="scale of A* (default: unit)",
    )
    add(
        "--tuning",
        nargs="+",
        choices=("paper", "converged"),
        default=["paper"],
        help="of the steps (default: paper)",
    )
    add(
        "--methods",
        nargs="+",
        choices=PAPER_METHODS,
        default=list(PAPER_METHODS),
        help="of the paper (default: all); ours, auto, is always beside them",
    )
    add("--replications", type=int, default=200, help="of each cell (default: 200)")
    add("--report-only", action="store_true", help="on what was done already")
    add("--splits", type=int, default=50, help="of the images (default: 50)")
    add("--seed", type=seed, default=0, help="of the draws (default: 0)")
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add("--quick", action="store_true", help="a part of each grid, six replications at most")
    add("--data", metavar="PATH", help="images of the CT study; without, they are simulated")
    add(
        "--out",
        metavar="FOLDER",
        default="reproduction",
        help="to write to (default: reproduction)",
    )
    add("--quiet", action="store_true", help="no progress")
    return command


def run(options: argparse.Namespace) -> None:
    """Run, and print where the report is."""
    asked = {name: getattr(options, name) for name in ASKED}
    chosen = "all" if options.names in ([], ["all"]) else options.names
    page = reproduce(chosen, **asked, callback=None if options.quiet else ProgressBar())
    note(options, "report:")
    sys.stdout.write(f"{page}\n")
