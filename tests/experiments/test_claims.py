"""Every verdict is reached, on results whose answer is known."""

import math

import numpy as np
import pytest

from tauten.experiments import EXPERIMENTS, Quantity, Sample, decide
from tauten.experiments.claims import fit_line, share
from tauten.experiments.statements import theory_slope

RUNS = 200


def claim(experiment, name):
    return next(c for c in EXPERIMENTS[experiment].claims if c.name == name)


def rates_sample(rng, slope, *, noise=0.3, bend=0.0, runs=RUNS):
    errors = {}
    for epsilon in (0.1, 0.4, 0.7, 1.0, 1.3, 1.6):
        for m in (1, 2, 3, 4, 5):
            logs = -slope(epsilon) * m - bend * (m - 3) ** 2 + noise * rng.standard_normal(runs)
            errors["Model I", epsilon, m, "RGD"] = np.exp(logs)
    return Sample(errors)


@pytest.mark.parametrize("name", [c.name for c in EXPERIMENTS["exp02"].claims])
def test_rates_as_the_theorem_says_hold(name, rng):
    assert claim("exp02", name).judge(rates_sample(rng, theory_slope)).verdict == "holds"


@pytest.mark.parametrize(
    ("name", "slope", "bend"),
    [
        ("slopes rise with ε below 1", lambda e: 0.6 - 0.2 * e, 0.0),
        ("slopes stabilise from ε = 1", lambda e: 0.5 * e, 0.0),
        ("rate of the theorem", lambda e: 0.2, 0.0),
        ("linear in m", theory_slope, 0.5),
    ],
)
def test_other_rates_fail(name, slope, bend, rng):
    assert claim("exp02", name).judge(rates_sample(rng, slope, bend=bend)).verdict == "fails"


@pytest.mark.parametrize("name", [c.name for c in EXPERIMENTS["exp02"].claims])
def test_rates_from_few_wild_runs_are_undecided(name, rng):
    sample = rates_sample(rng, theory_slope, noise=4.0, runs=4)
    assert claim("exp02", name).judge(sample).verdict == "undecided"


def settled_sample(rng, chance, runs=RUNS):
    keys = [("M", lam, m, "RGD") for lam in (0.1, 0.4, 0.7, 1.0, 1.3, 1.6) for m in (1, 2, 3)]
    settled = {key: rng.random(runs) < chance(key[1]) for key in keys}
    return Sample({key: np.ones(runs) for key in keys}, settled)


@pytest.mark.parametrize(
    ("chance", "verdict"),
    [
        (lambda lam: min(lam, 1.0), "holds"),
        (lambda lam: 1 - min(lam, 1.0), "fails"),
        (lambda lam: 0.5, "undecided"),
        (lambda lam: 0.0, "undecided"),  # nobody converges: no trend, however many runs
    ],
)
def test_who_converges(chance, verdict, rng):
    sample = settled_sample(rng, chance, runs=2000)
    assert claim("exp01", "heavy covariates need more samples").judge(sample).verdict == verdict


@pytest.mark.parametrize(
    ("chance", "runs", "verdict"),
    [
        (lambda lam: 0.9, 200, "holds"),
        (lambda lam: 0.9 if lam < 1.2 else 0.4, 200, "fails"),
        (lambda lam: 0.5, 10, "undecided"),
    ],
)
def test_alike_from_one(chance, runs, verdict, rng):
    sample = settled_sample(rng, chance, runs)
    assert claim("exp01", "alike from λ = 1").judge(sample).verdict == verdict


@pytest.mark.parametrize(
    ("growth", "runs", "verdict"),
    [(0.4, 200, "holds"), (-0.4, 200, "fails"), (0.01, 5, "undecided")],
)
def test_error_grows(growth, runs, verdict, rng):
    errors = {
        ("M", theta, n, "RGD"): np.exp(growth * theta + rng.standard_normal(runs))
        for theta in (0, 1, 2, 3, 4)
        for n in (300, 700)
    }
    assert claim("exp03", "error grows with θ₀").judge(Sample(errors)).verdict == verdict


def test_error_grows_in_a_run_that_was_stopped(rng):
    """Cells have what was done by then: those of all count."""
    errors, whole = {}, {}
    for angle in ("0", "1"):
        for runs, n in zip((3, 5), (100, 200), strict=True):
            found = np.exp(rng.normal(size=runs))
            errors["panel", angle, n, "RGD"], whole["panel", angle, n, "RGD"] = found, found[:3]
    grows = claim("exp03", "error grows with θ₀")
    assert grows.judge(Sample(errors)) == grows.judge(Sample(whole))


def compared(rng, logs, runs=100):
    """Errors of the methods on the same data sets: what they share must not matter."""
    errors = {}
    for case, by_method in logs.items():
        shared = 3 * rng.standard_normal(runs)
        for method, level in by_method.items():
            own = 0.05 * rng.standard_normal(runs)
            errors["Model IV", "", case, method] = np.exp(level + shared + own)
    return Sample(errors)


GOOD = {
    "N": {"VGD": 0.0, "RGD": 0.0, "HUB": 0.0, "auto": 0.0},
    "t1.2": {"VGD": 4.0, "RGD": 0.0, "HUB": 1.0, "auto": -0.5},
}
BAD = {
    "N": {"VGD": 0.0, "RGD": 0.5, "HUB": 0.0, "auto": 0.8},
    "t1.2": {"VGD": 0.0, "RGD": 0.5, "HUB": 0.0, "auto": 0.8},
}


@pytest.mark.parametrize("name", [c.name for c in EXPERIMENTS["exp10"].claims])
def test_comparisons(name, rng):
    assert claim("exp10", name).judge(compared(rng, GOOD)).verdict == "holds"
    assert claim("exp10", name).judge(compared(rng, BAD)).verdict == "fails"
    # A tenth apart, more or less: two runs cannot tell.
    close = {case: {m: 0.04 * k for k, m in enumerate(GOOD["N"])} for case in GOOD}
    close["t1.2"]["VGD"] = close["t1.2"]["RGD"] + math.log(2)
    assert claim("exp10", name).judge(compared(rng, close, runs=2)).verdict == "undecided"


def test_many_quantities_do_not_make_a_claim_fail_by_chance(rng):
    """Sixty true quantities: at 95% each, three would contradict; corrected, next to never one."""
    fails = 0
    for _ in range(200):
        noise = rng.standard_normal(60)
        verdict = decide(Quantity("q", float(z), 1.0, low=0.0, high=math.inf) for z in noise)
        fails += verdict.verdict == "fails"
    assert fails <= 20


def test_no_quantity_or_no_spread_decides_nothing():
    assert decide([]).verdict == "undecided"
    assert decide([Quantity("q", 1.0, math.inf, low=0.0)]).verdict == "undecided"
    assert decide([Quantity("q", math.nan, 1.0, low=0.0)]).verdict == "undecided"


def test_lines_agree_with_least_squares(rng):
    x = [1, 2, 3, 4, 5]
    groups = [0.7 * m + rng.standard_normal(400) for m in x]
    line = fit_line(x, groups)
    want, covariance = np.polyfit(np.repeat(x, 400), np.concatenate(groups), 1, cov="unscaled")
    np.testing.assert_allclose(line.slope, want[0], rtol=1e-10)
    np.testing.assert_allclose(line.stderr, math.sqrt(covariance[0, 0]), rtol=0.05)  # sd is one


def test_shares_that_all_agree_still_have_an_error():
    quantity = share("q", np.ones(5, dtype=bool), np.zeros(5, dtype=bool))
    assert quantity.estimate == 1
    assert quantity.stderr > 0.1
