"""What is fuzzed: each target makes an input from a random generator and gives it to a parser."""

import contextlib
import io
import json
import shlex

import numpy as np
import scipy.io

import tauten as tt
from tauten._archive import SEAL, pack, seal, unpack
from tauten.checkpoint import TEXT as CHECKPOINT
from tauten.checkpoint import Checkpoint, Stage
from tauten.cli.app import parser as command_line
from tauten.data.stored import stored
from tauten.experiments import Cell, Experiment, Settings
from tauten.experiments.base import theory_threshold
from tauten.experiments.journal import Journal
from tauten.experiments.runner import results_file
from tauten.experiments.statements import rates
from tauten.io.models import TEXT as MODEL
from tauten.losses import Loss
from tauten.robust import Robustifier
from tauten.solver import Solver

PIECES = [
    *"[]{}()\"':,.=-+\\ \n\t\0", "null", "true", "1e999", "-0", "inf", "nan", "\ud7ff", "é",
    "9" * 5000, "[" * 5000, '"$"', "tau", "auto", "0x", "1_0", "lambda:0",
    "-" * 9000, "{[]: 1}", "__import__('os')",
]  # fmt: skip
LARGEST = 2**24  # entries: what any file may claim, however small it is
X, Y = np.arange(24.0).reshape(4, 3, 2), np.arange(4.0)


def chosen(rng, items):
    """One of a list; numpy's own would make an array of it each time."""
    return items[rng.integers(len(items))]


def mutated(rng, data):
    """Bytes with a few of them changed, cut out, repeated or put in."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1))
        to = at + int(rng.integers(1, 20))
        piece = chosen(rng, PIECES).encode("utf-8")
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


def mutated_text(rng, text):
    return mutated(rng, text.encode()).decode("utf-8", "replace")


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


class Files:
    """Data files of one format, or of a few: mutated, opened, and read as a fit would."""

    promised = (tt.io.DataFileError,)

    def __init__(self, folder):
        self.write(folder)
        self.paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self.good = [path.read_bytes() for path in self.paths]

    def opened(self, path):
        """What is opened when one of the files was mutated."""
        return path

    def __call__(self, rng):
        which = rng.integers(len(self.paths))
        self.paths[which].write_bytes(mutated(rng, self.good[which]))
        try:
            found = tt.io.read(self.opened(self.paths[which])).X
            array = stored(found)
            for part in [found] if array is None else self.parts(array):
                assert np.asarray(part).size < LARGEST
        finally:
            self.paths[which].write_bytes(self.good[which])

    @staticmethod
    def parts(array):
        """Parts of an array on disk, which promises to be read or to raise an OSError."""
        with contextlib.suppress(OSError):
            yield from array.parts()


class Npy(Files):
    def write(self, folder):
        np.save(folder / "data.npy", X)


class Npz(Files):
    def write(self, folder):
        np.savez(folder / "data.npz", X=X, y=Y)
        np.savez_compressed(folder / "packed.npz", X=X, y=Y)


class Tables(Files):
    def write(self, folder):
        text = "a,b,c,y\n1,2,3,0.5\n4,5,6,-1e3\n,nan,x,7\n"
        (folder / "data.csv").write_text(text, encoding="utf-8")
        (folder / "data.tsv").write_text(text.replace(",", "\t"), encoding="utf-8")


class Matlab(Files):
    def write(self, folder):
        words = np.array(["a", "bc"], dtype=object)
        for name, packed in {"plain": False, "packed": True}.items():
            contents = {"X": X, "y": Y, "words": words}
            scipy.io.savemat(folder / f"{name}.mat", contents, do_compression=packed)
        scipy.io.savemat(folder / "old.mat", {"X": X[0]}, format="4")


class Hdf5(Files):
    def write(self, folder):
        import h5py

        with h5py.File(folder / "data.h5", "w") as file:
            file["X"], file["y"] = X, Y
        with h5py.File(folder / "packed.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(2, 3, 2), compression="gzip", shuffle=True)


class Zarr(Files):
    """Files of a Zarr folder, one of which was mutated."""

    def write(self, folder):
        import zarr

        for version in (2, 3):
            group = zarr.open_group(folder / f"{version}.zarr", mode="w", zarr_format=version)
            group.create_array("X", data=X, chunks=(2, 3, 2))
            group.create_array("y", data=Y)

    def opened(self, path):
        return next(parent for parent in path.parents if parent.suffix == ".zarr")


class Images(Files):
    def write(self, folder):
        from PIL import Image

        picture = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
        for end in ("png", "jpg", "bmp", "tif", "gif", "pgm", "webp"):
            picture.save(folder / f"a.{end}")


class Volumes(Files):
    def write(self, folder):
        import nibabel

        image = nibabel.Nifti1Image(X.astype(np.float32), np.eye(4))
        for end in ("nii", "nii.gz"):
            nibabel.save(image, folder / f"a.{end}")


TARGETS = {
    "specs": Specs,
    "arguments": Arguments,
    "models": Models,
    "checkpoints": Checkpoints,
    "journals": Journals,
    "results": Results,
    "npy": Npy,
    "npz": Npz,
    "tables": Tables,
    "matlab": Matlab,
    "hdf5": Hdf5,
    "zarr": Zarr,
    "images": Images,
    "volumes": Volumes,
}
