"""``tauten demo``: a first look, on data that it makes itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .. import demo
from .options import Parser

EPILOG = """example:
  tauten demo -o demo-output
"""


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "demo",
        help="fit heavy-tailed data with and without robustness; a table, a picture, a page",
        description=" ".join((demo.__doc__ or "").split()),
        epilog=EPILOG,
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        default="demo-output",
        help="where to write (default: demo-output)",
    )
    command.add_argument("--n", type=int, default=800, help="number of samples (default: 800)")
    return command


def run(options: argparse.Namespace) -> None:
    """Fit, print a table, write a picture and a page."""
    folder = Path(options.output)
    demo.check_output(folder)
    X, y = demo.make_data(options.n)
    tell = sys.stdout.write
    tell(f"{X.shape[0]} samples of shape {X.shape[1:]}, heavy-tailed X and y, 1 in 30 wrong\n\n")
    tell(f"{'method':<34}{'relative error':>15}{'seconds':>10}\n")
    outcomes = []
    for outcome in demo.compare(X, y):
        tell(f"{outcome.method:<34}{outcome.error:>15.3f}{outcome.seconds:>10.1f}\n")
        sys.stdout.flush()
        outcomes.append(outcome)
    picture, page = demo.write(folder, outcomes)
    tell("\n(an estimate of zero everywhere has relative error 1)\n")
    tell(f"\npicture: {picture}\nreport:  {page}\n")
