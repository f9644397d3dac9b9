"""Slopes and second moments of several robust gradients, which thresholds are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import namespace
from ..data.base import add_up
from .samplewise import Kernel
from .seen import Line, Seen, weighted


def scatters(kernels: Sequence[Kernel], lines: Sequence[Line]) -> list[list[Any]]:
    """:meth:`Kernel.scatter` of several kernels, each with the same samples as it shrinks them.

    Where they differ in what they do to gradients alone, samples that none of them touches are
    added up once: the gentler thresholds touch few. The sums are not corrected for those that some
    of them touch, but made without: these may be so large that nothing would be left of the others.
    """
    sights = [kernel.seen(line) for kernel, line in zip(kernels, lines, strict=True)]
    alike = len(sights) > 1 and _alike(sights)
    if not alike or (touched := np.any([s.touched for s in sights], axis=0)).all():
        return [kernel.scatter(seen) for kernel, seen in zip(kernels, sights, strict=True)]

    def sums(kernel: Kernel, rows: np.ndarray) -> list[Any]:
        return kernel.scatter(kernel.seen(lines[0].take(np.flatnonzero(rows))))

    base = sums(kernels[0], ~touched)
    if not touched.any():
        return [base] * len(kernels)
    return [add_up([base, sums(kernel, touched)]) for kernel in kernels]


def _alike(sights: Sequence[Seen]) -> bool:
    """Whether samples were shrunk and scores bent alike, of responses that are numbers."""
    first, *others = sights
    if first.line.pullback.rows is None:
        return False
    equal = namespace(first.bent).all
    return all(seen.line is first.line and bool(equal(seen.bent == first.bent)) for seen in others)


def diagonals(kernels: Sequence[Kernel], lines: Sequence[Line]) -> list[list[Any]] | None:
    """Diagonals of slope and second moment, for each kernel.

    None where kernels differ in more than what they do to gradients, or responses are tensors.
    """
    sights = [kernel.seen(line) for kernel, line in zip(kernels, lines, strict=True)]
    if not _alike(sights):
        return None
    seen, line = sights[0], lines[0]
    theta, xp = line.theta, namespace(line.y)
    curved = line.pullback.flat(weighted(kernels[0].slope(seen), line.chunk)) * line.pullback.rows
    found = []
    for kernel in kernels:
        bent = weighted(kernel.robust.samples(seen.raw, theta), line.chunk)
        kept = kernel.robust.sample_slopes(seen.raw, theta)
        found.append([xp.vecdot(curved, kept, axis=-2), xp.vecdot(bent, bent, axis=-2)])
    return found
