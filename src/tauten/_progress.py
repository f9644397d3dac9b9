"""What ``verbose=1`` shows: a bar where tqdm is installed, else lines on the standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

Count = Callable[[int, int | None], None]  # how much of some work is done, and of how much


def ignore(done: int, total: int | None) -> None:
    """Where nobody wants to know how far some work is."""


@contextmanager
def reporter(verbose: int, most: int) -> Iterator[Callable[[Any, Any], None]]:
    """Give a solver's callback that shows each iteration, or one that shows nothing.

    Parameters
    ----------
    verbose : int
    most : int
        Iterations that there may be, for the time that is left at most.

    Examples
    --------
    >>> with reporter(0, 10) as report:
    ...     report(None, None)
    """
    if not verbose:
        yield lambda iteration, theta: None
        return
    with _bar("fit", "iteration", most) as bar:
        if bar is None:
            yield lambda iteration, theta: _write(f"iteration {iteration.t:4d}", _words(iteration))
            return

        def show(iteration: Any, theta: Any) -> None:
            bar.set_postfix_str(_words(iteration), refresh=False)
            bar.update()

        yield show


@contextmanager
def counter(verbose: int, work: str, unit: str) -> Iterator[Count]:
    """Give a callback that shows how far some work is, or one that shows nothing.

    Examples
    --------
    >>> with counter(0, "bootstrap", "replicate") as report:
    ...     report(16, 200)
    """
    if not verbose:
        yield ignore
        return
    bars: list[Any] = []
    with ExitStack() as stack:

        def show(done: int, total: int | None) -> None:
            if not bars:  # only now: some work is done without any
                bars.append(stack.enter_context(_bar(work, unit, total)))
            if bars[0] is None:
                _write(f"{work} {done}{f' of {total}' if total else ''}")
            else:
                bars[0].update(done - bars[0].n)

        yield show


@contextmanager
def _bar(work: str, unit: str, total: int | None) -> Iterator[Any]:
    """A bar, of a notebook in a notebook, that ends full; None without tqdm."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(desc=work, unit=unit, total=total) as bar:
        yield bar
        bar.total = bar.n  # done before its time
        bar.refresh()


def _words(iteration: Any) -> str:
    return (
        f"loss {iteration.value:.6g}   change {iteration.change:.2e}   "
        f"truncated {max(iteration.truncated):.1%}"
    )


def _write(*parts: str) -> None:
    sys.stderr.write("   ".join(parts) + "\n")
