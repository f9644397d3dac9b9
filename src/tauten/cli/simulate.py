"""``tauten simulate``: data with a known truth."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from .. import datasets
from .options import Parser, check_outputs, numbers, rank, seed
from .output import check_kind, columns, rows, write

EPILOG = """examples:
  tauten simulate --model I --n 500 -o data.npz
  tauten simulate --model II --n 500 --covariates t:2.1 --noise t:1.5 -o data.npz
  tauten simulate --n 300 --shape 6,5 --noise t:1.5 | tauten fit - --shape 6,5 --rank 1
"""
MODELS = ("I", "II", "III", "IV")


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "simulate",
        help="draw data of the paper's models; CSV to the standard output, or a file",
        description="Draw samples of Models I (regression), II (vector responses), III (classes) "
        "or IV (copies of one tensor, written as X). Distributions: normal, t:DF, pareto:INDEX.",
        epilog=EPILOG,
    )
    add = command.add_argument
    add("--model", choices=MODELS, default="I", help="of the paper (default: I)")
    add("--n", type=int, default=500, help="number of samples (default: 500)")
    add(
        "--shape",
        type=numbers,
        default=(10, 10, 10),
        metavar="P1,P2,..",
        help="of A* (default: 10,10,10)",
    )
    add("--rank", type=rank, default=1, help="of A*: 1, or others with --reading random")
    readings = "scale of A*: unit, factors of norm 1; ones, factors of ones; random (default: unit)"
    command.suggest("--reading", values=["unit", "ones", "random"], default="unit", help=readings)
    add("--norm", type=float, help="Frobenius norm of A*")
    add("--covariates", default="normal", help="distribution of X (default: normal)")
    add("--noise", default="normal", help="distribution of the noise (default: normal)")
    add("--contamination", type=float, default=0.0, help="share of outliers (default: 0)")
    command.suggest(
        "--kind",
        values=["adversarial", "random"],
        default="adversarial",
        help="of outliers: adversarial, random (default: adversarial)",
    )
    add("--seed", type=seed, default=0, help="of the draws (default: 0)")
    add("-o", "--output", metavar="FILE", help=".npz file, with the truth, or .csv")
    return command


def run(options: argparse.Namespace) -> None:
    """Draw and write."""
    check_kind(options.output)
    check_outputs(options.output)
    names = ("reading", "shape", "rank", "norm", "covariates", "noise", "contamination", "kind")
    asked = {name: getattr(options, name) for name in names}
    data = datasets.make_model(options.model, options.n, rng=options.seed, **asked)
    samples = {"X": data.y} if data.X is None else {"X": data.X, "y": data.y}
    arrays = {**samples, "truth": data.truth.full(), "outliers": data.outliers}
    write(options.output, arrays, _table(samples))


def _table(samples: dict[str, np.ndarray]) -> Any:
    names = {"X": "x", "y": "y"}
    yield [c for key, array in samples.items() for c in columns(names[key], array.shape[1:])]
    yield from rows(*samples.values())
