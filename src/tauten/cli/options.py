"""What the commands share: options for data, how values are written, checks of output files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from .. import io
from .._files import check_writable
from ..io.dataset import AUTO


class FitFailedError(Exception):
    """A fit that gave nothing to use, on input that was in order."""


class Parser(argparse.ArgumentParser):
    """argparse's, with examples left as they are written, and errors raised, not printed."""

    def __init__(self, **options: Any) -> None:
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> Any:
        """Raise what argparse would print together with a screen of usage."""
        raise ValueError(f"{message}; see {self.prog} --help")

    def suggest(self, *flags: str, values: Sequence[str], **options: Any) -> None:
        """Add an option whose values the shell completes, without allowing only these."""
        action: Any = self.add_argument(*flags, **options)
        action.suggestions = list(values)


def numbers(text: str, what: str = "a list of sizes such as 8,8") -> tuple[int, ...]:
    """Read whole numbers parted by commas or x: ``"8,8"`` or ``"8x8"``.

    Examples
    --------
    >>> numbers("32x24")
    (32, 24)
    """
    try:
        found = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        found = ()
    if not found or any(p == 0 or p < -1 for p in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return found


def size(text: str) -> tuple[int, int]:
    """Read a height and a width: ``"32x24"``, or ``"32"`` for a square."""
    what = "a height and a width such as 32x32"
    found = numbers(text, what)
    if len(found) > 2 or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return found[0], found[-1]


def seed(text: str) -> int:
    """Read a whole number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def rank(text: str) -> str | int | tuple[int, ...]:
    """Read a rank: ``auto``, ``cv``, one for all modes or one per mode."""
    if text in {"auto", "cv"}:
        return text
    found = numbers(text, "auto, cv, a rank such as 2 or one per mode such as 2,2,1")
    return found[0] if len(found) == 1 else found


def add_data(command: Parser, *, responses: bool) -> None:
    """Add the options that say where data are."""
    command.add_argument(
        "data",
        metavar="DATA",
        help=".npz, .npy, .h5, .mat or .csv file, .zarr folder, folder of images or NIfTI files; "
        "- for a CSV from the standard input",
    )
    group = command.add_argument_group("where things are in DATA")
    add = group.add_argument
    add("--x", metavar="NAME", help="the samples; of a CSV, column patterns such as 'pixel*'")
    if responses:
        add("--y", metavar="NAME", default=AUTO, help="the responses: NAME, FILE or FILE:NAME")
        add("--weights", metavar="NAME", help="weights of the samples")
    add("--covariates", metavar="NAMES", help="vector covariates: NAME,NAME or FILE:NAME,NAME")
    add("--match", metavar="COLUMN", help="column of such a FILE that names the samples")
    add("--names", metavar="NAME", help="names of the samples")
    add("--ignore", metavar="NAMES", help="columns of a CSV to leave out of x")
    add("--shape", type=numbers, metavar="P1,P2,..", help="shape of each sample, of a CSV's rows")
    add("--size", type=size, metavar="HxW", help="resize images to this height and width")


def read(options: argparse.Namespace, **changes: Any) -> io.Dataset:
    """Read the data that the options of :func:`add_data` point to."""
    asked = {
        name: getattr(options, name)
        for name in ("x", "y", "match", "covariates", "weights", "names", "ignore", "shape", "size")
        if hasattr(options, name)
    }
    return io.read(options.data, **{**asked, **changes})


def check_outputs(*paths: str | None, inputs: Sequence[str] = ()) -> None:
    """Raise if a file could not be written, or is one of those that are read: before the work."""
    for path in filter(None, paths):
        check_writable(path)
        for source in inputs:
            if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
                raise ValueError(f"{path!r} would be overwritten, but is read as well: rename one")


def note(options: argparse.Namespace, text: str) -> None:
    """Say how far the work is, on the standard error."""
    if not options.quiet:
        sys.stderr.write(f"{text}\n")


def shaped(shape: Sequence[int]) -> str:
    """Say a shape as people write it."""
    return " × ".join(map(str, shape)) or "a number"
