"""Every registered loss by the conformance checks, and each against its textbook form."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from tauten._array import safe_exp
from tauten.losses import Gamma, Huber, Logistic, Loss, Multinomial, Poisson, Squared
from tauten.testing import check_loss


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", Loss.registry)
def test_conformance(name, seed):
    check_loss(Loss.get(name), rng=seed)


@pytest.mark.parametrize("nu", [0.1, 3.0, 1e9, np.inf])
def test_conformance_of_huber(nu):
    check_loss(Huber(nu=nu))


@pytest.mark.parametrize("name", oracle.LOSSES)
def test_textbook_form(name, rng):
    loss, definition = Loss.get(name), oracle.LOSSES[name]
    eta = rng.normal(scale=3.0, size=(50, 4))
    y = loss.draw(rng.normal(size=(50, 4)), rng)
    for method in ("value", "score", "curvature", "weight"):
        mine, theirs = getattr(loss, method)(eta, y), getattr(definition, method)(eta, y)
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    assert loss.residual == definition.residual


class NegativeBinomial(Loss):
    """``(r + y) log(1 + m) - y log m`` with ``m = exp η`` and r = 2, and its right score."""

    domain = "counts"

    def value(self, eta, y):
        return (2 + y) * np.logaddexp(0, eta) - y * eta

    def score(self, eta, y):
        return (2 + y) * Logistic().mean(eta) - y

    def curvature(self, eta, y):
        return (2 + y) * Logistic().curvature(eta, y)

    def mean(self, eta):
        return 2 * Poisson().mean(eta)

    def link(self, mean):
        return np.log(mean / 2)

    def draw(self, eta, rng):
        # An underflowing success probability makes numpy's sampler refuse; none does here.
        return rng.negative_binomial(2, 1 / (1 + np.exp(eta))).astype(float)

    def contains(self, y):
        return (y >= 0) & np.isfinite(y)

    name = "negative binomial"


class PublishedNegativeBinomial(NegativeBinomial):
    """With a bug of a published library: ``(r + 1) / (1 + m) - y / m`` per unit of m."""

    def score(self, eta, y):
        return (2 + 1) * Logistic().mean(eta) - y


def test_a_new_loss_that_is_right_passes():
    check_loss(NegativeBinomial())


def test_the_checks_find_a_published_bug():
    with pytest.raises(AssertionError, match="score is not the derivative of the value"):
        check_loss(PublishedNegativeBinomial())


class WrongCurvature(Squared):
    def curvature(self, eta, y):
        return 2 * np.ones_like(eta - y)


class KinkedScore(Squared):
    """Off by little, and on one side only."""

    def score(self, eta, y):
        return eta - y + 1e-3 * (eta > 0)


class WrongTail(Poisson):
    """Right wherever the exponential is one, wrong on the tangent line that continues it."""

    def score(self, eta, y):
        return safe_exp(eta)[0] - y


class Overflowing(Logistic):
    def value(self, eta, y):
        return np.log(1 + np.exp(eta)) - y * eta


class OverflowingInSinglePrecision(Poisson):
    """Finite at 800 in double precision only."""

    def value(self, eta, y):
        return super().value(eta, y) * eta.dtype.type(1e30 if eta.dtype == np.float32 else 1)


class TakesInfinities(Squared):
    def contains(self, y):
        return ~np.isnan(y)


class TakesAnyLabel(Logistic):
    def contains(self, y):
        return np.isfinite(y)


class TakesNoNegatives(Squared):
    def contains(self, y):
        return y >= 0


class WrongLink(Poisson):
    def link(self, mean):
        return np.log(mean + 1)


class BiasedDraws(Squared):
    def draw(self, eta, rng):
        return eta + rng.normal(0.1, 1.0, size=eta.shape)


class BiasedScore(Squared):
    """Consistent derivatives of a loss whose minimum is not at the model's mean."""

    def value(self, eta, y):
        return super().value(eta, y) + 0.1 * eta

    def score(self, eta, y):
        return super().score(eta, y) + 0.1


class DrawsOutside(Gamma):
    def draw(self, eta, rng):
        return super().draw(eta, rng) - 0.01


class DoublePrecision(Squared):
    def mean(self, eta):
        return np.float64(1) * eta


class SpreadsMissing(Squared):
    def score(self, eta, y):
        return eta - y + 0 * np.sum(y, axis=-1, keepdims=True)


class NoBroadcast(Squared):
    def curvature(self, eta, y):
        return np.ones_like(eta)


class Forgetful(Huber):
    """Its copies do not keep its parameter."""

    def __getstate__(self):
        return {"nu": 1.0}


class NotQuadratic(Huber):
    quadratic = True


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (NotQuadratic(), "value is not half the square of the score, yet it is quadratic"),
        (WrongCurvature(), "curvature is not the derivative of the score"),
        (KinkedScore(), "score is not the derivative of the value"),
        (WrongTail(), "score is not the derivative of the value"),
        (Overflowing(), "value is not finite at |eta| = 800 in float64"),
        (OverflowingInSinglePrecision(), "value is not finite at |eta| = 800 in float32"),
        (TakesInfinities(), "check accepts the response inf"),
        (TakesAnyLabel(), "check accepts responses other than"),
        (TakesNoNegatives(), "check rejects a response that draw made"),
        (WrongLink(), "mean(link(m)) is not m"),
        (BiasedDraws(), "the average response of draws is not the mean"),
        (BiasedScore(), "the average score of draws is not zero"),
        (DrawsOutside(), "check rejects a response that draw made"),
        (DoublePrecision(), "mean returns float64 at |eta| = 800 in float32"),
        (SpreadsMissing(), "score lets a missing response change"),
        (NoBroadcast(), "curvature must serve all responses with one row"),
        (Forgetful(nu=3.0), "a clone or a pickle of it has other parameters"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Loss) else "",
)
def test_the_checks_find_what_is_wrong(wrong, sentence):
    with pytest.raises(AssertionError) as caught:
        check_loss(wrong)
    assert str(caught.value).startswith(f"{type(wrong).__name__}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("nu", [0.0, -1.0, np.nan])
def test_huber_needs_a_positive_threshold(nu):
    with pytest.raises(ValueError, match="nu must be positive"):
        Huber(nu).score(np.ones(2), np.ones(2))


def test_messages_count_and_name_what_is_outside():
    with pytest.raises(ValueError, match=r"y must hold 0 or 1 .* got 7 \(2 such entries\)"):
        Logistic().check(np.array([0.0, 7.0, 1.0, 7.0]))


def test_missing_responses_may_be_allowed():
    y = np.array([0.0, np.nan, 1.0])
    Logistic().check(y, missing=True)
    with pytest.raises(ValueError, match="nan"):
        Logistic().check(y)
    with pytest.raises(ValueError, match="7"):
        Logistic().check(np.array([np.nan, 7.0]), missing=True)


def test_a_response_with_some_classes_missing_is_rejected():
    shares = np.array([[1.0, 0.0], [np.nan, np.nan]])
    Multinomial().check(shares, missing=True)
    shares[1, 0] = 1.0
    with pytest.raises(ValueError, match="class shares"):
        Multinomial().check(shares, missing=True)


def test_draws_far_out(rng):
    far = np.array([-800.0, -50.0, 50.0, 800.0])
    for name in Loss.registry:
        loss = Loss.get(name)
        draws = loss.draw(np.tile(far, (10, 1)), rng)
        assert np.all(np.isfinite(draws))
        loss.check(draws)


def test_classes_lie_along_the_last_axis(rng):
    eta = rng.normal(size=(2, 3, 4))
    loss, y = Multinomial(), Multinomial().draw(eta, rng)
    np.testing.assert_allclose(loss.mean(eta).sum(axis=-1), 1.0)
    np.testing.assert_array_equal(y.sum(axis=-1), 1.0)
    p = np.exp(eta) / np.exp(eta).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(loss.value(eta, y).sum(axis=-1), -np.log((p * y).sum(axis=-1)))


def test_a_loss_of_its_own_is_not_quadratic_unless_it_says_so():
    class Renamed(Squared):
        domain = "anything"

    class Bent(Squared):
        def score(self, eta, y):
            return np.tanh(eta - y)

    class Mixin:
        def value(self, eta, y):
            return np.abs(eta - y)

    class Mixed(Mixin, Squared):
        pass

    class Steep(Squared):
        def residual_weight(self, score, eta, y):
            return 5 * np.ones_like(eta - y)

    class OfLabels(Squared):
        residual = False

    assert Squared.quadratic
    assert Renamed.quadratic
    for other in (Huber, Bent, Mixed, Steep, OfLabels):
        assert not other.quadratic
