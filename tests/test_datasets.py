"""Simulated data, against scipy's distributions and sums written out."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from tauten.datasets import directional_covariance, make_model, sample, simulate, truth
from tauten.losses import Loss


@pytest.mark.parametrize(("reading", "entry"), [("ones", math.sqrt(10)), ("unit", 0.1)])
def test_the_two_readings_of_the_paper(reading, entry):
    a = truth(reading=reading)
    np.testing.assert_allclose(a.full(), np.full((10, 10, 10), entry))
    assert float(a.core[0, 0, 0]) == pytest.approx(math.sqrt(10))


@pytest.mark.parametrize("reading", ["ones", "unit", "random"])
def test_truth_of_a_given_norm(reading):
    a = truth((3, 4, 5, 6), reading=reading, norm=7.0, rng=0)
    assert np.linalg.norm(a.full()) == pytest.approx(7)


def test_random_truth_has_orthonormal_factors_and_the_ranks_asked_for():
    a = truth((5, 6, 7), (2, 3, 4), reading="random", rng=3)
    for k, (u, r) in enumerate(zip(a.factors, a.rank, strict=True)):
        np.testing.assert_allclose(u.T @ u, np.eye(r), atol=1e-12)
        matrix = np.reshape(np.moveaxis(a.full(), k, 0), (a.shape[k], -1))
        assert np.linalg.matrix_rank(matrix) == (2, 3, 4)[k]


def test_random_factors_prefer_no_sign():
    first = [truth((3, 3), reading="random", rng=s).factors[0][0, 0] for s in range(400)]
    assert stats.kstest(first, stats.uniform(-1, 2).cdf).pvalue > 0.01  # a sphere in 3 dimensions


def distribution(spec):
    name, _, value = spec.partition(":")
    if name == "pareto":
        return stats.pareto(float(value), loc=-float(value) / (float(value) - 1))
    return stats.t(float(value)) if name == "t" else stats.norm()


@pytest.mark.parametrize("spec", ["normal", "t:2.1", "t:1.2", "pareto:2.1", "kronecker:0.7"])
def test_distribution_of_a_flat_sample(spec):
    x = sample(spec, (5000,), rng=1)
    assert stats.kstest(x, distribution(spec).cdf).pvalue > 0.01
    assert distribution("pareto:2.1").mean() == pytest.approx(0)


def test_kronecker_sample_has_the_kronecker_covariance():
    x = sample("kronecker:0.7", (60_000, 2, 3), rng=0)
    flat = np.reshape(np.swapaxes(x, 1, 2), (len(x), -1))  # first index fastest
    w, sine, cosine = np.array([1.0, -1.0, 1.0]), math.sin(0.7), math.cos(0.7)
    v = [sine + cosine * w[:p] for p in (2, 3)]
    second, third = (0.5 * np.eye(len(u)) + 0.5 * np.outer(u, u) for u in v)
    np.testing.assert_allclose(np.cov(flat.T), np.kron(third, second), atol=0.08)
    np.testing.assert_allclose(directional_covariance(3, 0.7), third)


@pytest.mark.parametrize("seed", [5, np.random.default_rng(5)])
def test_seeds_are_ints_or_generators(seed):
    x = sample("normal", (3, 2), rng=seed)
    np.testing.assert_array_equal(x, np.random.default_rng(5).standard_normal((3, 2)))


@pytest.mark.parametrize(
    ("model", "x_shape", "y_shape"),
    [
        ("I", (7, 10, 10, 10), (7,)),
        ("II", (7, 10, 10), (7, 10)),
        ("III", (7, 10, 10, 10), (7,)),
        ("IV", None, (7, 10, 10, 10)),
    ],
)
@pytest.mark.parametrize("reading", ["ones", "unit"])
def test_shapes_of_the_models(model, reading, x_shape, y_shape):
    data = make_model(model, 7, reading=reading, rng=0)
    assert (None if data.X is None else data.X.shape) == x_shape
    assert data.y.shape == y_shape
    assert data.outliers.shape == (7,)
    assert not data.outliers.any()
    assert data.truth.norm() == pytest.approx(truth(reading=reading).norm())


def test_models_of_other_shapes_and_ranks():
    options = {"reading": "random", "rank": 2, "rng": 0}
    assert make_model("I", 4, shape=(5, 6), **options).X.shape == (4, 5, 6)
    assert make_model("II", 4, shape=(5, 6, 3, 2), **options).y.shape == (4, 2)
    assert make_model("IV", 1, shape=(5, 6), **options).y.shape == (1, 5, 6)


@pytest.mark.parametrize(
    ("d0", "formula"), [(3, "nabc,abc->n"), (2, "nab,abc->nc"), (1, "na,abc->nbc")]
)
def test_responses_follow_the_covariates(d0, formula):
    a = truth((4, 5, 6), (2, 3, 2), reading="random", rng=0)
    b = truth((4, 5, 6), (1, 2, 2), reading="random", rng=1)
    one, other = (simulate(t, 30, covariate_order=d0, noise="t:1.5", rng=2) for t in (a, b))
    np.testing.assert_array_equal(one.X, other.X)  # same seed: same covariates, same noise
    expected = np.einsum(formula, one.X, a.full() - b.full())
    np.testing.assert_allclose(one.y - other.y, expected, atol=1e-10)


@pytest.mark.parametrize("noise", ["normal", "t:1.2", "pareto:2.1"])
def test_noise_of_regression_and_pca(noise):
    a = truth((4, 5, 6), 2, reading="random", rng=0)
    regression = simulate(a, 3000, covariate_order=3, noise=noise, rng=1)
    residuals = regression.y - np.einsum("nabc,abc->n", regression.X, a.full())
    pca = simulate(a, 50, covariate_order=0, noise=noise, rng=1)
    for e in (residuals, np.ravel(pca.y - a.full())):
        assert stats.kstest(e, distribution(noise).cdf).pvalue > 0.01


def test_covariates_and_noise_of_experiment_3():
    data = make_model(
        "II", 40_000, shape=(3, 2, 2), covariates="kronecker:1.2", noise="kronecker:0.3", rng=0
    )
    noise = data.y - np.einsum("nab,abc->nc", data.X, data.truth.full())
    np.testing.assert_allclose(np.cov(noise.T), directional_covariance(2, 0.3), atol=0.04)
    fibres = np.cov(data.X[:, :, 0].T) / directional_covariance(2, 1.2)[0, 0]
    np.testing.assert_allclose(fibres, directional_covariance(3, 1.2), atol=0.04)


def is_calibrated(y, probability):
    """Whether 0/1 labels fit their probabilities, in both halves, within 4 standard errors."""
    halves = [probability < 0.5, probability >= 0.5]
    gaps = [np.sum((y - probability)[h]) for h in halves]
    spreads = [np.sqrt(np.sum((probability * (1 - probability))[h])) for h in halves]
    return all(abs(g) <= 4 * s for g, s in zip(gaps, spreads, strict=True))


def test_labels_of_model_iii():
    data = make_model("III", 20_000, shape=(3, 4, 2), rng=0)
    eta = np.einsum("nabc,abc->n", data.X, data.truth.full())
    assert set(np.unique(data.y)) == {0, 1}
    assert is_calibrated(data.y, expit(eta))
    assert not is_calibrated(data.y, expit(-eta))
    assert not is_calibrated(data.y, expit(1.2 * eta))


@pytest.mark.parametrize("name", ["huber", "logistic", "multinomial", "poisson", "gamma"])
def test_every_loss_gets_responses_of_its_domain(name):
    a = truth((4, 3), reading="unit", norm=1.0)
    for order in (0, 1):
        data = simulate(a, 25, covariate_order=order, loss=name, contamination=0.2, rng=0)
        assert data.y.shape == ((25, 4, 3) if order == 0 else (25, 3))
        Loss.get(name).check(data.y)


@pytest.mark.parametrize("kind", ["adversarial", "random"])
def test_bad_leverage_in_regression(kind):
    options = {"covariate_order": 2, "noise": "t:2", "rng": 3}
    a = truth((4, 3))
    clean = simulate(a, 5000, **options)
    dirty = simulate(a, 5000, contamination=0.3, kind=kind, **options)
    bad = dirty.outliers
    assert bad.sum() == 1500
    assert not bad[:1500].all()  # at random places
    np.testing.assert_array_equal(dirty.X[~bad], clean.X[~bad])
    np.testing.assert_array_equal(dirty.y[~bad], clean.y[~bad])
    np.testing.assert_allclose(dirty.X[bad], 4 * clean.X[bad])
    rest = dirty.y[bad] + (4 * clean.y[bad] if kind == "adversarial" else 0)
    assert stats.kstest(rest / 5, stats.norm.cdf).pvalue > 0.01


def test_bad_leverage_in_classification():
    options = {"shape": (3, 4, 2), "rng": 3}
    clean = make_model("III", 20_000, **options)
    eta = np.einsum("nabc,abc->n", clean.X, clean.truth.full())
    for kind, probability in [("adversarial", expit(-eta)), ("random", np.full(20_000, 0.5))]:
        dirty = make_model("III", 20_000, contamination=0.4, kind=kind, **options)
        bad = dirty.outliers
        np.testing.assert_allclose(dirty.X[bad], 10 * clean.X[bad])
        np.testing.assert_array_equal(dirty.y[~bad], clean.y[~bad])
        assert is_calibrated(dirty.y[bad], probability[bad])


def test_outliers_of_pca_are_whole_copies():
    clean, dirty = (make_model("IV", 10, contamination=c, rng=0) for c in (0.0, 0.2))
    changed = (clean.y != dirty.y).reshape(10, -1)
    np.testing.assert_array_equal(changed.all(axis=1), dirty.outliers)
    np.testing.assert_array_equal(changed.any(axis=1), dirty.outliers)
    assert dirty.outliers.sum() == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: truth(reading="paper"), "reading must be 'unit', 'ones' or 'random'"),
        (lambda: truth(reading="random"), "rng must be a numpy Generator or an int seed"),
        (lambda: truth(norm=-1), "norm must be a positive number"),
        (lambda: truth(norm=0), "norm must be a positive number"),
        (lambda: truth(rank=2), "rank must be 1 for reading 'unit'"),
        (lambda: truth((3, 4), (2,)), "rank one for all or one per mode"),
        (lambda: truth(()), "shape must hold positive ints"),
        (lambda: truth((3, 0)), "shape must hold positive ints"),
        (lambda: truth((2, 9, 9), 3, reading="random", rng=0), "rank of axis 0 must be at most 2"),
        (
            lambda: truth((9, 9), (2, 3), reading="random", rng=0),
            "rank of axis 1 must be at most 2",
        ),
        (lambda: sample("cauchy", (3,), rng=0), "got 'cauchy'"),
        (lambda: sample("normal:2", (3,), rng=0), "got 'normal:2'"),
        (lambda: sample("t", (3,), rng=0), "got 't'"),
        (lambda: sample(2.1, (3,), rng=0), "got 2.1"),
        (lambda: sample("t:0", (3,), rng=0), "positive number of degrees of freedom; got 0"),
        (lambda: sample("t:x", (3,), rng=0), "degrees of freedom; got nan"),
        (lambda: sample("pareto:1", (3,), rng=0), "index above 1"),
        (lambda: sample("kronecker:inf", (3,), rng=0), "angle in radians; got inf"),
        (lambda: sample("normal", (3,), rng=None), "rng must be"),
        (lambda: make_model("V", 5, rng=0), "model must be one of I, II, III, IV; got 'V'"),
        (lambda: make_model("I", 0, rng=0), "n must be at least 1; got 0"),
        (lambda: make_model("I", 5, contamination=1.0, rng=0), r"share in \[0, 1\); got 1"),
        (lambda: make_model("I", 5, kind="loud", rng=0), "kind must be one of"),
        (lambda: make_model("III", 5, noise="t:2", rng=0), "noise must be left out"),
        (lambda: make_model("IV", 5, covariates="t:2", rng=0), "covariates must be left out"),
        (lambda: simulate(truth(), 5, covariate_order=4, rng=0), "between 0 .PCA. and the order 3"),
        (lambda: simulate(truth(), 5, covariate_order=3, loss="mse", rng=0), "unknown loss 'mse'"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
