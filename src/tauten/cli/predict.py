"""``tauten predict``: predictions of a saved model."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from .. import io
from .options import Parser, add_data, check_outputs, read
from .output import check_kind, columns, rows, write

EPILOG = """examples:
  tauten predict model.npz new.npz -o predictions.csv
  tauten predict model.npz new.csv | head
  cat new.csv | tauten predict model.npz - > predictions.csv
"""


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "predict",
        help="predict with a saved model; CSV to the standard output, or a file",
        description="Predict responses, or classes and their probabilities; for PCA, coordinates "
        "of the samples. Rows of a CSV take the shape that the model was fitted to.",
        epilog=EPILOG,
    )
    command.add_argument("model", metavar="MODEL", help="file written by tauten fit --model")
    add_data(command, responses=False)
    command.add_argument("-o", "--output", metavar="FILE", help=".csv or .npz file")
    return command


def run(options: argparse.Namespace) -> None:
    """Read, predict, write."""
    check_kind(options.output)
    check_outputs(options.output, inputs=[options.model, options.data])
    model = io.load(options.model)
    if not hasattr(model, "tucker_"):
        kind = type(model).__name__
        raise ValueError(f"{options.model!r} holds no fit that predicts, but a {kind}")
    shape = getattr(model, "sample_shape_", None)
    changes = {} if shape is None else {"shape": options.shape or shape}
    if shape is not None and len(shape) == 2:
        changes["size"] = options.size or shape  # of images
    found = _predictions(model, read(options, **changes))
    write(options.output, found, _table(found))


def _predictions(model: Any, data: io.Dataset) -> dict[str, np.ndarray]:
    """Arrays of one row per sample."""
    if not hasattr(model, "sample_shape_"):
        scores = model.transform(data.X)
        found = {"score": scores if scores.ndim > len(model.rank_) else scores[None]}
    else:
        found = {"prediction": model.predict(data.X, data.covariates)}
        if hasattr(model, "classes_"):
            probabilities = model.predict_proba(data.X, data.covariates)
            classes = zip(model.classes_, probabilities.T, strict=True)
            found |= {f"P({name})": column for name, column in classes}
    n = len(next(iter(found.values())))
    names = np.arange(n) if data.names is None else np.array(data.names)
    return {"sample": names, **found}


def _table(found: dict[str, np.ndarray]) -> Any:
    yield [name for key, array in found.items() for name in columns(key, array.shape[1:])]
    yield from rows(*found.values())
