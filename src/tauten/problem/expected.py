"""Tensors in the read that a sweep makes anyway, by scores that are expected.

The gradient with respect to the full tensor A takes a second read of the samples, as it needs their
scores, and these the sweep. Where all samples were swept at a point nearby, their scores are known
to first order before the next sweep, and what is kept of those that are cut is about the same: the
tensor of these comes with it. It serves the curvature of a Newton step, which need not be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._array import Array, namespace
from ..data import Chunk
from ..tucker import Tucker
from .gradient import Asked, Gradient
from .samplewise import chunk_sums
from .seen import Line

if TYPE_CHECKING:
    from .problem import Problem

NEARBY = 0.1  # steps, relative to A: what is of second order is then small beside the noise
SLIGHT = 1e-3  # what rounding, in single precision too, makes of orthonormal columns is less


def expected_scores(problem: Problem, theta: Tucker) -> Array | None:
    """Scores that the tensor at a point will come of, by what samples looked like near it.

    None where they were not swept near it, responses are tensors, or X is soon read once more.
    """
    swept, data = problem.swept, problem.data
    if swept is None or data.X is None or data.y.ndim > 1 or not data.dear:
        return None
    if theta.distance(swept.theta) > NEARBY * theta.norm():
        return None
    if not (_orthonormal(theta) and _orthonormal(swept.theta)):  # one may be the other rescaled
        return None
    turned = theta.rotate(theta.turns_to(swept.theta))
    step = turned.map(lambda new, old: new - old, swept.theta).flat()
    kernel = problem.kernel

    def scores(line: Line) -> Array:
        return kernel.kept_score(kernel.seen(line.moved(step)))

    parts = data.spread(scores, swept.lines)
    return namespace(*parts).concat(parts, axis=0)


def _orthonormal(theta: Tucker) -> bool:
    """Whether the factors of a point are."""
    return all(float(namespace(u).max(namespace(u).abs(u))) < SLIGHT for u in theta.imbalance(1.0))


def gradient_and_tensor(problem: Problem, theta: Tucker, asked: Asked, known: Array) -> Gradient:
    """Robust gradient at a point in one read of the samples, with the tensor of known scores."""
    kernel, first, rest = problem.kernel, problem.data.start, replace(asked, tensor=False)

    def sums(chunk: Chunk) -> Sequence[Any]:
        begin = chunk.start - first
        line = kernel.linearise(theta, chunk, known[begin : begin + chunk.y.shape[0]])
        *found, _ = chunk_sums(kernel, kernel.seen(line), rest)
        return [*found, line.pullback.total]

    total = problem.data.map_sum(sums, problem.width(theta, curvature=asked.curvature))
    return problem.gradient_from(theta, total, asked)
