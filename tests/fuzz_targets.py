"""What is fuzzed: each target makes an input from a random generator and gives it to a parser."""

import contextlib
import io
import json
import shlex

import numpy as np

import tauten as tt
from fuzz_files import FORMATS
from fuzz_inputs import chosen, mutated, mutated_text
from tauten._archive import SEAL, pack, seal, unpack
from tauten.checkpoint import TEXT as CHECKPOINT
from tauten.checkpoint import Checkpoint, Stage
from tauten.cli.app import parser as command_line
from tauten.experiments import Cell, Experiment, Settings
from tauten.experiments.base import theory_threshold
from tauten.experiments.journal import Journal
from tauten.experiments.runner import results_file
from tauten.experiments.statements import rates
from tauten.io.models import TEXT as MODEL
from tauten.losses import Loss
from tauten.robust import Robustifier
from tauten.solver import Solver


class Specs:
    """Names of components: ``"truncate:tau=2"``."""

    promised = (ValueError, TypeError)
    families = (Loss, Robustifier, Solver)

    def __init__(self, folder):
        self.specs = [
            f"{name}:{key}={value}"
            for family in self.families
            for name, cls in family.registry.items()
            for key in cls._get_param_names() or ["x"]
            for value in ("2", "inf", "'a'", "[1, 2]", "auto")
        ]

    def __call__(self, rng):
        family = chosen(rng, self.families)
        found = family.get(mutated_text(rng, chosen(rng, self.specs)))
        assert isinstance(found, family)
        assert type(found) in family.registry.values()


class Arguments:
    """Arguments of the command line; they are parsed, and nothing is run."""

    promised = (ValueError, TypeError, SystemExit)
    lines = (
        "fit data.npz --y y --rank 2 --robust truncate:tau=2 --model model.npz",
        "predict model.npz data.npz -o predictions.csv",
        "simulate --model I --n 500 --noise t:1.5 -o data.npz",
        "inspect data.npz",
        "reproduce exp01 --seed 1",
    )

    def __init__(self, folder):
        self.parser = command_line()

    def __call__(self, rng):
        # its ValueError is of the shell, not of ours
        arguments = shlex.split(mutated_text(rng, chosen(rng, self.lines)))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.parser.parse_args(arguments)


class Archives:
    """Sealed archives: damaged ones, and forged ones whose checksum is right."""

    def __init__(self, folder):
        self.path = folder / "archive.npz"
        self.write()
        self.good = self.path.read_bytes()
        self.text, self.arrays = unpack(self.name, self.good)

    def __call__(self, rng):
        kind = rng.integers(3)
        if kind == 0:
            data = mutated(rng, self.good)
        elif kind == 1:
            data = seal(mutated(rng, self.good[:-SEAL]) + self.good[-SEAL:])
        else:
            data = pack(self.name, mutated_text(rng, self.text), self.arrays)
        self.path.write_bytes(data)
        self.load()


class Models(Archives):
    """Model files."""

    promised = (tt.io.ModelFileError,)
    name = MODEL

    def write(self):
        data = tt.datasets.make_model("I", 40, shape=(3, 2), rng=0)
        model = tt.TensorRegressor(1, robust="truncate:tau=2", solver="newton:n_iter=5,tol=0")
        tt.save(model.fit(data.X, data.y), self.path)

    def load(self):
        tt.load(self.path)


class Checkpoints(Archives):
    """Checkpoints of fits."""

    promised = (ValueError,)
    name = CHECKPOINT

    def write(self):
        self.checkpoint = Checkpoint(self.path, "print")
        points = [tt.Tucker(np.ones((1, 1)), (np.ones((3, 1)), np.ones((2, 1))))] * 2
        stage = Stage(points[0])
        stage.progress.trail.extend(points)
        self.checkpoint.save(stage)

    def load(self):
        assert isinstance(self.checkpoint.load(np.asarray), Stage)


class Journals:
    """Results files of experiments, line by line."""

    promised = (ValueError,)

    def __init__(self, folder):
        self.journal = Journal(folder / "results.jsonl", {"seed": 0, "cells": ["a", "b"]})
        with self.journal.writing() as append:
            for split in range(3):
                append({"split": split, "f1": 0.5, "name": "é"})
        self.good = self.journal.path.read_bytes()

    def __call__(self, rng):
        self.journal.path.write_bytes(mutated(rng, self.good))
        assert all(isinstance(line, dict) for line in self.journal.read())


class Results:
    """Results files of experiments, whose lines are whole but say anything."""

    promised = (ValueError,)

    def __init__(self, folder):
        cell = Cell("II", 10, "Model II", 1.0, 1, noise="t:2", tau=theory_threshold(10))
        study = Experiment(
            name="s", title="S", figure="0", grid=(cell,), claims=rates(), measure="e", batch=3
        )
        self.results = results_file(study, Settings(replications=3), folder)
        line = {"replications": [0, 1], "results": {cell.key: {"RGD": [[0.5, 1, 0], None]}}}
        with self.results.journal.writing() as append:
            append(line)
        self.header = self.results.path.read_bytes().split(b"\n")[0]
        self.line = json.dumps(line)

    def __call__(self, rng):
        line = mutated_text(rng, self.line).replace("\n", " ").encode()
        self.results.path.write_bytes(self.header + b"\n" + line + b"\n")
        self.results.read()


TARGETS = {
    "specs": Specs,
    "arguments": Arguments,
    "models": Models,
    "checkpoints": Checkpoints,
    "journals": Journals,
    "results": Results,
    **FORMATS,
}
