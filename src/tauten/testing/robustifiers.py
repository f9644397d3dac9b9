"""Checks of a robustifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..data import Rows
from ..datasets.seeds import Seed
from ..designs import Covariate
from ..losses import Logistic, Loss, Squared
from ..problem import Problem
from ..robust import Robustifier
from ..tucker import Tucker
from .base import CLOSE, EXACT, check_copies, require

# Values that switch a threshold off, by the names that thresholds have.
OFF = {"tau": np.inf, "nu": np.inf, "omega": np.inf, "n_blocks": 1}
WILD, WILDER = 1e8, 1e12


def check_robustifier(
    robust: Robustifier, rng: Seed = 0, *, off: Mapping[str, Any] | None = None
) -> None:
    """Check that a robustifier is what it says it is.

    Switched off it is the mean, it bends odd and never away from zero, one wild sample moves the
    gradient by a bounded amount as declared in ``bounds``, neither chunks nor (within one block)
    the order of the samples matter, and it can be calibrated, copied and pickled.

    Parameters
    ----------
    robust : Robustifier
    rng : Generator or int
    off : mapping, optional
        Parameters that switch it off; by default ``inf`` for ``tau``, ``nu`` and ``omega``, and
        one for ``n_blocks``.

    Raises
    ------
    AssertionError
        With a sentence on what does not hold.

    Examples
    --------
    >>> from tauten.robust import Truncate
    >>> check_robustifier(Truncate(tau=2.0))
    """
    rng = np.random.default_rng(rng)
    problem, theta = _example(Squared(), robust, rng)
    check_copies(robust)
    _check_calibration(problem, theta)
    problem = problem.calibrate(theta)
    _check_bends(problem, theta, rng)
    _check_off(problem, theta, off)
    _check_order(problem, theta, rng)
    for loss in (Squared(), Logistic()):
        _check_bounds(*_example(loss, robust, rng))


def _example(loss: Loss, robust: Robustifier, rng: np.random.Generator) -> tuple[Problem, Tucker]:
    """A small regression with a response of order one, and a point that does not fit it."""
    n, shape, rank = 60, (3, 2, 2), (2, 2, 2)
    X = rng.standard_normal((n, *shape[:2]))
    y = np.asarray(loss.draw(rng.standard_normal((n, *shape[2:])), rng))
    factors = [rng.standard_normal((p, r)) for p, r in zip(shape, rank, strict=True)]
    problem = Problem(Rows(X, y), loss, Covariate(), robust)
    return problem, Tucker(rng.standard_normal(rank), tuple(factors))


def _check_calibration(problem: Problem, theta: Tucker) -> None:
    robust = problem.robust
    before = repr(vars(robust))
    new = robust.calibrate(problem.pilot(theta))
    require(type(new) is type(robust), robust, "calibrate must return one of its own kind")
    require(new is not robust, robust, "calibrate must return a copy, not itself")
    require(repr(vars(robust)) == before, robust, "calibrate must not change what it is called on")


def _check_bends(problem: Problem, theta: Tucker, rng: np.random.Generator) -> None:
    robust = problem.robust
    _check_bend(robust, "score", robust.score, 10 * rng.standard_cauchy((60, 2)))
    for k, block in enumerate(theta.blocks):
        gradients = 10 * rng.standard_cauchy((60, *block.shape))
        _check_bend(robust, "sample", partial(robust.sample, k=k), gradients)
    means = rng.standard_cauchy((robust.n_blocks_, 3))
    odd = np.allclose(robust.reduce(-means), -robust.reduce(means))
    require(odd, robust, "reduce must be odd: reduce(-g) = -reduce(g)")
    same = np.broadcast_to(means[:1], means.shape)
    centred = np.allclose(robust.reduce(same), means[0])
    require(centred, robust, "reduce of equal block means must be that mean")
    norms = problem.data.map_rows(problem.design.norms)
    factors = robust.shrink(lambda: norms)
    if factors is not None:
        require((factors > 0) & (factors <= 1), robust, "shrink must give factors in (0, 1]")


def _check_bend(
    robust: Robustifier, name: str, bend: Callable[[np.ndarray], np.ndarray], raw: np.ndarray
) -> None:
    bent = bend(raw)
    require(bent.shape == raw.shape, robust, f"{name} must keep the shape")
    small = (np.abs(bent) <= np.abs(raw) * (1 + EXACT)) & (bent * raw >= 0)
    require(small, robust, f"{name} must bend towards zero: |{name}(g)| ≤ |g|, with its sign")
    require(np.allclose(bend(-raw), -bent), robust, f"{name} must be odd: {name}(-g) = -{name}(g)")
    single = bend(raw.astype(np.float32)).dtype
    require(single == np.float32, robust, f"{name} returns {single} for float32")


def _check_off(problem: Problem, theta: Tucker, off: Mapping[str, Any] | None) -> None:
    robust = clone(problem.robust)
    names = robust.get_params(deep=False)
    off = {name: OFF[name] for name in names if name in OFF} if off is None else off
    robust.set_params(**off)
    switched_off = replace(problem, robust=robust).calibrate(theta)
    gap = _gap(switched_off, replace(problem, robust=Robustifier()), theta)
    require(gap <= EXACT, robust, f"switched off by {dict(off)} it is not the mean")


def _check_order(problem: Problem, theta: Tucker, rng: np.random.Generator) -> None:
    robust, y = problem.robust, problem.data.y
    X: Any = problem.data.X
    for chunk in (1, 7):
        gap = _gap(replace(problem, data=Rows(X, y, chunk=chunk)), problem, theta)
        require(gap <= CLOSE, robust, f"the gradient changes with chunks of {chunk} samples")
    if robust.n_blocks_ == 1:
        order = rng.permutation(problem.data.n)
        gap = _gap(replace(problem, data=Rows(X[order], y[order])), problem, theta)
        require(gap <= CLOSE, robust, "the gradient changes with the order of the samples")


def _check_bounds(problem: Problem, theta: Tucker) -> None:
    """A bounded influence no longer grows, however wild the sample."""
    clean, robust = problem.calibrate(theta), problem.robust
    kinds = [{kind} for kind in robust.bounds]
    for wild in [*kinds, set(robust.bounds)] if len(kinds) > 1 else kinds:
        if "responses" in wild and not problem.loss.residual:
            continue  # class labels cannot be wild
        near, far = (
            _gap(_contaminated(problem, wild, size).calibrate(theta), clean, theta)
            for size in (WILD, WILDER)
        )
        require(
            far <= 1.01 * near + 1e-6,
            robust,
            f"its bounds promise a bounded influence of {' and '.join(sorted(wild))}, but one "
            f"sample of size {WILD:g} moves the gradient by {near:.3g} and one of {WILDER:g} by "
            f"{far:.3g}, with the {type(problem.loss).__name__} loss",
        )


def _contaminated(problem: Problem, wild: set[str], size: float) -> Problem:
    X, y = (np.array(a) for a in (problem.data.X, problem.data.y))
    if "responses" in wild:
        y[0] = size
    if "covariates" in wild:
        X[0] = size
    return replace(problem, data=Rows(X, y))


def _gap(one: Problem, other: Problem, theta: Tucker) -> float:
    """Largest difference between two gradients."""
    pairs = zip(one.gradient(theta).blocks.blocks, other.gradient(theta).blocks.blocks, strict=True)
    return max(float(np.max(np.abs(a - b))) for a, b in pairs)
