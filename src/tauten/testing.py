"""Conformance checks of losses and robustifiers, for ours and for yours.

Run them in the tests of a new one; whatever does not hold is an AssertionError in a sentence.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from .data import Rows
from .designs import Covariate
from .losses import Logistic, Loss, Squared
from .problem import Problem
from .registry import Registered
from .robust import Robustifier
from .tucker import Tucker

__all__ = ["check_loss", "check_robustifier"]

Seed = np.random.Generator | int

# Values that switch a threshold off, by the names that thresholds have.
_OFF = {"tau": np.inf, "nu": np.inf, "omega": np.inf, "n_blocks": 1}
_DRAWS = 20_000
_FAR = 800.0  # exp overflows beyond 709
_WILD, _WILDER = 1e8, 1e12
_EXACT, _CLOSE, _DIFFERENCES = 1e-12, 1e-9, 1e-7  # rounding; sums in another order; differences
_SMOOTH = 0.9  # share of points that must not lie next to a kink


def check_loss(loss: Loss, rng: Seed = 0) -> None:
    """Check that a loss is what it says it is.

    Its score and curvature are derivatives (by finite differences), nothing overflows at
    ``|η| = 800``, responses outside the domain are rejected, mean and link are inverse, draws have
    the mean they should and a score that is zero on average, a missing response spoils no other
    one, single precision is kept, and the loss can be copied and pickled.

    Parameters
    ----------
    loss : Loss
    rng : Generator or int

    Raises
    ------
    AssertionError
        With a sentence on what does not hold.

    Examples
    --------
    >>> from tauten.losses import Poisson
    >>> check_loss(Poisson())
    """
    rng = np.random.default_rng(rng)
    eta = rng.standard_normal((200, 3))
    y = np.asarray(loss.draw(eta, rng), dtype=np.float64)
    far = _FAR * rng.choice([-1.0, 1.0], size=eta.shape)
    _check_copies(loss)
    _check_shapes(loss, eta, y)
    _check_derivatives(loss, eta, y)
    _check_derivatives(loss, 0.75 * far, y)
    _check_overflow(loss, far, y)
    _check_domain(loss, y)
    _check_link(loss, eta)
    _check_draws(loss, rng)


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
    _check_copies(robust)
    _check_calibration(problem, theta)
    problem = problem.calibrate(theta)
    _check_bends(problem, theta, rng)
    _check_off(problem, theta, off)
    _check_order(problem, theta, rng)
    for loss in (Squared(), Logistic()):
        _check_bounds(*_example(loss, robust, rng))


def _require(holds: Any, component: Registered, sentence: str) -> None:
    if not np.all(holds):
        raise AssertionError(f"{type(component).__name__}: {sentence}")


def _check_copies(component: Registered) -> None:
    for copy in (clone(component), pickle.loads(pickle.dumps(component))):
        same = _equal(copy.get_params(), component.get_params())
        _require(same, component, "a clone or a pickle of it has other parameters")


def _equal(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def _check_shapes(loss: Loss, eta: np.ndarray, y: np.ndarray) -> None:
    missing = y.copy()
    missing[0, 0] = np.nan
    seen = ~np.isnan(missing)
    for name in ("value", "score", "curvature"):
        method = getattr(loss, name)
        result = method(eta, y)
        _require(result.shape == y.shape, loss, f"{name} must keep the shape of y")
        others = np.array_equal(method(eta, missing)[seen], result[seen])
        _require(others, loss, f"{name} lets a missing response change that of another entry")
        shared = _equal(method(eta[:1], y), method(np.repeat(eta[:1], len(y), axis=0), y))
        sentence = f"{name} must serve all responses with one row of linear predictors, for PCA"
        _require(shared, loss, sentence)


def _check_derivatives(loss: Loss, eta: np.ndarray, y: np.ndarray) -> None:
    """Move one column at a time; the loss of a row is the sum of its values."""
    for column in range(eta.shape[1]):
        moved = [slope.sum(axis=1) for slope in _slopes(lambda e: loss.value(e, y), eta, column)]
        exact = loss.score(eta, y)[:, column]
        _compare(loss, "score is not the derivative of the value", exact, *moved)
        moved = [slope[:, column] for slope in _slopes(lambda e: loss.score(e, y), eta, column)]
        exact = loss.curvature(eta, y)[:, column]
        _compare(loss, "curvature is not the derivative of the score", exact, *moved)


def _slopes(
    fn: Callable[[np.ndarray], np.ndarray], eta: np.ndarray, column: int
) -> list[np.ndarray]:
    """Central differences of fourth order with two step sizes."""

    def shifted(h: float) -> np.ndarray:
        moved = eta.copy()
        moved[:, column] += h
        return fn(moved)

    return [
        (8 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12 * h)
        for h in (1e-3, 5e-4)
    ]


def _compare(
    loss: Loss, sentence: str, exact: np.ndarray, slope: np.ndarray, finer: np.ndarray
) -> None:
    tolerance = _DIFFERENCES * (1 + np.abs(finer))
    smooth = np.abs(slope - finer) <= tolerance  # else there is a kink (Huber's ν) in between
    _require(smooth.mean() > _SMOOTH, loss, "value and score must be smooth almost everywhere")
    wrong = smooth & ~(np.abs(exact - finer) <= tolerance)
    if wrong.any():
        i = int(np.argmax(wrong))
        _require(False, loss, f"{sentence}: {exact[i]:g} where differences give {finer[i]:g}")


def _check_overflow(loss: Loss, far: np.ndarray, y: np.ndarray) -> None:
    for dtype in ("float64", "float32"):
        eta, response = far.astype(dtype), y.astype(dtype)
        for name in ("value", "score", "curvature", "mean"):
            arguments = (eta,) if name == "mean" else (eta, response)
            at = f"at |eta| = {_FAR:g} in {dtype}"
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    result = getattr(loss, name)(*arguments)
            except FloatingPointError as error:
                _require(False, loss, f"{name} is not finite {at}: {error}")
            _require(np.isfinite(result), loss, f"{name} is not finite {at}")
            _require(result.dtype == dtype, loss, f"{name} returns {result.dtype} {at}")


def _check_domain(loss: Loss, y: np.ndarray) -> None:
    _require(not _rejects(loss, y), loss, "check rejects a response that draw made")
    for value in (np.nan, np.inf, -np.inf):
        bad = y.copy()
        bad[0, 0] = value
        _require(_rejects(loss, bad), loss, f"check accepts the response {value}")
    probes = [np.full((1, 3), value) for value in (-1e6, -0.5, 0.0, 0.5, 1e6)]
    rejected = [_rejects(loss, probe) for probe in probes]
    if loss.domain == Loss.domain:
        _require(not any(rejected), loss, f"check rejects {loss.domain}, yet that is the domain")
    else:
        _require(any(rejected), loss, f"check accepts responses other than {loss.domain}")


def _rejects(loss: Loss, y: np.ndarray) -> bool:
    try:
        loss.check(y)
    except ValueError:
        return True
    return False


def _check_link(loss: Loss, eta: np.ndarray) -> None:
    mean = loss.mean(eta)
    back = loss.mean(loss.link(mean))
    _require(np.abs(back - mean) <= 1e-9 * (1 + np.abs(mean)), loss, "mean(link(m)) is not m")
    single = loss.link(mean.astype(np.float32)).dtype
    _require(single == np.float32, loss, f"link returns {single} for float32")


def _check_draws(loss: Loss, rng: np.random.Generator) -> None:
    eta = np.broadcast_to(np.array([-1.0, 0.0, 1.0]), (_DRAWS, 3))
    y = loss.draw(eta, rng)
    _require(not _rejects(loss, y), loss, "draw makes responses outside the domain")
    for what, gap in {"response": y - loss.mean(eta), "score": loss.score(eta, y)}.items():
        error = gap.std(axis=0) / np.sqrt(_DRAWS)
        expected = "the mean" if what == "response" else "zero"
        _require(
            np.abs(gap.mean(axis=0)) <= 5 * error + _EXACT,
            loss,
            f"the average {what} of draws is not {expected}: off by {gap.mean(axis=0)}, with "
            f"standard errors {error}",
        )


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
    _require(type(new) is type(robust), robust, "calibrate must return one of its own kind")
    _require(new is not robust, robust, "calibrate must return a copy, not itself")
    _require(repr(vars(robust)) == before, robust, "calibrate must not change what it is called on")


def _check_bends(problem: Problem, theta: Tucker, rng: np.random.Generator) -> None:
    robust = problem.robust
    _check_bend(robust, "score", robust.score, 10 * rng.standard_cauchy((60, 2)))
    for k, block in enumerate(theta.blocks):
        gradients = 10 * rng.standard_cauchy((60, *block.shape))
        _check_bend(robust, "sample", partial(robust.sample, k=k), gradients)
    means = rng.standard_cauchy((robust.n_blocks_, 3))
    odd = np.allclose(robust.reduce(-means), -robust.reduce(means))
    _require(odd, robust, "reduce must be odd: reduce(-g) = -reduce(g)")
    same = np.broadcast_to(means[:1], means.shape)
    centred = np.allclose(robust.reduce(same), means[0])
    _require(centred, robust, "reduce of equal block means must be that mean")
    norms = problem.data.map_rows(lambda chunk: chunk.norms(None))
    factors = robust.shrink(lambda: norms)
    if factors is not None:
        _require((factors > 0) & (factors <= 1), robust, "shrink must give factors in (0, 1]")


def _check_bend(
    robust: Robustifier, name: str, bend: Callable[[np.ndarray], np.ndarray], raw: np.ndarray
) -> None:
    bent = bend(raw)
    _require(bent.shape == raw.shape, robust, f"{name} must keep the shape")
    small = (np.abs(bent) <= np.abs(raw) * (1 + _EXACT)) & (bent * raw >= 0)
    _require(small, robust, f"{name} must bend towards zero: |{name}(g)| ≤ |g|, with its sign")
    _require(np.allclose(bend(-raw), -bent), robust, f"{name} must be odd: {name}(-g) = -{name}(g)")
    single = bend(raw.astype(np.float32)).dtype
    _require(single == np.float32, robust, f"{name} returns {single} for float32")


def _check_off(problem: Problem, theta: Tucker, off: Mapping[str, Any] | None) -> None:
    robust = clone(problem.robust)
    names = robust.get_params(deep=False)
    off = {name: _OFF[name] for name in names if name in _OFF} if off is None else off
    robust.set_params(**off)
    switched_off = replace(problem, robust=robust).calibrate(theta)
    gap = _gap(switched_off, replace(problem, robust=Robustifier()), theta)
    _require(gap <= _EXACT, robust, f"switched off by {dict(off)} it is not the mean")


def _check_order(problem: Problem, theta: Tucker, rng: np.random.Generator) -> None:
    robust, y = problem.robust, problem.data.y
    X: Any = problem.data.X
    for chunk in (1, 7):
        gap = _gap(replace(problem, data=Rows(X, y, chunk=chunk)), problem, theta)
        _require(gap <= _CLOSE, robust, f"the gradient changes with chunks of {chunk} samples")
    if robust.n_blocks_ == 1:
        order = rng.permutation(problem.data.n)
        gap = _gap(replace(problem, data=Rows(X[order], y[order])), problem, theta)
        _require(gap <= _CLOSE, robust, "the gradient changes with the order of the samples")


def _check_bounds(problem: Problem, theta: Tucker) -> None:
    """A bounded influence no longer grows, however wild the sample."""
    clean, robust = problem.calibrate(theta), problem.robust
    kinds = [{kind} for kind in robust.bounds]
    for wild in [*kinds, set(robust.bounds)] if len(kinds) > 1 else kinds:
        if "responses" in wild and not problem.loss.residual:
            continue  # class labels cannot be wild
        near, far = (
            _gap(_contaminated(problem, wild, size).calibrate(theta), clean, theta)
            for size in (_WILD, _WILDER)
        )
        _require(
            far <= 1.01 * near + 1e-6,
            robust,
            f"its bounds promise a bounded influence of {' and '.join(sorted(wild))}, but one "
            f"sample of size {_WILD:g} moves the gradient by {near:.3g} and one of {_WILDER:g} by "
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
