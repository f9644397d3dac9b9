"""Thresholds chosen from a pilot fit: the sandwich, the rates, the bend of the default."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

import oracle
from tauten import TensorClassifier, TensorPCA, TensorRegressor
from tauten.data import Rows
from tauten.datasets import make_model, sample, simulate, truth
from tauten.designs import Covariate, Direct
from tauten.losses import Loss
from tauten.metrics import relative_error
from tauten.problem import PilotFit, Problem
from tauten.robust import Adaptive, Cauchy, Huber, Truncate
from tauten.robust.adaptive import MOST_SCORES, choose_bend, location_variance, slopes_of
from tauten.robust.thresholds import (
    FACTORS,
    as_needed,
    entry_scales,
    gentlest,
    sandwich,
    theory,
    tuning_free,
)
from tauten.tucker import Affine

# The candidates as documented: a change of the grid is a change of the method.
MULTIPLES = (2.0, 4.0, 8.0, 16.0, 32.0, 100.0)
HUBER = (0.2, 0.3, 0.5, 0.7, 1.0, 1.345, 1.7, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, np.inf)
CAUCHY = (0.5, 0.7, 1.0, 1.5, 2.385, 4.0)


def mad(values, axis=0):
    return 1.4826 * np.median(np.abs(values), axis=axis)


def simulated(shape, rank, n, *, loss="squared", linear=None, seed=0, order=None, **options):
    """A regression of scalar (or tensor) responses and a canonical point near its truth."""
    rng = np.random.default_rng(seed)
    target = truth(shape, rank, reading="random", rng=rng)
    order = len(shape) if order is None else order
    data = simulate(target, n, covariate_order=order, loss=loss, rng=rng, **options)
    theta = target.map(lambda block: block + 0.05 * rng.normal(size=block.shape)).canonical()
    Z = None
    if linear is not None:
        Z = np.column_stack([np.ones(n), rng.normal(size=(n, linear - 1))])
        theta = Affine(
            theta.core, theta.factors, 0.1 * rng.normal(size=(linear, *data.y.shape[1:]))
        )
    return Problem(Rows(data.X, data.y, Z), Loss.get(loss), Covariate()), theta


def joined(blocks):
    return np.concatenate([np.ravel(b) for b in blocks])


def independent_risk(problem, theta, tau, *, nu=np.inf):
    """Trace of the covariance of vec(A) by the sandwich, sample by sample, for scalar responses."""
    X, y, Z = problem.data.X, problem.data.y, problem.data.Z
    blocks, n, order = list(theta.blocks), len(y), theta.order
    point, size = oracle.Point(blocks), len(joined(blocks))
    tensor = oracle.full(blocks[0], blocks[1 : 1 + order])
    levels = joined([np.broadcast_to(t, b.shape) for t, b in zip(tau, blocks, strict=True)])
    moment, slope = np.zeros((size, size)), np.zeros((size, size))
    for i in range(n):
        parts = point.partial_gradients(X[i])
        eta = np.sum(tensor * X[i])
        if Z is not None:
            parts.append(Z[i])
            eta = eta + Z[i] @ blocks[-1]
        j = joined(parts)
        if problem.loss.name == "squared":
            score, curvature = eta - y[i], 1.0
        else:
            score = 1 / (1 + np.exp(-eta)) - y[i]
            curvature = 1 / (2 + np.exp(eta) + np.exp(-eta))
        raw = np.clip(score, -nu, nu) * j
        bent = np.clip(raw, -levels, levels)
        moment += np.outer(bent, bent)
        slope += np.outer((np.abs(raw) < levels) * (abs(score) < nu) * curvature * j, j)
    basis = oracle.horizontal_basis(theta.blocks, theta.order)
    inverse = basis @ np.linalg.inv(basis.T @ (slope / n) @ basis) @ basis.T
    covariance = inverse @ (moment / n**2) @ inverse.T
    move = oracle.tensor_jacobian(theta.blocks, theta.order)
    return np.trace(move @ covariance @ move.T)


def chosen_factor(pilot, bend=None):
    """The multiple of the entries' scales that the sandwich chose: one for all blocks."""
    found = sandwich(pilot, made, bend)
    ratios = joined([t / mad(g) for t, g in zip(found, pilot.gradients(bend), strict=True)])
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)
    return float(ratios[0])


def made(tau):
    return Truncate(tau).calibrate()


CASES = {
    "rank 1": {"shape": (4, 3), "rank": (1, 1), "n": 150},
    "rank 2": {"shape": (4, 3, 3), "rank": (2, 2, 2), "n": 200},
    "intercept": {"shape": (4, 3), "rank": (2, 2), "n": 120, "linear": 2},
}
DATA = {
    "clean": {},
    "heavy": {"covariates": "t:2.1", "noise": "t:2.1"},
    "leverage": {"contamination": 0.1},
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("case", CASES)
def test_sandwich_takes_the_gentlest_within_five_percent_of_the_least_risk(case, kind):
    problem, theta = simulated(**CASES[case], **DATA[kind], seed=3)
    pilot = problem.pilot(theta)
    scales = [mad(g) for g in pilot.gradients()]
    candidates = [[c * s for s in scales] for c in MULTIPLES]
    risks = np.array([independent_risk(problem, theta, tau) for tau in candidates])
    np.testing.assert_allclose(pilot.risks([made(t) for t in candidates]), risks, rtol=1e-4)
    expected = max(c for c, r in zip(MULTIPLES, risks, strict=True) if r <= 1.05 * risks.min())
    assert tuple(FACTORS) == MULTIPLES
    assert chosen_factor(pilot) == pytest.approx(expected)


@pytest.mark.parametrize("kind", DATA)
def test_clean_data_need_no_matrices_to_say_so(kind, monkeypatch):
    """Where no entry is large; one that is may make itself fit, and none tells by itself."""
    problem, theta = simulated((4, 3), (1, 1), 2000, seed=0, **DATA[kind])
    asked = []

    def risks(pilot, some):
        asked.extend(some)
        return [1.0] * len(some)

    monkeypatch.setattr(PilotFit, "risks", risks)
    assert chosen_factor(problem.pilot(theta)) == pytest.approx(FACTORS[-1])
    assert bool(asked) is (kind != "clean")
    if kind == "clean":
        X, y = problem.data.X.copy(), problem.data.y.copy()
        X[0] *= 10
        y[0] = 1 + np.sum(X[0] * theta.full())
        chosen_factor(replace(problem, data=Rows(X, y)).pilot(theta))
        assert asked


@pytest.mark.parametrize("steepness", [0.001, 1.0], ids=["flat", "steep"])
@pytest.mark.parametrize("count", range(1, 8))
def test_tighter_thresholds_are_left_out_where_nothing_asks_for_them(count, steepness):
    """Costs that fall and then rise: the least is known, whatever was left out."""
    for least in range(count):
        costs, asked = [1 + steepness * (i - least) ** 2 for i in range(count)], []

        def look(some, costs=costs, asked=asked):
            asked.extend(some)
            return [costs[i] for i in some]

        found, middle = as_needed(look, range(count)), (count - 1) // 2
        clean = least > middle and (steepness < 1 or count < 3)
        first = middle if clean or count == 1 else 0
        assert sorted(asked) == list(range(first, count))
        assert found == [np.inf] * first + costs[first:]


@pytest.mark.parametrize("cost", [np.inf, np.nan])
@pytest.mark.parametrize("place", [2, 3, 4])
def test_where_an_error_is_unknown_all_thresholds_are_looked_at(place, cost):
    assert as_needed(lambda some: [cost if i == place else 1.0 for i in some], range(5))[0] == 1


def test_sandwich_of_bent_scores():
    """The default's thresholds are on gradients whose score is bent already, at any gauge."""
    problem, theta = simulated((4, 3), (2, 2), 150, seed=1, contamination=0.1, noise="t:1.5")
    nu = 1.5
    bent = [
        np.stack(block)
        for block in zip(
            *(
                oracle.Point(theta.blocks).partial_gradients(x * np.clip(r, -nu, nu))
                for x, r in zip(
                    problem.data.X,
                    np.tensordot(problem.data.X, theta.full(), axes=2) - problem.data.y,
                    strict=True,
                )
            ),
            strict=True,
        )
    ]
    scales = [mad(g) for g in bent]
    risks = [independent_risk(problem, theta, [c * s for s in scales], nu=nu) for c in MULTIPLES]
    factor = max(c for c, r in zip(MULTIPLES, risks, strict=True) if r <= 1.05 * min(risks))
    found = Adaptive(nu=nu).calibrate(problem.pilot(theta)).tau_
    for tau, scale in zip(found, scales, strict=True):
        np.testing.assert_allclose(tau, factor * scale)
    # With other signs they are the same; elsewhere on the orbit of A they differ, the multiple not.
    turned = theta.canonical().rotate([np.diag([1.0, -1.0])] * 2)
    pilot = problem.pilot(turned)
    assert pilot.canonical() is pilot
    mixed = theta.rotate([np.linalg.qr([[1.0, 2.0], [0.5, -1.0]])[0]] * 2)
    moved = problem.pilot(mixed)
    assert moved.canonical() is not moved
    found = Adaptive(nu=nu).calibrate(moved).tau_
    huber = Huber(nu).calibrate()
    for tau, g in zip(found, moved.gradients(huber.score), strict=True):
        np.testing.assert_allclose(tau, factor * mad(g))


def test_risk_predicts_the_spread_of_least_squares():
    """The sandwich against what it claims to estimate: the error over many data sets."""
    target = truth((4, 3), (1, 1), reading="random", rng=0)
    errors, risks = [], []
    for seed in range(40):
        data = simulate(target, 200, covariate_order=2, rng=seed)
        model = TensorRegressor(1, robust="none", fit_intercept=False).fit(data.X, data.y)
        errors.append(np.sum((model.coef_ - target.full()) ** 2))
        problem = Problem(Rows(data.X, data.y), Loss.get("squared"), Covariate())
        pilot = problem.pilot(model.tucker_.canonical())
        risks.append(pilot.risks([problem.robust])[0])
    # 6 degrees of freedom: the mean of 40 errors has a relative standard error of 9%.
    assert np.mean(errors) == pytest.approx(np.mean(risks), rel=0.3)
    assert np.mean(risks) == pytest.approx(6 / 200, rel=0.15)


@pytest.mark.parametrize(("c", "b"), [(1e3, 1.0), (1e-3, 1.0), (1.0, 50.0), (7.0, 0.02)])
@pytest.mark.parametrize("rule", [theory, tuning_free, None])
def test_thresholds_are_equivariant(rule, c, b):
    """y times c and X times b: A times c/b, all of it in the core."""
    problem, theta = simulated((4, 3), (2, 2), 400, seed=2, contamination=0.1)
    data = problem.data
    scaled = replace(problem, data=Rows(b * data.X, c * data.y))
    moved = replace(theta, core=c / b * theta.core)

    def thresholds(problem, theta):
        pilot = problem.pilot(theta)
        return Adaptive().calibrate(pilot).tau_ if rule is None else rule(pilot)

    factors = [c * b, c * c, c * c]  # score times X for the core; times the core for the others
    pairs = zip(thresholds(problem, theta), thresholds(scaled, moved), factors, strict=True)
    for old, new, factor in pairs:
        np.testing.assert_allclose(new, factor * old, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_sandwich_cuts_bad_leverage_and_leaves_clean_data(seed):
    factors = {}
    for kind, options in {"clean": {}, "leverage": {"contamination": 0.05}}.items():
        problem, theta = simulated((5, 4, 3), (1, 1, 1), 300, seed=seed, **options)
        factors[kind] = chosen_factor(problem.pilot(theta))
    assert factors["clean"] == pytest.approx(100)
    assert factors["leverage"] <= 8


@pytest.mark.parametrize("seed", range(3))
def test_classes_take_the_scale_of_undecided_scores(seed):
    problem, theta = simulated((4, 3), (1, 1), 250, loss="logistic", seed=seed, contamination=0.1)
    point = oracle.Point(theta.blocks)
    halves = [point.partial_gradients(0.5 * x) for x in problem.data.X]
    scales = [mad(np.stack(block)) for block in zip(*halves, strict=True)]
    risks = [independent_risk(problem, theta, [c * s for s in scales]) for c in MULTIPLES]
    factor = max(c for c, r in zip(MULTIPLES, risks, strict=True) if r <= 1.05 * min(risks))
    for tau, scale in zip(Truncate().calibrate(problem.pilot(theta)).tau_, scales, strict=True):
        np.testing.assert_allclose(tau, factor * scale)


def test_gentlest():
    assert gentlest("abcd", [1.0, 1.04, 1.05, 1.06], 1.05) == "c"
    assert gentlest("abcd", [1.05, 1.0, 9.0, 1.01], 1.05) == "d"
    assert gentlest("abc", [np.nan, 2.0, np.inf], 1.05) == "b"
    assert gentlest("abc", [np.inf] * 3, 1.05) == "c"
    assert gentlest("abc", [np.nan] * 3, 1.05) == "c"
    assert gentlest("abc", [-1.0, 2.0, -2.0], 1.05) == "c"


@dataclass
class Pilot:
    """Scores or gradients alone."""

    values: np.ndarray | None = None
    blocks: list[np.ndarray] | None = None
    residual: bool = True
    classes: bool = False
    direct: bool = False

    @property
    def n(self):
        return len(self.values if self.blocks is None else self.blocks[0])

    def scores(self):
        return self.values

    def gradients(self, bend=None):
        return self.blocks


def test_scales_of_zero_entries(rng):
    """A threshold of zero would freeze an entry: one without a scale gets the largest."""
    g = rng.normal(size=(50, 3, 2)) * [[1.0, 2.0], [5.0, 3.0], [0.0, 1.0]]
    g[:20, 2, 0] = 7.0  # zero in most samples
    (scales,) = entry_scales([g])
    np.testing.assert_allclose(np.delete(scales.ravel(), 4), np.delete(mad(g).ravel(), 4))
    assert scales[2, 0] == mad(g).max()
    assert np.all(np.isinf(entry_scales([np.zeros((50, 2))])[0]))
    for tau in theory(Pilot(blocks=[np.zeros((50, 1, 1)), g, g])):
        assert np.all(tau > 0)
    free = tuning_free(Pilot(blocks=[np.zeros((50, 1)), g]))
    assert np.all(np.isinf(free[0]))
    assert np.all(free[1] > 0)


def test_few_samples_tell_no_scale(rng):
    g = rng.normal(size=(10, 3))
    assert np.all(np.isinf(entry_scales([g[:9]])[0]))
    np.testing.assert_allclose(entry_scales([g])[0], mad(g))


@pytest.mark.parametrize("n", [100, 400, 1600])
def test_theory_grows_at_the_papers_rate(rng, n):
    blocks = [rng.normal(size=(n, *s)) for s in ((2, 2), (7, 2), (4, 2))]
    found = theory(Pilot(blocks=blocks))
    for tau, g in zip(found, blocks, strict=True):
        np.testing.assert_allclose(tau, np.sqrt(n / np.log(7)) * mad(g))


@pytest.mark.parametrize("spec", ["normal", "t:1.2", "pareto:1.5"])
@pytest.mark.parametrize("n", [60, 3000])
def test_tuning_free_solves_its_equation(rng, spec, n):
    blocks = [sample(spec, (n, *s), rng=rng) for s in ((1, 1), (3, 1), (2, 1))]
    share = min(0.5, 10 * np.log(n * 6) / n)
    for tau, g in zip(tuning_free(Pilot(blocks=blocks)), blocks, strict=True):
        censored = np.mean(np.minimum(g**2, tau**2), axis=0) / tau**2
        np.testing.assert_allclose(censored, share, rtol=1e-8)


# The bend of the score


@pytest.mark.parametrize("k", [0.3, 0.7, 1.345, 2.0, 4.0])
def test_location_variance_of_huber_under_normal_noise(rng, k):
    """Huber (1964): E ψ² = P(|x| < k) - 2 k φ(k) + 2 k² Φ(-k), E ψ' = P(|x| < k)."""
    inside = 2 * stats.norm.cdf(k) - 1
    square = inside - 2 * k * stats.norm.pdf(k) + 2 * k**2 * stats.norm.cdf(-k)
    found, influence = location_variance(Huber(k).calibrate().score, rng.normal(size=400_000))
    assert found == pytest.approx(square / inside**2, rel=0.015)
    assert abs(np.mean(influence) + 1) < 1e-8


def test_location_variance_under_cauchy_noise(rng):
    """The likelihood score attains 1 / information = 2; Huber's by its integrals."""
    x = rng.standard_cauchy(400_000)
    assert location_variance(Cauchy(1.0).calibrate().score, x)[0] == pytest.approx(2.0, rel=0.02)
    k = 0.5
    inside = 2 * stats.cauchy.cdf(k) - 1
    square = 2 * (k - np.arctan(k)) / np.pi + k**2 * (1 - inside)
    found, _ = location_variance(Huber(k).calibrate().score, x)
    assert found == pytest.approx(square / inside**2, rel=0.02)


def test_location_variance_of_no_bend_is_the_second_moment(rng):
    x = rng.normal(size=1000) * 3
    found, influence = location_variance(Huber(np.inf).calibrate().score, x)
    assert found == pytest.approx(np.mean(x**2), rel=1e-6)
    np.testing.assert_allclose(influence, x**2 / np.mean(x**2) - 2, atol=1e-6)


def test_location_variance_of_a_falling_bend_is_infinite(rng):
    variance, influence = location_variance(np.negative, rng.normal(size=7))
    assert variance == np.inf
    np.testing.assert_array_equal(influence, np.zeros(7))


def test_location_variance_has_the_influence_it_says(rng):
    """Its standard error, against the spread over many samples."""
    bend = Huber(1.0).calibrate().score
    draws = rng.standard_t(3, size=(400, 500))
    logs, errors = [], []
    for x in draws:
        variance, influence = location_variance(bend, x)
        logs.append(np.log(variance))
        errors.append(np.std(influence) / np.sqrt(len(x)))
    assert np.mean(errors) == pytest.approx(np.std(logs), rel=0.15)


def expected_bend(scores):
    """The rule as documented, with slopes in closed form."""
    scale = mad(scores)
    trials = []  # (family, nu, variance, influence), from the most to the least cutting
    for family, factors in (("huber", HUBER[:4]), ("cauchy", CAUCHY), ("huber", HUBER[4:])):
        for factor in factors:
            nu = factor * scale
            if family == "huber":
                psi, slope = np.clip(scores, -nu, nu), (np.abs(scores) < nu).astype(float)
            else:
                u = (scores / nu) ** 2
                psi, slope = scores / (1 + u), (1 - u) / (1 + u) ** 2
            variance, influence = np.inf, 0 * scores
            if slope.mean() > 0:
                variance = np.mean(psi**2) / np.mean(slope) ** 2
                influence = psi**2 / np.mean(psi**2) - 2 * slope / np.mean(slope)
            trials.append((family, nu, variance, influence))
    best, last = min(trials, key=lambda trial: trial[2]), trials[-1]
    error = np.std(best[3] - last[3]) / np.sqrt(len(scores))
    if np.log(last[2] / best[2]) <= 2 * error:
        return last[:2]
    return [trial[:2] for trial in trials if trial[2] <= (1 + 2 / np.sqrt(len(scores))) * best[2]][
        -1
    ]


@pytest.mark.parametrize("spec", ["normal", "t:8", "t:3", "t:1.2", "t:0.7"])
def test_bend_is_the_gentlest_about_as_good_as_the_best_beyond_doubt(spec):
    for seed in range(6):
        scores = 3 * sample(spec, (300,), rng=seed)
        found = choose_bend(scores)
        family, nu = expected_bend(scores)
        assert (found.name, found.nu_) == (family, pytest.approx(nu)), seed


def test_normal_scores_are_not_bent_and_wild_ones_are():
    rngs = [np.random.default_rng(seed) for seed in range(20)]
    normal = [choose_bend(rng.normal(size=500)).nu_ for rng in rngs]
    assert sum(np.isinf(normal)) >= 18
    wild = [choose_bend(rng.standard_t(1.2, size=500)).nu_ for rng in rngs]
    assert np.all(np.isfinite(wild))


def test_doubt_leaves_least_squares(rng):
    """One score in 100 makes all the difference, and one score is no evidence; six are."""
    scores = stats.norm.ppf((np.arange(100) + 0.5) / 100)
    one, six = scores.copy(), scores.copy()
    one[0], six[:3], six[-3:] = -12.0, -12.0, 12.0
    plain = np.mean(one**2)
    bent, _ = location_variance(Huber(3.0 * mad(one)).calibrate().score, one)
    assert bent < plain / 1.5  # bending looks better by far
    assert np.isinf(choose_bend(one).nu_)
    assert np.isfinite(choose_bend(six).nu_)


@pytest.mark.parametrize(("size", "bent"), [(3.7, False), (4.1, True)])
def test_doubt_of_one_wild_score(size, bent):
    """Beyond every finite candidate, it alone adds s to a variance of one.

    The logarithm of the ratio is log(1 + s), and its standard error s / (1 + s): two of them are
    as much at s = 3.92.
    """
    scores = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    wild = np.append(scores, np.sqrt(size * 2001))
    assert np.isfinite(choose_bend(wild).nu_) == bent


def test_scores_that_tell_no_scale_are_not_bent(rng):
    for scores in (np.zeros(50), np.r_[np.zeros(40), rng.normal(size=10)]):
        found = choose_bend(scores)
        assert found.name == "huber"
        assert np.isinf(found.nu_)


def test_missing_scores_are_ignored(rng):
    scores = rng.standard_t(1.2, size=(40, 10))
    holes = np.full((80, 10), np.nan)
    holes[::2] = scores
    whole, found = (choose_bend(s) for s in (scores, holes))
    assert (found.name, found.nu_) == (whole.name, whole.nu_)
    assert np.isfinite(found.nu_)


@pytest.mark.parametrize("c", [1e-6, 1e6, -2.0])
def test_bend_is_equivariant(rng, c):
    scores = rng.standard_t(1.5, size=300)
    one, two = choose_bend(scores), choose_bend(c * scores)
    assert (two.name, two.nu_) == (one.name, pytest.approx(abs(c) * one.nu_))


# The default, put together


def test_omega_is_off_for_residuals_and_on_for_classes():
    problem, theta = simulated((4, 3), (1, 1), 100)
    assert np.isinf(Adaptive().calibrate(problem.pilot(theta)).omega_)
    problem, theta = simulated((4, 3), (1, 1), 100, loss="logistic")
    found = Adaptive().calibrate(problem.pilot(theta))
    norms = np.sqrt(np.sum(problem.data.X**2, axis=(1, 2)))
    assert found.omega_ == pytest.approx(np.median(norms))
    assert (found.psi_, found.nu_) == ("huber", np.inf)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    "fixed", [{"omega": 0.7}, {"nu": 0.3}, {"tau": 0.2}, {"tau": [0.1, 0.2, 0.3]}, {"tau": np.inf}]
)
def test_what_the_user_fixes_stays(loss, fixed):
    problem, theta = simulated((4, 3), (1, 1), 200, loss=loss, contamination=0.1)
    pilot = problem.pilot(theta)
    found, auto = Adaptive(**fixed).calibrate(pilot), Adaptive().calibrate(pilot)
    for name in ("omega", "nu", "tau"):
        value = getattr(found, f"{name}_")
        if name in fixed:
            assert value == fixed[name]
        elif name != "tau":  # which is chosen with the others in place
            assert value == getattr(auto, f"{name}_")
    if "nu" in fixed:
        assert found.psi_ == "huber"


def test_psi_names_the_bend_in_use():
    problem, theta = simulated((4, 3), (1, 1), 500, noise="t:1.2")
    found = Adaptive().calibrate(problem.pilot(theta))
    scores = np.tensordot(problem.data.X, theta.full(), axes=2) - problem.data.y
    assert (found.psi_, found.nu_) == (
        expected_bend(scores)[0],
        pytest.approx(expected_bend(scores)[1]),
    )
    assert found.psi_ == "cauchy"
    np.testing.assert_allclose(found.score(scores), scores / (1 + (scores / found.nu_) ** 2))


@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
def test_pca_truncates_no_gradient(noise):
    data = make_model("IV", 30, shape=(4, 3, 2), noise=noise, rng=0)
    problem = Problem(Rows(None, data.y), Loss.get("squared"), Direct())
    found = Adaptive().calibrate(problem.pilot(data.truth))
    assert found.tau_ == np.inf
    assert np.isinf(found.omega_)
    assert np.isinf(found.nu_) == (noise == "normal")
    model = TensorPCA(1, replicates=True).fit(data.y)
    assert model.robust_.tau_ == np.inf


def test_calibration_is_deterministic_and_changes_nothing():
    problem, theta = simulated((4, 3), (2, 2), 200, contamination=0.1, noise="t:1.5")
    robust, data = Adaptive(), problem.data
    X, y = data.X.copy(), data.y.copy()
    one, two = (robust.calibrate(problem.pilot(theta)) for _ in range(2))
    assert vars(robust) == {"omega": "auto", "nu": "auto", "tau": "auto"}
    assert (one.omega_, one.nu_, one.psi_) == (two.omega_, two.nu_, two.psi_)
    np.testing.assert_array_equal(joined(one.tau_), joined(two.tau_))
    again = one.calibrate(problem.pilot(theta))  # the second round of an estimator
    np.testing.assert_array_equal(joined(again.tau_), joined(one.tau_))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)


@pytest.mark.parametrize("wild", ["response", "covariate", "both"])
@pytest.mark.parametrize("case", CASES)
def test_one_wild_sample_has_bounded_influence_though_it_chose_the_thresholds(case, wild):
    problem, theta = simulated(**CASES[case], seed=5)
    X, y, n = problem.data.X.copy(), problem.data.y.copy(), problem.data.n
    if wild != "covariate":
        y[0] = 1e8
    if wild != "response":
        X[0] *= 1e8
    clean, dirty = (
        replace(problem, data=Rows(*arrays, problem.data.Z), robust=Adaptive()).calibrate(theta)
        for arrays in ((problem.data.X, problem.data.y), (X, y))
    )
    # The wild sample may choose other multiples, but moves no scale by more than a few ranks.
    for mild, found in zip(clean.robust.tau_, dirty.robust.tau_, strict=True):
        assert np.all(found < 1.3 * mild)
    without = np.ones(n)
    without[0] = 0.0
    rest = replace(dirty, data=dirty.data.reweight(without)).gradient(theta).blocks.blocks
    every = dirty.gradient(theta).blocks.blocks
    for tau, one, other in zip(dirty.robust.tau_, every, rest, strict=True):
        assert np.all(np.abs(one * n - other * (n - 1)) <= tau * (1 + 1e-6))


@pytest.mark.parametrize("wild", ["response", "covariate", "both"])
def test_one_wild_sample_does_not_break_a_fit(wild):
    data = make_model("I", 300, shape=(5, 4, 3), rng=1)
    X, y = data.X.copy(), data.y.copy()
    if wild != "covariate":
        y[7] = -1e8
    if wild != "response":
        X[7] = 1e8 * np.sign(X[7])
    clean = TensorRegressor(1).fit(data.X, data.y)
    dirty = TensorRegressor(1).fit(X, y)
    assert relative_error(dirty.coef_, clean.coef_) < 0.1
    assert dirty.influence_.argmax() == 7


def test_one_wild_covariate_does_not_break_a_classifier():
    data = make_model("III", 400, shape=(5, 4, 3), rng=1)
    X = data.X.copy()
    X[7] *= -1e8
    clean, dirty = (TensorClassifier(1).fit(x, data.y) for x in (data.X, X))
    assert relative_error(dirty.coef_, clean.coef_) < 0.2


def test_of_many_scores_some_that_stand_for_all_are_enough():
    """Entries of a response with noise of their own: in an order that any stride would meet."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40_000, 10))
    scores[:, 0] = rng.standard_t(1.1, size=40_000)
    some, whole = choose_bend(scores), choose_bend(scores[:20_000])
    assert scores.size > MOST_SCORES >= scores[:20_000].size
    assert np.isfinite(some.nu_)
    assert some.nu_ == pytest.approx(whole.nu_, rel=0.5)  # about one step of the grid


def test_slopes_of_a_bend():
    """By hand: one within the threshold, zero beyond; one where most scores are zero."""
    scores = np.array([0.5, -0.5, 0.2, 3.0, -9.0])
    np.testing.assert_allclose(slopes_of(Huber(1.0).calibrate().score, scores), [1, 1, 1, 0, 0])
    mostly = np.array([0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(slopes_of(Huber(0.5).calibrate().score, mostly), np.ones(4))
