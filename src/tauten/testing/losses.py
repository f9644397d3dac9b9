"""Checks of a loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..datasets.seeds import Seed
from ..losses import Loss
from .base import DIFFERENCES, EXACT, check_copies, equal, require

DRAWS = 20_000
FAR = 800.0  # exp overflows beyond 709
SMOOTH = 0.9  # share of points that must not lie next to a kink


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
    far = FAR * rng.choice([-1.0, 1.0], size=eta.shape)
    check_copies(loss)
    _check_shapes(loss, eta, y)
    _check_derivatives(loss, eta, y)
    _check_derivatives(loss, 0.75 * far, y)
    if loss.quadratic:
        half = equal(loss.value(eta, y), loss.score(eta, y) ** 2 / 2)
        require(
            loss.residual and half,
            loss,
            "value is not half the square of the score, yet it is quadratic",
        )
    _check_overflow(loss, far, y)
    _check_domain(loss, y)
    _check_link(loss, eta)
    _check_draws(loss, rng)


def _check_shapes(loss: Loss, eta: np.ndarray, y: np.ndarray) -> None:
    missing = y.copy()
    missing[0, 0] = np.nan
    seen = ~np.isnan(missing)
    for name in ("value", "score", "curvature"):
        method = getattr(loss, name)
        result = method(eta, y)
        require(result.shape == y.shape, loss, f"{name} must keep the shape of y")
        others = np.array_equal(method(eta, missing)[seen], result[seen])
        require(others, loss, f"{name} lets a missing response change that of another entry")
        shared = equal(method(eta[:1], y), method(np.repeat(eta[:1], len(y), axis=0), y))
        sentence = f"{name} must serve all responses with one row of linear predictors, for PCA"
        require(shared, loss, sentence)


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
    tolerance = DIFFERENCES * (1 + np.abs(finer))
    smooth = np.abs(slope - finer) <= tolerance  # else there is a kink (Huber's ν) in between
    require(smooth.mean() > SMOOTH, loss, "value and score must be smooth almost everywhere")
    wrong = smooth & ~(np.abs(exact - finer) <= tolerance)
    if wrong.any():
        i = int(np.argmax(wrong))
        require(False, loss, f"{sentence}: {exact[i]:g} where differences give {finer[i]:g}")


def _check_overflow(loss: Loss, far: np.ndarray, y: np.ndarray) -> None:
    for dtype in ("float64", "float32"):
        eta, response = far.astype(dtype), y.astype(dtype)
        for name in ("value", "score", "curvature", "mean"):
            arguments = (eta,) if name == "mean" else (eta, response)
            at = f"at |eta| = {FAR:g} in {dtype}"
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    result = getattr(loss, name)(*arguments)
            except FloatingPointError as error:
                require(False, loss, f"{name} is not finite {at}: {error}")
            require(np.isfinite(result), loss, f"{name} is not finite {at}")
            require(result.dtype == dtype, loss, f"{name} returns {result.dtype} {at}")


def _check_domain(loss: Loss, y: np.ndarray) -> None:
    require(not _rejects(loss, y), loss, "check rejects a response that draw made")
    for value in (np.nan, np.inf, -np.inf):
        bad = y.copy()
        bad[0, 0] = value
        require(_rejects(loss, bad), loss, f"check accepts the response {value}")
    probes = [np.full((1, 3), value) for value in (-1e6, -0.5, 0.0, 0.5, 1e6)]
    rejected = [_rejects(loss, probe) for probe in probes]
    if loss.domain == Loss.domain:
        require(not any(rejected), loss, f"check rejects {loss.domain}, yet that is the domain")
    else:
        require(any(rejected), loss, f"check accepts responses other than {loss.domain}")


def _rejects(loss: Loss, y: np.ndarray) -> bool:
    try:
        loss.check(y)
    except ValueError:
        return True
    return False


def _check_link(loss: Loss, eta: np.ndarray) -> None:
    mean = loss.mean(eta)
    back = loss.mean(loss.link(mean))
    require(np.abs(back - mean) <= 1e-9 * (1 + np.abs(mean)), loss, "mean(link(m)) is not m")
    single = loss.link(mean.astype(np.float32)).dtype
    require(single == np.float32, loss, f"link returns {single} for float32")


def _check_draws(loss: Loss, rng: np.random.Generator) -> None:
    eta = np.broadcast_to(np.array([-1.0, 0.0, 1.0]), (DRAWS, 3))
    y = loss.draw(eta, rng)
    require(not _rejects(loss, y), loss, "draw makes responses outside the domain")
    for what, gap in {"response": y - loss.mean(eta), "score": loss.score(eta, y)}.items():
        error = gap.std(axis=0) / np.sqrt(DRAWS)
        expected = "the mean" if what == "response" else "zero"
        require(
            np.abs(gap.mean(axis=0)) <= 5 * error + EXACT,
            loss,
            f"the average {what} of draws is not {expected}: off by {gap.mean(axis=0)}, with "
            f"standard errors {error}",
        )
