"""Problems near one point, where predictors are all but linear in the step from there.

However many problems there are, and however many steps each has taken, the samples are swept at the
one point alone: what is left to do is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from .._array import Array, namespace, to_numpy
from ..data import Chunk
from ..tucker import Tucker
from .gradient import Asked, Gradient
from .problem import Problem, pass_of_each
from .samplewise import Kernel, chunk_sums, same_sweep
from .seen import Line, Seen


def linear(problem: Problem) -> bool:
    """Whether derivatives of its predictors are at hand, and all that its gradient depends on.

    They are of responses that are numbers; a prior or a ridge changes along a step, too.
    """
    plain = not problem.reduce_bias and not problem.ridge
    return problem.data.X is not None and problem.data.y.ndim == 1 and plain


def gradients_near(
    problems: Sequence[Problem], theta: Tucker, steps: Sequence[Array], *, curvature: bool = False
) -> list[Gradient]:
    """Robust gradients at the ends of steps from a point, to first order, in one pass.

    Parameters
    ----------
    problems : sequence of Problem
        On the same samples, see :func:`linear`; they may differ in weights and robustifier.
    theta : Tucker
    steps : sequence of arrays (D,)
        One for each, all blocks flattened.
    curvature : bool
        Whether curvatures are wanted, too.

    Examples
    --------
    >>> import numpy as np
    >>> from tauten.data import Rows
    >>> from tauten.designs import Covariate
    >>> from tauten.losses import Squared
    >>> theta = Tucker(np.ones((1, 1)), [np.ones((2, 1)), np.ones((1, 1))])
    >>> data = Rows(np.ones((4, 2, 1)), np.zeros(4))
    >>> problem = Problem(data, Squared(), Covariate())
    >>> step = np.array([0.5, 0.0, 0.0, 0.0])  # of the core: a predictor of 3 instead of 2
    >>> gradients_near([problem], theta, [step])[0].blocks.core
    array([[6.]])
    """
    asked, kernels = Asked(curvature, curvature), [problem.kernel for problem in problems]

    def sums(chunks: Sequence[Chunk]) -> list[Any]:
        sights, each = _Sights(theta), zip(kernels, steps, chunks, strict=True)
        rows = (chunk_sums(k, sights.see(k, step, chunk), asked) for k, step, chunk in each)
        return list(chain.from_iterable(rows))

    totals = pass_of_each(problems, [theta] * len(problems), sums, curvature=curvature)
    pairs = zip(problems, totals, strict=True)
    return [problem.gradient_from(theta, total, asked) for problem, total in pairs]


def scores_near(
    problems: Sequence[Problem], theta: Tucker, steps: Sequence[Array]
) -> list[np.ndarray]:
    """Scores of all samples there, shrunk but not bent: see :func:`tauten.problem.scores`."""
    kernels = [problem.kernel for problem in problems]

    def scores(chunk: Chunk) -> Array:
        sights, each = _Sights(theta), zip(kernels, steps, strict=True)
        lines = ((kernel.loss, sights.line(kernel, step, chunk)) for kernel, step in each)
        found = [loss.score(line.eta, line.y) for loss, line in lines]
        return namespace(found[0]).stack(found, axis=1)

    first = problems[0]
    stacked = to_numpy(first.data.map_rows(scores, first.width(theta)))
    return [stacked[:, i] for i in range(len(problems))]


class _Sights:
    """A chunk of samples as several problems see it, from near one point: swept once."""

    def __init__(self, theta: Tucker) -> None:
        self._theta = theta
        self._lines: dict[Any, Line] = {}
        self._last: tuple[tuple[int, int], Seen] | None = None

    def line(self, kernel: Kernel, step: Array, chunk: Chunk) -> Line:
        """The samples linearised at the point, their predictors moved by a step."""
        place = same_sweep(kernel, chunk)
        if place not in self._lines:
            self._lines[place] = kernel.linearise(self._theta, chunk)
        line = self._lines[place].moved(step)
        vars(line)["chunk"] = chunk
        return line

    def see(self, kernel: Kernel, step: Array, chunk: Chunk) -> Seen:
        """The same, bent; one problem after another that differs in weights alone shares it."""
        sight = id(kernel.robust), id(step)
        if self._last is None or self._last[0] != sight:
            self._last = sight, kernel.seen(self.line(kernel, step, chunk))
            return self._last[1]
        return self._last[1].among(chunk)
