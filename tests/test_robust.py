"""Every registered robustifier by the conformance checks; thresholds, chosen and refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.robust import (
    Adaptive,
    Catoni,
    Cauchy,
    HodgesLehmann,
    Huber,
    MedianOfMeans,
    NormClip,
    PseudoHuber,
    Robustifier,
    Shrink,
    Truncate,
)
from tauten.testing import check_robustifier
from tauten.tucker import Affine, Tucker


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", Robustifier.registry)
def test_conformance(name, seed):
    check_robustifier(Robustifier.get(name), rng=seed)


@pytest.mark.parametrize(
    "spec",
    [
        "truncate:tau=0.5",
        "truncate:tau=1e5",
        "huber:nu=0.7",
        "shrink:omega=1.2",
        "normclip:tau=2",
        "catoni:tau=0.3",
        "mom:n_blocks=4",
        "mom:n_blocks=60",
        "rank:n_blocks=8",
        "auto:omega=auto",
        "auto:omega=1.5,nu=0.5,tau=0.3",
    ],
)
def test_conformance_with_other_thresholds(spec):
    check_robustifier(Robustifier.get(spec))


def test_conformance_with_a_threshold_per_block_and_per_entry():
    per_block = [0.5, 1.0, 2.0, 0.7]
    per_entry = [np.full(s, 0.4) for s in ((2, 2, 2), (3, 2), (2, 2), (2, 2))]
    for tau in (per_block, per_entry):
        for robust in (Truncate(tau), Catoni(tau), Adaptive(tau=tau)):
            check_robustifier(robust)
    check_robustifier(NormClip(per_block))


class Leaky(Huber):
    """Declares both, bounds responses only."""

    bounds = frozenset({"responses", "covariates"})


class LeaksResponses(Shrink):
    bounds = frozenset({"responses", "covariates"})


class Switched(Robustifier):
    """Its own name for what switches it off."""

    def __init__(self, on=True):
        self.on = on


class Logarithmic(Switched):
    """Catoni's first influence function, ``sgn(g) log(1 + |g| + g²/2)``: it has no bound."""

    bounds = frozenset({"responses"})

    def sample(self, gradient, k):
        if not self.on:
            return gradient
        return np.sign(gradient) * np.log1p(np.abs(gradient) + gradient**2 / 2)


class Sloped(Truncate):
    """Still bends when its threshold is infinite."""

    def sample(self, gradient, k):
        return super().sample(0.999 * gradient, k)


class Amplifying(Robustifier):
    def sample(self, gradient, k):
        return gradient * (1 + 1e-6)


class Lopsided(Robustifier):
    def score(self, score):
        return np.minimum(score, 1.0)


class ChunkWise(Switched):
    """Its threshold depends on which samples come together."""

    def sample(self, gradient, k):
        size = np.abs(gradient).mean() if self.on else np.inf
        return np.clip(gradient, -size, size)


class SelfChanging(Huber):
    def calibrate(self, pilot=None):
        new = super().calibrate(pilot)
        self.nu = new.nu_
        return new


class Itself(Robustifier):
    def calibrate(self, pilot=None):
        return self


class Halved(MedianOfMeans):
    def reduce(self, means):
        return super().reduce(means) / 2


class Enlarging(Shrink):
    def shrink(self, norms):
        return 2 * np.ones(len(norms()))


class DoublePrecision(Huber):
    def score(self, score):
        return np.float64(1) * super().score(score)


class Forgetful(Huber):
    def __getstate__(self):
        return {"nu": 1.0}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Leaky(), "bounds promise a bounded influence of covariates"),
        (LeaksResponses(), "bounds promise a bounded influence of responses"),
        (Logarithmic(), "bounds promise a bounded influence of responses"),
        (Sloped(), "switched off by {'tau': inf} it is not the mean"),
        (Amplifying(), "sample must bend towards zero"),
        (Lopsided(), "score must be odd"),
        (ChunkWise(), "the gradient changes with chunks of 1 samples"),
        (SelfChanging(), "calibrate must not change what it is called on"),
        (Itself(), "calibrate must return a copy"),
        (Halved(), "reduce of equal block means must be that mean"),
        (Enlarging(), "shrink must give factors in (0, 1]"),
        (DoublePrecision(), "score returns float64 for float32"),
        (Forgetful(nu=3.0), "a clone or a pickle of it has other parameters"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Robustifier) else "",
)
def test_the_checks_find_what_is_wrong(wrong, sentence):
    off = {"on": False} if isinstance(wrong, Switched) else None
    with pytest.raises(AssertionError) as caught:
        check_robustifier(clone(wrong), off=off)  # one of them changes itself
    assert str(caught.value).startswith(f"{type(wrong).__name__}: ")
    assert sentence in str(caught.value)


def problem_and_point(rng, n=31, pca=False):
    theta = Tucker(rng.normal(size=(2, 2)), [rng.normal(size=(4, 2)), rng.normal(size=(3, 2))])
    if pca:
        return Problem(Rows(None, rng.normal(size=(n, 4, 3))), Squared(), Direct()), theta
    X, y = rng.normal(size=(n, 4)), rng.standard_t(2, size=(n, 3))
    return Problem(Rows(X, y), Squared(), Covariate()), theta


def test_truncation_bounds_one_sample_by_two_tau_over_n(rng):
    problem, theta = problem_and_point(rng)
    robust = Truncate(tau=0.3).calibrate()
    X, y = problem.data.X.copy(), problem.data.y.copy()
    X[0], y[0] = -1e8 * np.sign(X[0]), 1e8
    clean, dirty = (
        Problem(Rows(*data), Squared(), Covariate(), robust).gradient(theta).blocks.blocks
        for data in ((problem.data.X, problem.data.y), (X, y))
    )
    gaps = [np.abs(a - b).max() for a, b in zip(clean, dirty, strict=True)]
    assert max(gaps) <= 2 * 0.3 / problem.data.n + 1e-15
    assert max(gaps) > 0.3 / problem.data.n  # it gets there


def mad(values, axis=0):
    return 1.4826 * np.median(np.abs(values), axis=axis)


@pytest.mark.parametrize("pca", [False, True])
def test_automatic_thresholds_are_what_they_say(rng, pca):
    problem, theta = problem_and_point(rng, pca=pca)
    pilot = problem.pilot(theta)
    gradients, n = pilot.gradients(), problem.data.n
    scores = np.broadcast_to(
        problem.design.linearise(theta, problem.data.X)[0], problem.data.y.shape
    )
    scores = scores - problem.data.y

    if pca:
        for tau, g in zip(Truncate().calibrate(pilot).tau_, gradients, strict=True):
            np.testing.assert_allclose(tau, 8 * mad(g))
    theory = Truncate("theory").calibrate(pilot)
    largest = max(theta.shape)
    for tau, g in zip(theory.tau_, gradients, strict=True):
        np.testing.assert_allclose(tau, mad(g) * np.sqrt(n / np.log(largest)))
    free = Truncate("tuning-free").calibrate(pilot)
    share = min(0.5, 10 * np.log(n * theta.d_eff) / n)
    for tau, g in zip(free.tau_, gradients, strict=True):
        np.testing.assert_allclose(
            np.mean(np.minimum(g / tau, 1.0) ** 2 * (abs(g) < tau) + (abs(g) >= tau), axis=0),
            share,
            rtol=1e-8,
        )
    catoni = Catoni().calibrate(pilot)
    for tau, g in zip(catoni.tau_, gradients, strict=True):
        np.testing.assert_allclose(tau, mad(g) * np.sqrt(n / (2 * np.log(2 * n))))
    normclip = NormClip().calibrate(pilot)
    for tau, g in zip(normclip.tau_, gradients, strict=True):
        assert tau == pytest.approx(3 * np.median(np.sqrt(np.sum(g.reshape(n, -1) ** 2, axis=1))))
    nu = 1.345 * mad(scores, axis=None)
    assert Huber().calibrate(pilot).nu_ == pytest.approx(nu)
    assert Cauchy().calibrate(pilot).nu_ == pytest.approx(nu * 2.385 / 1.345)
    if pca:
        with pytest.raises(ValueError, match="PCA has none"):
            Shrink().calibrate(pilot)
    else:
        norms = np.sqrt(np.sum(problem.data.X**2, axis=1))
        assert Shrink().calibrate(pilot).omega_ == pytest.approx(np.median(norms))
        assert np.isinf(Adaptive().calibrate(pilot).omega_)  # the squared loss is of the residual


def test_norms_are_those_of_centred_covariates(rng):
    problem, theta = problem_and_point(rng)
    center = problem.data.X.mean(axis=0) + 3.0
    centred = Problem(problem.data, Squared(), Covariate(center))
    norms = np.sqrt(np.sum((problem.data.X - center) ** 2, axis=1))
    assert Shrink().calibrate(centred.pilot(theta)).omega_ == pytest.approx(np.median(norms))


def test_missing_responses_do_not_choose_a_threshold(rng):
    problem, theta = problem_and_point(rng, pca=True)
    y = problem.data.y.copy()
    y[rng.random(y.shape) < 0.7] = np.nan
    holes = Problem(Rows(None, y), Squared(), Direct(), missing=True)
    scores = theta.full() - y
    expected = 1.345 * 1.4826 * np.nanmedian(np.abs(scores))
    assert Huber().calibrate(holes.pilot(theta)).nu_ == pytest.approx(expected)


def test_a_perfect_fit_truncates_nothing(rng):
    problem, theta = problem_and_point(rng)
    perfect = Problem(Rows(problem.data.X, problem.data.X @ theta.full()), Squared(), Covariate())
    for name in Robustifier.registry:
        problem = Problem(perfect.data, Squared(), Covariate(), Robustifier.get(name))
        gradient = problem.calibrate(theta).gradient(theta)
        for block in gradient.blocks.blocks:
            assert np.all(np.abs(block) < 1e-10)


@pytest.mark.parametrize("K", [1, 2, 3, 4, 7, 8])
def test_median_and_hodges_lehmann_by_hand(K, rng):
    means = rng.normal(size=(K, 2, 3))
    np.testing.assert_allclose(MedianOfMeans(K).reduce(means), np.median(means, axis=0))
    pairs = [(means[i] + means[j]) / 2 for i in range(K) for j in range(i, K)]
    np.testing.assert_allclose(HodgesLehmann(K).reduce(means), np.median(pairs, axis=0))


def test_reduce_gets_the_blocks_side_by_side(make_theta, rng):
    data, theta = Rows(rng.normal(size=(20, 4, 3)), rng.normal(size=20)), make_theta((4, 3), (2, 2))
    shapes = []

    class Noting(MedianOfMeans):
        def reduce(self, means):
            shapes.append(means.shape)
            return super().reduce(means)

    Problem(data, Squared(), Covariate(), Noting(7).calibrate()).gradient(theta)
    assert shapes == [(7, theta.d_eff)]


def test_median_of_means_with_a_sample_per_block_is_the_median(rng):
    problem, theta = problem_and_point(rng)
    robust = Problem(problem.data, Squared(), Covariate(), MedianOfMeans(31)).calibrate(theta)
    gradient = robust.gradient(theta).blocks.blocks
    for block, samples in zip(gradient, problem.pilot(theta).gradients(), strict=True):
        np.testing.assert_allclose(block, np.median(samples, axis=0), atol=1e-12)


@pytest.mark.parametrize("name", Robustifier.registry)
def test_calibration_leaves_parameters_alone(name, rng):
    problem, theta = problem_and_point(rng)
    robust = Robustifier.get(name)
    before = dict(robust.get_params())
    calibrated = robust.calibrate(problem.pilot(theta))
    assert robust.get_params() == before
    assert calibrated.get_params() == before
    assert not [attribute for attribute in vars(robust) if attribute.endswith("_")]


@pytest.mark.parametrize("name", ["truncate", "huber", "shrink", "normclip", "catoni", "auto"])
def test_automatic_thresholds_need_a_pilot(name):
    with pytest.raises(ValueError, match="'auto' thresholds need a pilot"):
        Robustifier.get(name).calibrate()


def test_cross_validation_is_an_estimators(rng):
    problem, theta = problem_and_point(rng)
    with pytest.raises(ValueError, match="tau='cv' needs an estimator"):
        Truncate("cv").calibrate(problem.pilot(theta))


@pytest.mark.parametrize("value", [0.0, -2.0, np.nan, -np.inf])
@pytest.mark.parametrize(
    ("cls", "parameter"),
    [
        (Truncate, "tau"),
        (Catoni, "tau"),
        (NormClip, "tau"),
        (Huber, "nu"),
        (Shrink, "omega"),
        (Adaptive, "omega"),
        (Adaptive, "nu"),
        (Adaptive, "tau"),
    ],
)
def test_thresholds_must_be_positive(cls, parameter, value):
    others = {"nu": 1.0, "tau": 1.0} if cls is Adaptive else {}
    robust = cls(**{**others, parameter: value})
    with pytest.raises(ValueError, match=f"{parameter} must be positive"):
        robust.calibrate()


@pytest.mark.parametrize("value", [None, "large", True, {}, np.ones(3), 1j])
@pytest.mark.parametrize(
    ("cls", "parameter"), [(Truncate, "tau"), (Huber, "nu"), (Shrink, "omega")]
)
def test_thresholds_must_be_numbers(cls, parameter, value):
    with pytest.raises(TypeError, match=f"{parameter} must be a positive number"):
        cls(value).calibrate()


@pytest.mark.parametrize("parameter", ["omega", "nu", "tau"])
def test_thresholds_of_the_default_must_be_numbers(parameter, rng):
    problem, theta = problem_and_point(rng)
    robust = Adaptive(**{"omega": 1.0, "nu": 1.0, "tau": 1.0, parameter: "large"})
    with pytest.raises(TypeError, match=f"{parameter} must be a positive number"):
        robust.calibrate(problem.pilot(theta))


def test_thresholds_per_block_must_fit(rng):
    problem, theta = problem_and_point(rng)
    pilot = problem.pilot(theta)
    with pytest.raises(
        ValueError, match=r"tau must be one number or one entry per block .* 3 here"
    ):
        Truncate([1.0, 1.0]).calibrate(pilot)
    for bad in ([1.0, 0.0, 1.0], [1.0, np.nan, 1.0], [1.0, np.zeros((4, 2)), 1.0]):
        with pytest.raises(ValueError, match="tau must be positive in every block"):
            Truncate(bad).calibrate(pilot)
    as_point = theta.map(lambda block: np.abs(block) + 0.1)
    given = Truncate(as_point).calibrate(pilot)
    listed = Truncate(list(as_point.blocks)).calibrate(pilot)
    for k, block in enumerate(pilot.gradients()):
        np.testing.assert_array_equal(given.sample(block, k), listed.sample(block, k))


def test_norms_have_one_threshold_per_block(rng):
    robust = NormClip([1.0, np.ones((4, 2))]).calibrate()
    g = rng.normal(size=(5, 4, 2))
    assert robust.sample(g, 0).shape == g.shape
    with pytest.raises(ValueError, match=r"^tau must be one number per block"):
        robust.sample(g, 1)


@pytest.mark.parametrize("cls", [MedianOfMeans, HodgesLehmann])
@pytest.mark.parametrize("n_blocks", [0, -1, 2.5, 32])
def test_blocks_must_be_a_number_of_samples(cls, n_blocks, rng):
    problem, theta = problem_and_point(rng)
    with pytest.raises(ValueError, match=r"n_blocks must be a whole number from 1 to .*, 31; got"):
        cls(n_blocks).calibrate(problem.pilot(theta))


def test_few_samples_tell_no_scale(rng):
    """PCA of one tensor: a threshold per entry cannot be chosen from one gradient."""
    problem, theta = problem_and_point(rng, n=1, pca=True)
    for tau in Truncate().calibrate(problem.pilot(theta)).tau_:
        assert np.all(np.isinf(tau))
    assert np.all(np.isinf(Adaptive().calibrate(problem.pilot(theta)).tau_))


@pytest.mark.parametrize("cls", [Huber, Cauchy, PseudoHuber])
@pytest.mark.parametrize("nu", [0.5, 3.0])
def test_bent_scores_are_the_slope_of_a_loss(cls, nu):
    robust, h = cls(nu).calibrate(), 1e-6
    s = np.array([-9.0, -1.1, -0.2, 0.0, 0.4, 2.0, 30.0])
    slope = (robust.value(s + h) - robust.value(s - h)) / (2 * h)
    np.testing.assert_allclose(slope, robust.score(s), atol=1e-7)
    assert robust.value(np.zeros(1)) == 0


@pytest.mark.parametrize("spec", ["none", "truncate:tau=0.7", "catoni:tau=0.7", "auto:tau=0.7"])
def test_slopes_of_bent_gradients_are_their_derivative(spec, rng):
    """By differences of another length than any the code takes; a kink is far from all entries."""
    robust, k, h = (
        Robustifier.get(spec).set_params(**{"nu": 1.0} if "auto" in spec else {}),
        1,
        1e-4,
    )
    robust = robust.set_params(**{"omega": np.inf} if "auto" in spec else {}).calibrate()
    g = rng.normal(size=(50, 4, 2))
    g = g[np.abs(np.abs(g) - 0.7).min(axis=(1, 2)) > 2 * h]
    slope = (robust.sample(g + h, k) - robust.sample(g - h, k)) / (2 * h)
    np.testing.assert_allclose(robust.sample_slope(g, k), slope, atol=1e-6)


def test_slopes_of_truncation_at_thresholds_of_their_own(rng):
    g, tau = rng.normal(size=(30, 4)), np.array([0.1, 1.0, 2.0, np.inf])
    found = Truncate([1.0, tau]).calibrate().sample_slope(g, 1)
    np.testing.assert_array_equal(
        found, [[float(abs(v) < t) for v, t in zip(row, tau, strict=True)] for row in g]
    )


@pytest.mark.parametrize(
    "robust", [Truncate(2.0), Catoni(2.0), Adaptive(1.0, 1.0, 2.0), Robustifier()], ids=str
)
def test_slopes_are_those_of_bent_gradients(robust):
    robust, h = robust.calibrate(), 1e-6
    g = np.array([[-9.0, -1.1], [0.2, 1.9], [2.1, 30.0]])
    slope = (robust.sample(g + h, 0) - robust.sample(g - h, 0)) / (2 * h)
    np.testing.assert_allclose(robust.sample_slope(g, 0), slope, atol=1e-6)
    assert robust.sample_slope(g.astype(np.float32), 0).dtype == np.float32


POINT = Affine(np.ones((2, 1)), [np.ones((4, 2)), np.ones((3, 1))], np.ones(2))
ENTRIES = [np.linspace(0.1, 1.5, b.size).reshape(b.shape) for b in POINT.blocks]


@pytest.mark.parametrize(
    "robust",
    [
        Robustifier(),
        Truncate(0.7),
        Truncate([0.5, 0.6, 0.7, 0.8]),
        Truncate(ENTRIES),
        Truncate([0.5, ENTRIES[1], np.inf, ENTRIES[3]]),
        Catoni(0.7),
        NormClip([0.5, 0.6, 0.7, 0.8]),
        Adaptive(np.inf, 1.0, ENTRIES),
        Sloped(ENTRIES),
    ],
    ids=[
        "none",
        "one",
        "per block",
        "per entry",
        "mixed",
        "catoni",
        "normclip",
        "auto",
        "subclass",
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_blocks_are_bent_at_once_as_one_by_one(robust, dtype, rng):
    """A subclass that bends one block otherwise bends all of them so."""
    robust = robust.calibrate()
    rows = rng.normal(size=(20, 15)).astype(dtype)
    ends = np.cumsum([b.size for b in POINT.blocks])[:-1]
    blocks = [
        part.reshape(20, *b.shape)
        for part, b in zip(np.split(rows, ends, axis=1), POINT.blocks, strict=True)
    ]
    for every, one in (
        (robust.samples, robust.sample),
        (robust.sample_slopes, robust.sample_slope),
    ):
        expected = [one(block, k).reshape(20, -1) for k, block in enumerate(blocks)]
        found = every(rows, POINT)
        np.testing.assert_array_equal(found, np.concatenate(expected, axis=1))
        assert found.dtype == dtype


@pytest.mark.parametrize("robust", [Robustifier(), Truncate(np.inf), NormClip(np.inf), Huber(1.0)])
def test_gradients_that_nothing_bends_are_not_copied(robust, rng):
    rows = rng.normal(size=(5, 15))
    assert robust.calibrate().samples(rows, POINT) is rows
