"""The samples as seen from a point: errors, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oracle
from tauten.data import Rows, rows
from tauten.designs import Covariate, Direct
from tauten.losses import Loss, Squared
from tauten.problem import Kernel, Problem, pilot
from tauten.robust import Adaptive, Cauchy, Huber, Robustifier, Shrink, Truncate, thresholds
from tauten.tucker import Affine, Tucker


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_risk_of_a_vector_is_whites(ridge, rng):
    """White (1980), with the slope of the penalty in the bread."""
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=80)
    beta = np.array([0.8, 1.5, -1.0])
    inverse = np.linalg.inv(X.T @ X / 80 + ridge * np.eye(3))
    covariance = inverse @ (X.T * (y - X @ beta) ** 2 @ X) @ inverse / 80**2
    size = np.linalg.norm(beta)
    theta = Tucker(np.array([size]), [beta[:, None] / size])
    problem = Problem(Rows(X, y), Squared(), Covariate(), ridge=ridge)
    risk = problem.pilot(theta).risks([Robustifier()])[0]
    assert risk == pytest.approx(np.trace(covariance), rel=1e-4)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_pilot_tells_robustifiers_apart_that_shrink_otherwise(make_theta, rng, loss, monkeypatch):
    """Those that shrink alike share a sweep; others must not."""
    theta = make_theta((4, 3), (2, 2)).canonical()
    X = rng.normal(size=(90, 4, 3))
    problem = Problem(Rows(X, Loss.get(loss).draw(X[:, 0, 0], rng)), Loss.get(loss), Covariate())
    shared, robust = problem.pilot(theta), [Shrink(w).calibrate() for w in (np.inf, 3.0, 1.0)]
    risks = shared.risks(robust)
    assert len(set(risks)) == 3
    assert risks == [problem.pilot(theta).risks([r])[0] for r in robust]
    monkeypatch.setattr(pilot, "SMALL", 0)  # matrices too large to hold those of all of them
    assert risks == problem.pilot(theta).risks(robust)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("robust", [Robustifier(), Shrink(2.0), Huber(1.0), Cauchy(4.0)])
def test_thresholds_share_the_samples_that_none_of_them_cuts(
    make_theta, rng, robust, weighted, monkeypatch
):
    """One wild sample, beside which the others would be lost if it were ever added to them."""
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    y, weight = rng.normal(size=90), rng.uniform(0.5, 2.0, size=90) if weighted else None
    y[7] = 1e12
    problem = Problem(Rows(X, y, None, weight), Squared(), Covariate())

    def made(tau):
        found = Adaptive(tau=tau, omega=getattr(robust, "omega", np.inf), nu=np.inf).calibrate()
        return found.with_bend(robust.calibrate()) if hasattr(robust, "nu") else found

    some = [made(tau) for tau in (4.0, 5.0, 6.0)]
    found, added = problem.pilot(theta).risks(some), []
    assert len(set(found)) == 3
    alone = [problem.pilot(theta).risks([one])[0] for one in some]
    np.testing.assert_allclose(found, alone, rtol=1e-9)
    scatter = Kernel.scatter
    monkeypatch.setattr(
        Kernel, "scatter", lambda k, seen: (added.append(len(seen.score)), scatter(k, seen))[1]
    )
    problem.pilot(theta).risks(some)
    shared, *rest = added
    assert rest == [90 - shared] * 3
    assert 0 < rest[0] < 70


def test_thresholds_share_samples_that_count_less(make_theta, rng):
    """Counts do not shrink with their covariates: it is their share of the loss that does."""
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    y = rng.poisson(2.0, size=90).astype(float)
    problem = Problem(Rows(X, y), Loss.get("poisson"), Covariate())
    some = [Adaptive(tau=tau, omega=2.0, nu=np.inf).calibrate() for tau in (4.0, 8.0, 16.0)]
    alone = [problem.pilot(theta).risks([one])[0] for one in some]
    np.testing.assert_allclose(problem.pilot(theta).risks(some), alone, rtol=1e-9)
    assert len(set(alone)) == 3


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_thresholds_that_cut_all_or_nothing(make_theta, rng, scale):
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    problem = Problem(Rows(X, 1e3 + rng.normal(size=90)), Squared(), Covariate())
    some = [Truncate(scale * tau).calibrate() for tau in (1e-3, 2e-3)]
    alone = [problem.pilot(theta).risks([one])[0] for one in some]
    np.testing.assert_allclose(problem.pilot(theta).risks(some), alone, rtol=1e-9)


def test_bends_that_differ_share_no_sums(make_theta, rng):
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    problem = Problem(Rows(X, rng.normal(size=90)), Squared(), Covariate())
    some = [Huber(nu).calibrate() for nu in (0.5, 1.0, np.inf)]
    alone = [problem.pilot(theta).risks([one])[0] for one in some]
    assert problem.pilot(theta).risks(some) == alone
    assert len(set(alone)) == 3


def test_a_choice_tells_the_least_error_that_it_was_made_by(make_theta, rng, monkeypatch):
    """In any gauge; where none was asked for there is none."""
    theta, X = make_theta((4, 3), (2, 2)), rng.normal(size=(90, 4, 3))
    problem = Problem(Rows(X, rng.standard_t(2, size=90)), Squared(), Covariate(), Truncate("auto"))
    pilot = problem.pilot(theta.canonical())
    scales = thresholds.entry_scales(pilot.gradients())
    tried = [Truncate([c * s for s in scales]).calibrate() for c in thresholds.FACTORS]
    for most, risks in ((np.inf, pilot.entry_risks), (0.0, pilot.risks)):  # clean or not
        monkeypatch.setattr(thresholds, "MODERATE", most)
        monkeypatch.setattr(thresholds, "SURE", np.inf)
        chosen = problem.calibrate(theta)
        assert chosen.error == pytest.approx(np.sqrt(min(risks(tried))), rel=1e-9)
    assert np.isnan(problem.error)
    assert np.isnan(replace(chosen, ridge=1.0).error)
    assert np.isnan(replace(problem, robust=Truncate(1.0)).calibrate(theta).error)


def test_errors_are_of_all_samples_though_some_are_looked_at(make_theta, rng, monkeypatch):
    """By weight: here a third of it is on half of the samples."""
    monkeypatch.setattr("tauten.problem.problem.PILOT_SIZE", 100)
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(200, 4, 3))
    y, weight = rng.normal(size=200), np.tile([1.0, 2.0], 100)
    problem = Problem(Rows(X, y, None, weight), Squared(), Covariate())
    some, robusts = problem.data.sample(100), [Truncate(t).calibrate() for t in (1.0, np.inf)]
    alone = Problem(Rows(some.X, some.y, None, some.weight), Squared(), Covariate()).pilot(theta)
    pilot = problem.pilot(theta)
    assert some.weight.sum() == weight.sum() / 3
    for found, apart in ((pilot.risks, alone.risks), (pilot.entry_risks, alone.entry_risks)):
        np.testing.assert_allclose(found(robusts), np.array(apart(robusts)) / 3, rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize("nu", [np.inf, 1.0])
def test_errors_of_entries_each_alone(make_theta, rng, loss, nu, monkeypatch):
    """``Σ_j ‖∂A/∂θ_j‖² Σ_i g_ij² / (Σ_i s_i J_ij²)²``, sample by sample."""
    monkeypatch.setattr(pilot, "PART_SIZE", 37)
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    theta = Affine(0.3 * theta.core, theta.factors, np.array([0.5]))
    y, weight = rng.poisson(2.0, size=90).astype(float), rng.uniform(0.5, 2.0, size=90)
    data = Rows(X, y, np.ones((90, 1)), weight)
    problem = Problem(data, Loss.get(loss), Covariate())
    some = [Adaptive(omega=np.inf, nu=nu, tau=tau).calibrate() for tau in (0.1, 1.0, np.inf)]
    found, point = problem.pilot(theta).entry_risks(some), oracle.Point(theta.blocks)
    eta = np.tensordot(X, theta.full(), 2) + 0.5
    score, curvature = (eta - y, 1 + 0 * y) if loss == "squared" else (np.exp(eta) - y, np.exp(eta))
    rows = np.stack(
        [np.append(np.concatenate([g.ravel() for g in point.partial_gradients(x)]), 1) for x in X]
    )
    moves = np.sum(oracle.tensor_jacobian(theta.blocks, theta.order) ** 2, axis=0)
    for robust, risk in zip(some, found, strict=True):
        raw = np.clip(score, -nu, nu)[:, None] * rows
        bent = np.clip(raw, -robust.tau, robust.tau)
        slope = (np.abs(raw) < robust.tau) * ((np.abs(score) < nu) * curvature)[:, None]
        moment, steep = weight**2 @ bent**2, weight @ (slope * rows**2)
        with np.errstate(divide="ignore"):
            assert risk == pytest.approx(np.sum((moves * moment / steep**2)[:-1]), rel=1e-6)
    assert len(set(found)) == 3
    assert problem.pilot(theta).entry_risks(some[1:2]) == found[1:2]


def test_an_entry_that_nothing_depends_on_has_no_error(make_theta, rng):
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    X[:, 1] = 0
    problem = Problem(Rows(X, rng.normal(size=90)), Squared(), Covariate())
    found = problem.pilot(theta).entry_risks([Truncate(tau).calibrate() for tau in (1.0, np.inf)])
    assert np.all(np.isfinite(found))
    assert problem.pilot(theta).entry_risks([Truncate(1e-30).calibrate()] * 2) == [np.inf] * 2


@pytest.mark.parametrize("what", ["bend", "shrink", "response", "ridge"])
def test_where_entries_are_not_alone_nothing_is_said_of_them(make_theta, rng, what, monkeypatch):
    """Whichever part of the samples says so."""
    monkeypatch.setattr(pilot, "PART_SIZE", 40)
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(90, 4, 3))
    y, ridge = rng.uniform(-1, 1, size=90), 0.5 if what == "ridge" else 0.0
    theta = theta.map(lambda block: 0.1 * block)
    y[85] = 99.0
    if what == "response":
        X, y = X[..., 0], rng.normal(size=(90, 3))
    problem = Problem(Rows(X, y), Squared(), Covariate(), ridge=ridge)
    other = {"bend": Huber(9.0), "shrink": Shrink(1.0)}.get(what, Truncate(1.0))
    some = [one.calibrate() for one in (Robustifier(), other)]
    assert np.all(np.isnan(problem.pilot(theta).entry_risks(some)))


@pytest.mark.parametrize("n", [2000, 2001])
def test_a_rough_choice_sweeps_all_samples_for_the_next_step_if_it_may(make_theta, rng, n):
    theta, X = make_theta((4, 3), (2, 2)).canonical(), rng.normal(size=(n, 4, 3))
    problem = Problem(Rows(X, rng.normal(size=n)), Squared(), Covariate(), Truncate("auto"))
    assert (problem.calibrate(theta, rough=True).swept is not None) is (n == 2000)


@pytest.mark.parametrize("robust", ["none", "truncate:tau=0.5", "shrink:omega=3.0"])
def test_a_pilot_is_the_same_in_parts(make_theta, rng, robust, monkeypatch):
    theta = make_theta((4, 3), (2, 2)).canonical()
    X, weight = rng.normal(size=(90, 4, 3)), rng.uniform(0.5, 2.0, size=90)
    problem = Problem(Rows(X, rng.normal(size=90), None, weight), Squared(), Covariate())
    robust = Robustifier.get(robust).calibrate()
    whole = problem.pilot(theta)
    expected = whole.risks([robust])[0], whole.gradients()
    assert len(whole.norms()) == 90  # known from here on, of the parts too
    monkeypatch.setattr(pilot, "PART_SIZE", 7)
    parts = problem.pilot(theta)
    assert parts.risks([robust])[0] == pytest.approx(expected[0], rel=1e-9)
    for found, wanted in zip(parts.gradients(), expected[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("robust", ["none", "truncate:tau=0.5", "shrink:omega=3.0"])
def test_a_pilot_is_the_same_on_threads(make_theta, rng, robust, monkeypatch):
    theta = make_theta((4, 3), (2, 2)).canonical()
    X, y = rng.normal(size=(90, 4, 3)), rng.normal(size=90)
    robust = Robustifier.get(robust).calibrate()
    monkeypatch.setattr(pilot, "PART_SIZE", 7)
    monkeypatch.setattr(rows, "WORTH_THREADS", 0)
    pilots = [
        Problem(Rows(X, y, chunk=30, threads=threads), Squared(), Covariate()).pilot(theta)
        for threads in (1, 3)
    ]
    several = [robust, Robustifier(), robust]
    assert pilots[0].risks(several) == pilots[1].risks(several)
    np.testing.assert_array_equal(pilots[0].scores(), pilots[1].scores())
    for one, three in zip(*(each.gradients() for each in pilots), strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("direct", [True, False])
def test_parts_of_responses_with_entries_missing(make_theta, rng, direct, monkeypatch):
    theta = make_theta((4, 3), (2, 2)).canonical()
    y = rng.normal(size=(30, 4, 3) if direct else (30, 3))
    y[rng.random(y.shape) < 0.3] = np.nan
    X = None if direct else rng.normal(size=(30, 4))
    design = Direct() if direct else Covariate()
    problem = Problem(Rows(X, y), Squared(), design, missing=True)
    robust = Robustifier.get("truncate:tau=0.5").calibrate()
    whole = problem.pilot(theta)
    expected = whole.risks([robust])[0], whole.gradients()
    monkeypatch.setattr(pilot, "PART_SIZE", 7)
    parts = problem.pilot(theta)
    assert parts.risks([robust])[0] == pytest.approx(expected[0], rel=1e-9)
    for found, wanted in zip(parts.gradients(), expected[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("sweep", [True, False])
def test_scores_and_losses_in_parts(make_theta, rng, sweep, direct, monkeypatch):
    """From the sweep that gradients need, or from predictors alone, a part at a time."""
    theta, y = make_theta((4, 3), (2, 2)), rng.normal(size=(30, 4, 3) if direct else 30)
    X, design = (None, Direct()) if direct else (rng.normal(size=(30, 4, 3)), Covariate())
    problem = Problem(Rows(X, y), Squared(), design)
    monkeypatch.setattr(pilot, "PART_SIZE", 7)
    found = pilot.PilotFit(problem, theta, problem.data.sample(30), sweep=sweep)
    fitted = theta.full() if direct else np.einsum("nij,ij->n", X, theta.full())
    np.testing.assert_allclose(found.scores(), fitted - y, rtol=1e-12, atol=1e-12)
    losses = np.sum(np.reshape((fitted - y) ** 2 / 2, (30, -1)), axis=1)
    np.testing.assert_allclose(found.values(), losses)
    samples = problem.kernel.see(theta, problem.data.sample(30)).raw
    for mine, whole in zip(found.gradients(), theta.split(samples), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("direct", [True, False])
def test_scores_that_are_drawn_are_of_their_own_entries(make_theta, rng, direct, missing):
    theta = make_theta((4, 3), (2, 2))
    y = rng.normal(size=(900, 4, 3) if direct else (900, 3))
    X, design = (None, Direct()) if direct else (rng.normal(size=(900, 4)), Covariate())
    y[rng.random(y.shape) < missing] = np.nan
    problem = Problem(Rows(X, y), Squared(), design, missing=missing > 0)
    every = (theta.full() if direct else X @ theta.full()) - y
    seen = every[np.isfinite(every)]
    assert problem.pilot(theta).scores(every.size).shape == every.shape  # they are not too many
    found = problem.pilot(theta).scores(500)
    found = found[np.isfinite(found)]
    assert len(found) == pytest.approx(min(500, len(seen)), rel=0.2)
    assert np.abs(found[:, None] - seen).min(axis=1).max() < 1e-12
    if len(seen) < 500:  # each of them, once
        np.testing.assert_allclose(np.sort(found), np.sort(seen), rtol=1e-12, atol=1e-12)


def test_scores_of_few_observed_entries_are_not_drawn_twice(make_theta, rng):
    """A bend that is chosen from the same scores many times over is too sure of itself."""
    y = np.full((500, 4, 3), np.nan)
    y.reshape(-1)[rng.permutation(y.size)[:700]] = rng.normal(size=700)
    problem = Problem(Rows(None, y), Squared(), Direct(), missing=True)
    found = problem.pilot(make_theta((4, 3), (2, 2))).scores(600)
    assert np.count_nonzero(np.isfinite(found)) == 700


def test_curvature_in_parts(make_theta, rng, monkeypatch):
    theta, direction = make_theta((4, 3), (2, 2)), rng.normal(size=(4, 3))
    X = rng.normal(size=(30, 4, 3))
    problem = Problem(Rows(X, rng.normal(size=30)), Squared(), Covariate())
    monkeypatch.setattr(pilot, "PART_SIZE", 7)
    found = problem.pilot(theta).tensor_curvature(Robustifier(), direction)
    assert found == pytest.approx(np.mean(np.einsum("nij,ij->n", X, direction) ** 2))


def test_losses_are_summed_over_the_entries_that_are_there(make_theta, rng):
    theta, y = make_theta((4, 3), (2, 2)), rng.normal(size=(6, 4, 3))
    y[rng.random(y.shape) < 0.3] = np.nan
    problem = Problem(Rows(None, y), Squared(), Direct(), missing=True)
    expected = np.nansum((theta.full() - y) ** 2 / 2, axis=(1, 2))
    np.testing.assert_allclose(problem.pilot(theta).values(), expected)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_curvature_along_a_full_tensor_of_shrunk_samples(make_theta, rng, loss):
    """Residuals shrink with their covariates; of a count, a share of the loss is left."""
    X, weight = rng.normal(size=(30, 4, 3)), rng.uniform(0.5, 2.0, size=30)
    theta, direction = make_theta((4, 3), (2, 2)), rng.normal(size=(4, 3))
    y = Loss.get(loss).draw(X[:, 0, 0], rng)
    problem = Problem(Rows(X, y, None, weight), Loss.get(loss), Covariate())
    factors = np.minimum(1.0, 2.0 / np.sqrt(np.sum(X**2, axis=(1, 2))))
    eta = np.einsum("nij,ij->n", X, theta.full())
    curvature = np.exp(eta) if loss == "poisson" else np.ones(30)
    moves = np.einsum("nij,ij->n", X, direction) * factors
    expected = np.sum(weight * curvature * moves**2) / weight.sum()
    found = problem.pilot(theta).tensor_curvature(Shrink(2.0).calibrate(), direction)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "shape", "step"),
    [(2600, (4, 3), 4), (900, (4, 3), 1), (2600, (60, 55), 2)],
    ids=["many", "few", "few to a parameter"],
)
def test_a_rough_choice_looks_at_fewer_of_many_samples_and_at_every_other_candidate(
    make_theta, rng, monkeypatch, *, n, shape, step
):
    """Others look at 1,300 of 2,600."""
    theta = make_theta(shape, (3, 3))
    X, y = rng.normal(size=(n, *shape)), rng.standard_t(1.5, size=n)

    def chosen(every, **options):
        problem = Problem(Rows(X[::every], y[::every]), Squared(), Covariate(), Truncate())
        return theta.with_blocks(problem.calibrate(theta, **options).robust.tau_).flat()

    rough, close = chosen(1, rough=True), chosen(1)
    monkeypatch.setattr(thresholds, "FACTORS", (4.0, 16.0, 100.0))
    np.testing.assert_allclose(rough, chosen(step), rtol=1e-9)
    assert not np.allclose(rough, chosen(2 if step == 4 else 4))
    if step == 1 and n == 900:
        assert not np.allclose(rough, close)  # which are eight standard deviations
