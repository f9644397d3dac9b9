"""Broken input for every parser, as fast as it goes: `make fuzz`.

Each target makes an input from a random generator and gives it to the library, which answers or
raises what it promises to; anything else is a failure, printed with its seed, as is an input that
takes more than a second.

    python tests/fuzz.py --seconds 60 --seed 0
"""

import argparse
import contextlib
import io
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

import tauten as tt
from tauten.cli.app import parser as command_line
from tauten.experiments.journal import Journal
from tauten.io.archive import SEAL, pack, seal, unpack
from tauten.losses import Loss
from tauten.robust import Robustifier
from tauten.solver import Solver

SLOW = 1.0  # seconds
PIECES = [
    *"[]{}()\"':,.=-+\\ \n\t\0", "null", "true", "1e999", "-0", "inf", "nan", "\ud7ff", "é",
    "9" * 5000, "[" * 5000, '"$"', "tau", "auto", "0x", "1_0", "lambda:0",
    "-" * 9000, "{[]: 1}", "__import__('os')",
]  # fmt: skip


def mutated(rng, data):
    """Bytes with a few of them changed, cut out, repeated or put in."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1))
        to = at + int(rng.integers(1, 20))
        piece = str(rng.choice(PIECES)).encode("utf-8")
        kind = rng.integers(5)
        if kind == 0:
            data[at : at + 1] = bytes([rng.integers(256)])
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = data[at:to]
        elif kind == 3:
            data[at:at] = piece
        else:
            data[at:to] = piece
    return bytes(data)


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
        text = mutated(rng, str(rng.choice(self.specs)).encode()).decode("utf-8", "replace")
        family = self.families[rng.integers(len(self.families))]
        found = family.get(text)
        assert isinstance(found, family)
        assert type(found) in family.registry.values()


class Models:
    """Model files: damaged ones, and forged ones whose checksum is right."""

    promised = (tt.io.ModelFileError,)

    def __init__(self, folder):
        self.path = folder / "model.npz"
        data = tt.datasets.make_model("I", 40, shape=(3, 2), rng=0)
        model = tt.TensorRegressor(1, robust="truncate:tau=2", solver="newton:n_iter=5,tol=0")
        tt.save(model.fit(data.X, data.y), self.path)
        self.good = self.path.read_bytes()
        self.text, self.arrays = unpack(self.good)

    def __call__(self, rng):
        kind = rng.integers(3)
        if kind == 0:
            data = mutated(rng, self.good)
        elif kind == 1:
            data = seal(mutated(rng, self.good[:-SEAL]) + self.good[-SEAL:])
        else:
            text = mutated(rng, self.text.encode()).decode("utf-8", "replace")
            data = pack(text, self.arrays)
        self.path.write_bytes(data)
        tt.load(self.path)


class Journals:
    """Results files of experiments."""

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


class Files:
    """Data files: arrays of numpy, and tables."""

    promised = (tt.io.DataFileError,)

    def __init__(self, folder):
        X, y = np.arange(12.0).reshape(3, 4), np.arange(3)
        self.paths = [folder / "data.npy", folder / "data.npz", folder / "data.csv"]
        np.save(self.paths[0], X)
        np.savez(self.paths[1], X=X, y=y)
        self.paths[2].write_text("a,b,c,y\n1,2,3,0.5\n4,5,6,-1e3\n,nan,x,7\n", encoding="utf-8")
        self.good = [path.read_bytes() for path in self.paths]

    def __call__(self, rng):
        which = rng.integers(len(self.paths))
        self.paths[which].write_bytes(mutated(rng, self.good[which]))
        found = tt.io.read(self.paths[which])
        assert np.asarray(found.X).size < 10**6


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
        text = mutated(rng, str(rng.choice(self.lines)).encode()).decode("utf-8", "replace")
        arguments = shlex.split(text)  # its ValueError is of the shell, not of ours
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.parser.parse_args(arguments)


TARGETS = {
    "specs": Specs,
    "models": Models,
    "journals": Journals,
    "files": Files,
    "arguments": Arguments,
}


def attack(target, seed):
    """Give one input; return what went wrong, or None."""
    begin = time.perf_counter()
    try:
        target(np.random.default_rng(seed))
    except target.promised:
        pass
    except Exception:
        return traceback.format_exc()
    took = time.perf_counter() - begin
    return f"took {took:.1f} s" if took > SLOW else None


def run(name, folder, *, seconds, seed=0, most=sys.maxsize):
    """Attack one target for a while; return the number of inputs and what went wrong, by seed."""
    target, count, wrong = TARGETS[name](folder), 0, {}
    end = time.monotonic() + seconds
    while count < most and time.monotonic() < end:
        if (failure := attack(target, seed + count)) is not None:
            wrong[seed + count] = failure
        count += 1
    return count, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="for each target")
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    options, failures = parser.parse_args(), 0
    for name in TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            count, wrong = run(name, Path(folder), seconds=options.seconds, seed=options.seed)
        print(f"{name:10} {count:9d} inputs, {len(wrong)} failures", flush=True)
        for seed, failure in list(wrong.items())[:5]:
            print(f"seed {seed}:\n{failure}")
        failures += len(wrong)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
