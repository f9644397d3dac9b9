"""Loops that go side by side, so that what they ask for can be answered together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
End = TypeVar("End")


def side_by_side(
    walks: Sequence[Generator[Ask, Answer, End]],
    answer: Callable[[dict[int, Ask]], Iterable[tuple[int, Answer]]],
) -> list[End]:
    """Run generators to their ends, all of them one step at a time; return what they return.

    Parameters
    ----------
    walks : sequence of generators
        Each yields what it needs to know.
    answer : callable
        From what the walks that still go ask for, by their numbers, to pairs of number and answer.

    Examples
    --------
    >>> def doubled(x):
    ...     while x < 10:
    ...         x = yield x
    ...     return x
    >>> def answer(asked):
    ...     print(asked)
    ...     return [(i, 2 * x) for i, x in asked.items()]
    >>> side_by_side([doubled(2), doubled(6)], answer)
    {0: 2, 1: 6}
    {0: 4}
    {0: 8}
    [16, 12]
    """
    answers: list[Any] = [None] * len(walks)  # a walk is begun by sending it nothing
    ends: dict[int, End] = {}
    while True:
        asked: dict[int, Ask] = {}
        for i in range(len(walks)):
            if i not in ends:
                try:
                    asked[i] = walks[i].send(answers[i])
                except StopIteration as end:
                    ends[i] = end.value
        if not asked:
            return [ends[i] for i in range(len(walks))]
        for i, found in answer(asked):
            answers[i] = found
