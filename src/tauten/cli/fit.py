"""``tauten fit``: fit a model to data in files."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .. import io, report
from ..estimators import TensorClassifier, TensorPCA, TensorRegressor
from ..estimators.base import PARTS
from ..init import STARTS
from ..io.dataset import AUTO
from ..io.folders import FOLDER, NAME
from .options import (
    FitFailedError,
    Parser,
    add_data,
    check_outputs,
    note,
    rank,
    read,
    seed,
    shaped,
)

EPILOG = """examples:
  tauten fit data.npz --x X --y y --model model.npz --report report.html
  tauten fit table.csv --y price --shape 8,8 --rank 2
  tauten fit images/ --classify --size 32x32 --model model.npz
  tauten fit scans/ --y patients.csv:age --match file --covariates patients.csv:weight
  tauten fit tensor.npy --pca --rank 3,3,2
"""


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "fit",
        help="fit a model; print what came out, write the model and a report",
        description="Fit a low-rank tensor model. The summary goes to the standard output.",
        epilog=EPILOG,
    )
    add_data(command, responses=True)
    kind = command.add_mutually_exclusive_group()
    kind.add_argument("--classify", action="store_true", help="y holds classes")
    kind.add_argument("--pca", action="store_true", help="no y: the low-rank part of x itself")
    model = command.add_argument_group("the model")
    model.add_argument("--replicates", action="store_true", help="with --pca: axis 0 holds copies")
    model.add_argument(
        "--rank", type=rank, default="auto", help="auto, cv, 2 or 2,2,1 (default: auto)"
    )
    model.add_argument("--no-intercept", action="store_true", help="leave the intercept out")
    model.add_argument("--seed", type=seed, default=0, help="of what is random (default: 0)")
    _add_parts(command)
    output = command.add_argument_group("output")
    output.add_argument("--model", metavar="FILE", help="write the model, for tauten predict")
    output.add_argument("--report", metavar="FILE", help="write a report, one HTML page")
    output.add_argument(
        "--folds",
        type=int,
        default=3,
        help="of the report's held-out errors; 0 for none (default: 3)",
    )
    output.add_argument("--verbose", action="store_true", help="tell every iteration")
    output.add_argument("--quiet", action="store_true", help="tell nothing but the summary")
    return command


def _add_parts(command: Parser) -> None:
    """Add the options that take a registered name, perhaps with parameters."""
    values = {name: sorted(family.registry) for name, family in PARTS.items()}
    values["init"] = sorted({name for starts in STARTS.values() for name in starts})
    about = {"robust": "robust gradient", "loss": "loss", "solver": "steps", "init": "start"}
    for name, known in values.items():
        choices = ["auto", *(value for value in known if value != "auto")]
        parameters = "; parameters as NAME:KEY=VALUE" if name in PARTS else ""
        told = f"{about[name]}: {', '.join(choices)}{parameters} (default: auto)"
        command.suggest(f"--{name}", values=choices, metavar="NAME", help=told)


def run(options: argparse.Namespace) -> None:
    """Read, fit, write, print."""
    model = _model(options)
    check_outputs(options.model, inputs=[options.data])
    if options.report:
        report.check_possible(options.report, options.folds)
        check_outputs(options.report, inputs=[options.data])
    data = _read(options)
    note(options, f"{options.data}: {shaped(data.X.shape)}; fitting")
    given = _given(data)
    model.fit(data.X, data.y, **given)
    if model.result_.interrupted:  # the estimator keeps what it found; a command ends
        raise KeyboardInterrupt
    if model.result_.diverged:
        raise FitFailedError(model.result_.reason)
    if options.model:
        io.save(model, options.model)
        note(options, f"model: {options.model}")
    if options.report:
        held_out = f", with held-out errors of {options.folds} folds" if options.folds else ""
        note(options, f"writing the report{held_out}")
        names = None if options.pca and not options.replicates else data.names
        told = {**given, "sample_names": names, "folds": options.folds}
        model.report(options.report, data.X, data.y, **told)
        note(options, f"report: {options.report}")
    sys.stdout.write(report.describe(model) + "\n")


def _model(options: argparse.Namespace) -> Any:
    """The estimator, not fitted; options that it has no use for are refused, not ignored."""
    parameters = {
        name: value for name in (*PARTS, "init") if (value := getattr(options, name)) is not None
    }
    parameters |= {"rank": options.rank, "random_state": options.seed}
    parameters["verbose"] = int(options.verbose)
    if not options.pca:
        if options.replicates:
            raise ValueError("--replicates goes with --pca only")
        kind = TensorClassifier if options.classify else TensorRegressor
        return kind(fit_intercept=not options.no_intercept, **parameters)
    for name in ("y", "loss", "no_intercept", "weights", "covariates", "match"):
        if getattr(options, name) not in (None, False, AUTO):
            raise ValueError(f"--{name.replace('_', '-')} does not go with --pca: leave it out")
    return TensorPCA(replicates=options.replicates, **parameters)


def _read(options: argparse.Namespace) -> io.Dataset:
    """Samples, and responses of the kind that the model is for."""
    data = read(options, **({"y": None} if options.pca else {}))
    if options.pca:
        return data
    if data.y is None:
        raise ValueError(
            f"no responses in {options.data!r}: say where they are with --y NAME, --y FILE or "
            f"--y FILE:NAME, or look for structure in x itself with --pca"
        )
    if data.y.dtype.kind not in "biuf" and not options.classify:
        held = str(data.y.flat[0])
        raise ValueError(f"y holds text such as {held!r:.40}: if these are classes, add --classify")
    own = options.y in (AUTO, FOLDER, NAME)
    if os.path.isdir(options.data) and not own and not options.match:
        note(options, "y is taken in the order of the files' names; --match finds rows by name")
    return data


def _given(data: io.Dataset) -> dict[str, Any]:
    """What is given to fit beside x and y."""
    given: dict[str, Any] = {}
    if data.covariates is not None:
        given["covariates"] = data.covariates
    if data.weights is not None:
        given["sample_weight"] = data.weights
    return given
