"""What ``verbose=1`` shows: a bar where tqdm is installed, else lines on the standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def reporter(verbose: int) -> Iterator[Callable[[Any, Any], None]]:
    """Give a solver's callback that shows each iteration, or one that shows nothing.

    Examples
    --------
    >>> with reporter(0) as report:
    ...     report(None, None)
    """
    if not verbose:
        yield lambda iteration, theta: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield _write_line
        return
    with tqdm(desc="fit", unit="iteration") as bar:

        def show(iteration: Any, theta: Any) -> None:
            bar.set_postfix_str(_words(iteration), refresh=False)
            bar.update()

        yield show


def _words(iteration: Any) -> str:
    return (
        f"loss {iteration.value:.6g}   change {iteration.change:.2e}   "
        f"truncated {max(iteration.truncated):.1%}"
    )


def _write_line(iteration: Any, theta: Any) -> None:
    sys.stderr.write(f"iteration {iteration.t:4d}   {_words(iteration)}\n")
