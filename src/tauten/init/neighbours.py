"""Starts of other ranks, from a fit of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .._array import Array, namespace
from ..problem import PILOT_SIZE, PilotFit, Problem, tensor_gradients
from ..robust import Robustifier
from ..tucker import Tucker, left_singular_vectors, multi_mode_dot, unfold
from .thresholding import START_SIZE


def neighbours(
    problems: Sequence[Problem], thetas: Sequence[Tucker], ranks: Sequence[Sequence[int]]
) -> list[list[Tucker]]:
    """Points of ranks near those of fits: smaller ones cut from them, larger ones grown.

    Parameters
    ----------
    problems : sequence of Problem
        On the same samples.
    thetas : sequence of Tucker
        Their fits, all of one rank.
    ranks : sequence of tuples
        Each no smaller, or no larger, than that in every mode.

    Returns
    -------
    list of lists of Tucker
        For each rank a point of each problem. If any is grown they take one pass, and some samples
        are looked at.

    Examples
    --------
    >>> import tauten as tt
    >>> from tauten.data import Rows
    >>> data = tt.datasets.make_model("I", 300, rank=2, reading="random", rng=0)
    >>> problem = Problem(Rows(data.X, data.y), tt.losses.Squared(), tt.designs.Covariate())
    >>> fit = tt.TensorRegressor(rank=1, fit_intercept=False).fit(data.X, data.y).tucker_
    >>> ((larger,),) = neighbours([problem], [fit], [(2, 2, 2)])
    >>> larger.distance(data.truth) < fit.distance(data.truth)
    True
    """
    points = [theta.canonical() for theta in thetas]
    if all(_within(rank, points[0].rank) for rank in ranks):
        return [[_cut(point, rank) for point in points] for rank in ranks]
    gradients = [gradient for gradient, _ in tensor_gradients(problems, points)]
    pilots = [
        problem.pilot(point, problem.data.sample(PILOT_SIZE).thin(START_SIZE))
        for problem, point in zip(problems, points, strict=True)
    ]

    def resized(i: int, rank: Sequence[int]) -> Tucker:
        if _within(rank, points[i].rank):
            return _cut(points[i], rank)
        return _grown(points[i], gradients[i], rank, pilots[i], problems[i].robust)

    return [[resized(i, rank) for i in range(len(points))] for rank in ranks]


def _within(rank: Sequence[int], other: Sequence[int]) -> bool:
    return all(r <= s for r, s in zip(rank, other, strict=True))


def _cut(point: Tucker, rank: Sequence[int]) -> Tucker:
    """The first components of each mode: of a canonical point, the largest."""
    core = point.core[tuple(slice(r) for r in rank)]
    factors = tuple(u[:, :r] for u, r in zip(point.factors, rank, strict=True))
    return replace(point, core=core, factors=factors)


def _grown(
    point: Tucker, gradient: Array, rank: Sequence[int], pilot: PilotFit, robust: Robustifier
) -> Tucker:
    """One step along the gradient, within the factors and the directions that it asks for most."""
    grows = [k for k in range(point.order) if rank[k] > point.rank[k]]
    wider = list(point.factors)
    for k in grows:
        # Other modes that grow are left whole: what they will have is not known.
        others = [None if j in grows else u.T for j, u in enumerate(point.factors)]
        wider[k] = _widened(point.factors[k], multi_mode_dot(gradient, others), k, rank[k])
    move = multi_mode_dot(gradient, [u.T for u in wider])
    size = float(namespace(move).sum(move**2))
    curvature = pilot.tensor_curvature(robust, multi_mode_dot(move, wider))
    step = size / curvature if curvature > 0 else 0.0
    turns = [u.T @ old for u, old in zip(wider, point.factors, strict=True)]
    core = multi_mode_dot(point.core, turns) - step * move
    return replace(point, core=core, factors=tuple(wider))


def _widened(factor: Array, part: Array, mode: int, rank: int) -> Array:
    """Orthonormal columns: those of a factor, and the leading ones of what it leaves of a part."""
    xp, rows = namespace(factor), unfold(part, mode)
    left = rows - factor @ (factor.T @ rows)
    new = left_singular_vectors(left, 0, rank - factor.shape[1])
    return xp.linalg.qr(xp.concat([factor, new], axis=1))[0]
