"""From arguments to an exit code: 0 fine, 1 the fit failed, 2 bad input, 130 interrupted."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.linalg import LinAlgError

from .._versions import VERSION
from . import completion, demo, fit, inspect, predict, reproduce, simulate
from .options import FitFailedError, Parser

COMMANDS = (fit, predict, inspect, simulate, reproduce, demo, completion)
FAILURES = (FitFailedError, LinAlgError, ArithmeticError, MemoryError)
BAD_INPUT = (ValueError, TypeError, OSError, ImportError)
LONGEST = 600  # characters of a message

EPILOG = """examples:
  tauten simulate --model I --n 500 --noise t:1.5 -o data.npz
  tauten inspect data.npz
  tauten fit data.npz --model model.npz --report report.html
  tauten predict model.npz data.npz -o predictions.csv
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Examples
    --------
    >>> main(["predict", "no-such-model.npz", "data.npz"])
    2
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # some terminals know no Greek letters
            stream.reconfigure(errors="backslashreplace")
    code = 0
    try:
        with _warnings_told():
            options = _options(arguments)
            options.run(options)
            sys.stdout.flush()
    except SystemExit as end:  # argparse, after --help and --version
        code = int(end.code or 0)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # the reader, such as head, wants no more
        with contextlib.suppress(OSError, ValueError):  # so that Python's own flush says nothing
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except FAILURES as error:
        code = _tell(f"the fit failed: {_words(error)}", 1, debug)
    except BAD_INPUT as error:
        code = _tell(_words(error), 2, debug)
    except Exception as error:  # never a traceback, unless it is asked for
        code = _tell(f"unexpected {_words(error)}. --debug shows where", 1, debug)
    return code


def parser() -> Parser:
    """Return the parser of all commands."""
    top = Parser(
        prog="tauten",
        description="Low-rank tensor models from data with heavy tails and outliers.",
        epilog=EPILOG,
    )
    top.add_argument("--version", action="version", version=f"tauten {VERSION}")
    top.add_argument("--debug", action="store_true", help="show where an error comes from")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        command = module.add(commands)
        command.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
        command.set_defaults(run=module.run, command=command)
    return top


def _options(arguments: list[str]) -> argparse.Namespace:
    """Arguments as options; what the command does not know is its error, not that of all."""
    options, unknown = parser().parse_known_args(arguments)
    if unknown:
        known = [flag for action in options.command._actions for flag in action.option_strings]
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f": did you mean {near[0]}?" if near else ""
        options.command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


@contextlib.contextmanager
def _warnings_told() -> Iterator[None]:
    """Warnings as one line each, on the standard error."""

    def tell(message: Any, *_: Any) -> None:
        sys.stderr.write(f"tauten: warning: {_words(message)}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = tell  # type: ignore[assignment] # of its arguments, one is told
        yield


def _words(error: object) -> str:
    """A message on one line, of a length that is read."""
    named = isinstance(error, BAD_INPUT + FAILURES + (Warning,)) and str(error)
    told = str(error) if named else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.filename and error.strerror:  # without its number
        told = f"{error.strerror}: {str(error.filename)!r}"
    text = " ".join(told.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _tell(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"tauten: error: {message}\n")
    return code
