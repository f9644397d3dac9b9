"""``tauten inspect``: what is in a file, of a model or of data."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .. import io, report
from .options import Parser, size

EPILOG = """examples:
  tauten inspect model.npz
  tauten inspect data.h5
  tauten inspect images/ --size 32x32
"""
MOST = 40  # arrays or columns that are told one by one


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "inspect",
        help="say what a model file or a data file holds",
        description="Of a model: rank, thresholds, convergence, who was cut. Of data: every array, "
        "its range and how heavy its tails are.",
        epilog=EPILOG,
    )
    command.add_argument("file", metavar="FILE", help="a model, or data as for tauten fit")
    command.add_argument("--size", type=size, metavar="HxW", help="resize images to this size")
    return command


def run(options: argparse.Namespace) -> None:
    """Print what is there."""
    if io.is_model(options.file):
        sys.stdout.write(f"{report.describe(io.load(options.file))}\n")
        return
    arrays = io.open_arrays(options.file, size=options.size)
    for name in list(arrays)[:MOST]:
        sys.stdout.write(f"{name or 'array'}: {report.describe_array(arrays[name])}\n")
    if len(arrays) > MOST:
        sys.stdout.write(f"and {len(arrays) - MOST} more\n")
