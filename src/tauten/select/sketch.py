"""Fits within the few directions that their starts lie in: they tell which ranks are hopeless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .._array import Array, namespace
from ..problem.within import PART_SIZE, narrowed, widened, within, worth_narrowing
from .rough import Fit, descend

DEPENDENT = 1e-6  # singular values of directions, each of norm one, that add nothing


def sketched(fits: Sequence[Fit]) -> list[tuple[Fit, Fit]] | None:
    """Fits of one problem, gone on with within the directions that all of them lie in.

    There samples are many times smaller.

    Returns
    -------
    list of pairs of fits, or None
        Each in coordinates along the directions, and as it is. None where X is small, where the
        directions are many, or where samples are not in memory.
    """
    if not fits:
        return None
    problem, first = fits[0]
    samples = problem.data.all
    if samples is None or samples.X is None or not problem.loss.residual:
        return None
    directions = [_span([theta.factors[k] for _, theta in fits]) for k in range(samples.X.ndim - 1)]
    if not worth_narrowing(problem, [w.shape[1] for w in directions]):
        return None
    center = problem.design.center
    norms = problem.data.map_rows(problem.design.norms, problem.width(first))
    parts = replace(samples, kept=[(center, norms)]).parts(PART_SIZE)
    small = within(problem, parts, directions)
    problem.data.reads.passes += 1
    found = descend([(small, narrowed(theta, directions)) for _, theta in fits])
    return [(fit, (problem, widened(fit[1], directions))) for fit in found]


def _span(factors: Sequence[Array]) -> Array:
    """Orthonormal columns whose span holds those of all factors, which are orthonormal too."""
    xp = namespace(*factors)
    u, sizes, _ = xp.linalg.svd(xp.concat(list(factors), axis=1), full_matrices=False)
    return u[:, : int(xp.count_nonzero(sizes > DEPENDENT))]
