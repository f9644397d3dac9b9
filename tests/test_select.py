"""Ranks and thresholds chosen by fits: what is tried, at what cost, and what is found."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, pairwise, product

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

from tauten import TensorClassifier, TensorPCA, TensorRegressor
from tauten.data import Rows
from tauten.datasets import make_model, simulate, truth
from tauten.designs import Covariate, Direct
from tauten.init.base import tame
from tauten.init.thresholding import ihts
from tauten.losses import Loss
from tauten.metrics import relative_error
from tauten.problem import Problem
from tauten.robust import Truncate
from tauten.robust.adaptive import choose_bend
from tauten.select import criteria, folds, ranks, rough, select_rank, select_threshold
from tauten.solver import Solver
from tauten.tucker import degrees_of_freedom


def simulated(shape, rank, n, *, order, loss="squared", norm=6.0, seed=0, **options):
    """A problem without intercept whose truth has equal singular values in every mode."""
    rng = np.random.default_rng(seed)
    target = truth(shape, rank, reading="random", rng=rng)
    core = np.zeros(rank)
    for index in np.ndindex(*rank):  # superdiagonal, then wrapped where a mode has fewer
        core[index] = all(i == max(index) % r for i, r in zip(index, rank, strict=True))
    target = replace(target, core=norm * core / np.linalg.norm(core))
    data = simulate(target, n, covariate_order=order, loss=loss, rng=rng, **options)
    return Problem(Rows(data.X, data.y), Loss.get(loss), Covariate() if order else Direct())


def chosen(problem, *, largest=3, criterion="bic", seed=0):
    rng = np.random.default_rng(seed)
    return select_rank(problem, criterion=criterion, rng=rng, largest=largest)


@pytest.mark.parametrize(
    ("rank", "noise"),
    [((1, 1, 1), "normal"), ((1, 1, 1), "t:1.2"), ((2, 2, 2), "t:1.2"), ((1, 2, 2), "normal")],
)
def test_ranks_of_tensor_covariates(rank, noise):
    assert chosen(simulated((6, 5, 4), rank, 300, order=3, noise=noise)).rank == rank


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
@pytest.mark.parametrize("rank", [(1, 1, 1), (2, 2, 2), (1, 2, 2), (3, 3, 3)])
def test_ranks_of_tensor_covariates_with_every_rank_open(rank, noise, seed):
    problem = simulated((6, 5, 4), rank, 300, order=3, noise=noise, norm=10.0, seed=seed)
    assert chosen(problem, largest=5).rank == rank


@pytest.mark.parametrize(
    ("shape", "rank", "order", "n", "options"),
    [
        ((6, 5), (1, 1), 2, 200, {}),
        ((6, 5), (2, 2), 2, 200, {"noise": "t:1.2"}),
        ((6,), (1,), 1, 100, {}),
        ((6, 5, 4), (2, 2, 2), 2, 150, {"noise": "t:1.2"}),  # vector responses
        ((6, 5, 4), (1, 2, 2), 1, 150, {}),  # matrix responses
        ((8, 7, 6), (2, 2, 2), 0, 1, {"norm": 40.0}),  # PCA of one tensor
        ((8, 7, 6), (1, 2, 2), 0, 1, {"norm": 60.0, "noise": "t:1.2"}),
        ((6, 5, 4), (1, 2, 2), 0, 20, {"norm": 10.0, "noise": "t:1.2"}),
        ((6, 5), (1, 1), 2, 400, {"loss": "logistic"}),
        ((6, 5), (2, 2), 2, 400, {"loss": "logistic"}),
        ((6, 5, 3), (1, 1, 1), 2, 300, {"loss": "multinomial"}),
        ((6, 5), (1, 1), 2, 200, {"loss": "poisson", "norm": 1.0}),
    ],
)
def test_ranks_of_every_kind_of_model(shape, rank, order, n, options):
    assert chosen(simulated(shape, rank, n, order=order, **options)).rank == rank


def test_rank_does_not_depend_on_units():
    problem = simulated((6, 5), (2, 2), 200, order=2, noise="t:1.5")
    scaled = replace(problem, data=Rows(1e-3 * problem.data.X, 1e4 * problem.data.y))
    one, other = chosen(problem), chosen(scaled)
    assert one.ranks == other.ranks
    np.testing.assert_allclose(one.criterion, other.criterion, rtol=1e-3)


def test_wild_samples_do_not_choose_the_rank():
    problem = simulated((6, 5), (1, 1), 300, order=2, contamination=0.05, norm=3.0)
    assert chosen(problem).rank == (1, 1)


# What is tried


def brute_force_neighbours(rank, shape, largest):
    ranges = [range(1, min(p, largest) + 1) for p in shape]
    found = set()
    for other in product(*ranges):
        steps = [a - b for a, b in zip(other, rank, strict=True) if a != b]
        feasible = all(r * r <= math.prod(other) for r in other) or len(other) == 1
        if steps in ([1], [-1], [1, 1], [-1, -1]) and feasible:
            found.add(other)
    return found


@pytest.mark.parametrize(
    ("rank", "shape", "largest"),
    [
        ((1, 1, 1), (6, 5, 4), 5),
        ((2, 2, 2), (6, 5, 2), 5),
        ((1, 2, 2), (6, 5, 4), 2),
        ((4, 2, 2), (6, 5, 4), 5),
        ((2, 2), (6, 5), 5),
        ((3,), (6,), 5),
        ((2, 2, 1, 3), (3, 3, 3, 3), 3),
    ],
)
def test_neighbours_are_feasible(rank, shape, largest):
    found = list(ranks._neighbours(rank, shape, largest))
    assert len(found) == len(set(found))
    assert set(found) == brute_force_neighbours(rank, shape, largest)


@pytest.mark.parametrize("rank", [(1, 1, 1), (1, 2, 2)])
def test_path_holds_what_was_tried_and_the_least_is_chosen(rank):
    path = chosen(simulated((5, 4, 3), rank, 200, order=3))
    assert len(path.ranks) == len(path.criterion) == len(set(path.ranks))
    assert path.rank == path.ranks[int(np.argmin(path.criterion))]
    assert path.ranks[:3] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    # No neighbour is left untried: the search ends in a local optimum.
    assert brute_force_neighbours(path.rank, (5, 4, 3), 3) <= set(path.ranks)


@pytest.mark.parametrize("n", [8, 16, 30])
def test_few_samples_never_try_many_parameters(n, monkeypatch):
    """Half as many free parameters as responses, at most; rank one if even that is too many."""
    fitted = []

    def cheap(problems, tried):
        fitted.extend(tried)
        thetas = ihts(problems, tried, n_iter=1)
        pairs = zip(problems, thetas, strict=True)
        return [(tame(problem, problem.pilot(theta)), theta) for problem, theta in pairs]

    monkeypatch.setattr(criteria, "rough_fits", cheap)
    path = chosen(simulated((4, 3, 2), (1, 1, 1), n, order=3), largest=5)
    for rank in {*path.ranks, *fitted} - {(1, 1, 1)}:
        free = sum(r * (p - r) for p, r in zip((4, 3, 2), rank, strict=True)) + math.prod(rank)
        assert free <= n / 2
    assert {8: 0, 16: 1}.get(n, 2) <= len(path.ranks)
    assert n > 16 or path.rank == (1, 1, 1)


# The criterion, by hand


def shrunk(X, y):
    norms = np.sqrt(np.sum(X.reshape(len(X), -1) ** 2, axis=1))
    factors = np.minimum(1.0, np.median(norms) / norms)
    return X * factors[:, None, None], y * factors


def loss_by_hand(robust, x):
    """The integral of the bent score, Huber's or Cauchy's."""
    nu, x = robust.nu_, np.abs(x)
    if robust.psi_ == "cauchy":
        return nu**2 / 2 * np.log(1 + (x / nu) ** 2)
    return np.where(x <= nu, x**2 / 2, nu * x - nu**2 / 2) if np.isfinite(nu) else x**2 / 2


def slopes_by_hand(robust, x):
    nu = robust.nu_
    if robust.psi_ == "cauchy":
        return (1 - (x / nu) ** 2) / (1 + (x / nu) ** 2) ** 2
    return (np.abs(x) <= nu).astype(float)


@pytest.mark.parametrize("noise", ["normal", "t:1.2"])
def test_bic_of_residuals(noise, rng):
    problem = simulated((6, 5), (2, 2), 200, order=2, noise=noise)
    X, y = shrunk(problem.data.X, problem.data.y)
    path = chosen(problem)
    assert path.rank == (2, 2)

    def residuals(theta):
        return y - np.einsum("nij,ij->n", X, theta.full())

    def fit(rank, bend):
        ((fitted, theta),) = rough.bent_fits(rough.rough_fits([problem], [rank]), [bend])
        return residuals(theta), fitted.robust

    free = {(r, r): r * (11 - 2 * r) + r * r for r in (1, 2, 3)}
    bend = choose_bend(residuals(rough.rough_fits([problem], [(2, 2)])[0][1]))  # of the rank chosen
    best, robust = fit((2, 2), bend)
    assert np.isfinite(robust.nu_) == (noise != "normal")
    bent = best if np.isinf(robust.nu_) else robust.score(best)
    efficiency = np.mean(bent**2) / np.mean(slopes_by_hand(robust, best))
    for rank, parameters in free.items():
        z = fit(rank, bend)[0] * math.sqrt((200 - free[2, 2]) / 200)
        expected = 2 * np.sum(loss_by_hand(robust, z)) / efficiency + parameters * math.log(200)
        assert path.criterion[path.ranks.index(rank)] == pytest.approx(expected, rel=1e-3)


def test_equal_ranks_are_compared_by_their_own_scales(rng):
    """``N log s² + df log N`` with s from the median; the largest rank's is no measure for all."""
    problem = simulated((6, 5), (2, 2), 200, order=2, noise="t:1.2")
    X, y = shrunk(problem.data.X, problem.data.y)
    cost = criteria.Bic(problem)
    cost.fit([(1, 1), (2, 2), (3, 3)])
    for rank, free in (((1, 1), 10), ((2, 2), 18), ((3, 3), 24)):
        theta = rough.rough_fits([problem], [rank])[0][1]
        sizes = np.abs(y - np.einsum("nij,ij->n", X, theta.full()))
        scale = np.median(sizes) / stats.norm.ppf(0.75)
        expected = 200 * math.log(scale**2) + free * math.log(200)
        assert cost.alone(rank) == pytest.approx(expected, abs=0.01)


def test_a_fit_through_half_of_the_samples_is_no_evidence():
    """A bend of its own let (5,5,5) pass through most of 500 samples, and be chosen."""
    options = {"reading": "random", "rank": (2, 3, 4), "norm": 5.0}
    data = make_model("I", 500, rng=2, **options)
    assert TensorRegressor().fit(data.X, data.y).rank_ == (2, 3, 4)


def test_bic_of_classes(rng):
    problem = simulated((6, 5), (1, 1), 300, order=2, loss="logistic")
    X, y = problem.data.X, problem.data.y
    share = (shrunk(X, y)[0][:, 0, 0] / X[:, 0, 0]) ** 2  # a label cannot shrink: it counts less
    path = chosen(problem)
    for rank, free in (((1, 1), 10), ((2, 2), 18)):
        theta = rough.rough_fits([problem], [rank])[0][1]
        eta = np.einsum("nij,ij->n", X, theta.full())
        deviance = 2 * np.sum(share * (np.log1p(np.exp(eta)) - y * eta))
        expected = deviance + free * math.log(300)
        assert path.criterion[path.ranks.index(rank)] == pytest.approx(expected)


def test_degrees_of_freedom_are_the_rank_of_the_jacobian(make_theta):
    for shape, rank in (((4, 3), (2, 2)), ((4, 3, 2), (2, 1, 2)), ((3, 3, 3), (2, 2, 2))):
        theta = make_theta(shape, rank)
        columns = []
        for k, block in enumerate(theta.blocks):
            for unit in np.eye(block.size):
                parts = list(theta.blocks)
                parts[k] = unit.reshape(block.shape)
                columns.append(theta.with_blocks(parts).full().ravel())
        assert np.linalg.matrix_rank(np.stack(columns)) == degrees_of_freedom(shape, rank)


# Cross-validated ranks, and estimators


def test_cross_validated_error_of_a_rank(rng):
    """Mean over the folds of the mean absolute residual of samples left out."""
    problem = simulated((5, 4), (1, 1), 150, order=2)
    path = chosen(problem, criterion="cv", largest=2, seed=3)
    seed = int(np.random.default_rng(3).integers(2**31))
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(np.arange(150)):
        X, y = problem.data.X, problem.data.y
        part = replace(problem, data=Rows(X[train], y[train]))
        ((_, theta),) = rough.own_bends(rough.rough_fits([part], [(1, 1)]))
        norms = np.sqrt(np.sum(X**2, axis=(1, 2)))
        factors = np.minimum(1.0, np.median(norms[train]) / norms)
        residuals = factors * (y - np.einsum("nij,ij->n", X, theta.full()))
        errors.append(np.mean(np.abs(residuals[test])))
    assert path.criterion[path.ranks.index((1, 1))] == pytest.approx(np.mean(errors), rel=1e-3)
    assert path.rank == (1, 1)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((0.1, -0.1, 0.05, 0.0, 0.05), (1, 1)),  # 0.02 with a standard error of 0.034
        ((0.05, 0.05, 0.05, 0.05, 0.05), (2, 2)),  # the same in every fold: beyond doubt
    ],
)
def test_cross_validation_takes_the_simplest_rank_within_a_standard_error(
    more, expected, monkeypatch
):
    """Of the difference to the best rank in the same folds, which themselves differ a lot."""
    best = np.array([1.0, 5.0, 3.0, 9.0, 2.0])
    errors = {(1, 1): best + more, (2, 2): best}
    monkeypatch.setattr(
        criteria, "validate", lambda problems, points, tests: errors.get(points[0].rank, best + 1.0)
    )
    path = chosen(simulated((5, 4), (1, 1), 60, order=2), criterion="cv")
    assert path.rank == expected
    assert path.criterion[path.ranks.index((2, 2))] == min(path.criterion) == 4.0


@pytest.mark.parametrize("criterion", ["auto", "cv"])
def test_estimators_choose_ranks_the_same_way_twice(criterion):
    data = make_model("I", 120, shape=(4, 3), noise="t:1.5", rng=0)
    one, two = (TensorRegressor(criterion, random_state=0).fit(data.X, data.y) for _ in range(2))
    assert one.rank == criterion
    assert one.rank_ == one.rank_path_.rank == (1, 1)
    assert one.rank_path_.ranks == two.rank_path_.ranks
    assert one.rank_path_.criterion == two.rank_path_.criterion
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_folds_differ_by_seed():
    problem = simulated((5, 4), (1, 1), 60, order=2)
    first = [test.tolist() for _, test in folds.folds(problem, np.random.default_rng(0))]
    again = [test.tolist() for _, test in folds.folds(problem, np.random.default_rng(0))]
    other = [test.tolist() for _, test in folds.folds(problem, np.random.default_rng(1))]
    assert first == again != other
    assert sorted(chain.from_iterable(first)) == list(range(60))


def test_estimators_of_classes_and_pca_choose_ranks():
    data = make_model("III", 300, shape=(4, 3), rng=0)
    labels = np.where(data.y == 1, "yes", "no")
    assert TensorClassifier("auto").fit(data.X, labels).rank_ == (1, 1)
    pca = make_model("IV", 10, shape=(4, 3), norm=8.0, noise="t:1.5", rng=0)
    assert TensorPCA("auto", replicates=True).fit(pca.y).rank_ == (1, 1)
    assert TensorPCA("cv", replicates=True, random_state=0).fit(pca.y).rank_ == (1, 1)


def test_cross_validation_needs_two_samples(rng):
    with pytest.raises(ValueError, match="needs two samples or more; got 1"):
        TensorPCA("cv").fit(rng.normal(size=(4, 3, 2)))


@pytest.mark.parametrize(
    "criterion",
    ["cv", "auto"],
)
def test_samples_without_weight_do_not_choose_the_rank(criterion):
    data = make_model("I", 150, shape=(4, 3), rng=0)
    weight, y = np.repeat([1.0, 0.0], [100, 50]), data.y.copy()
    y[100:] *= 50
    model = TensorRegressor(criterion, random_state=0, fit_intercept=False)
    few = model.fit(data.X[:100], y[:100]).rank_path_
    all_of_them = model.fit(data.X, y, sample_weight=weight).rank_path_
    assert all_of_them.ranks == few.ranks
    np.testing.assert_allclose(all_of_them.criterion, few.criterion, rtol=1e-6)


def test_missing_entries_do_not_choose_the_rank(rng):
    Y = simulated((9, 8, 7), (2, 2, 2), 1, order=0, norm=60.0).data.y[0]
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    assert TensorPCA("auto").fit(holes).rank_ == (2, 2, 2)


# Thresholds by cross-validation

CV = {"rank": 1, "robust": "truncate:tau=cv", "fit_intercept": False, "random_state": 0}


@pytest.fixture(scope="module")
def dirty():
    return make_model("I", 200, shape=(5, 4), contamination=0.1, rng=0)


@pytest.fixture(scope="module")
def cross_validated(dirty):
    return TensorRegressor(**CV).fit(dirty.X, dirty.y)


def test_threshold_path(cross_validated):
    path = cross_validated.cv_results_
    assert len(path.taus) == len(path.error) == len(path.stderr) == 10
    assert path.taus[-1] == np.inf
    assert all(b > a > 0 for a, b in pairwise(path.taus))
    assert np.all(path.stderr > 0)
    assert path.tau == path.taus[np.argmin(path.error)]
    assert cross_validated.robust_.tau_ == path.tau


@pytest.mark.parametrize("candidate", [0, 3])
def test_threshold_errors_are_those_of_refits(dirty, cross_validated, candidate):
    """The same folds, fitted by an estimator that sees the training samples only.

    Candidates that cut the outliers: those that do not have several solutions in a fold.
    """
    path = cross_validated.cv_results_
    seed = int(np.random.default_rng(0).integers(2**31))
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(dirty.X):
        tau = float(path.taus[candidate])
        model = TensorRegressor(1, robust=Truncate(tau), fit_intercept=False)
        model.fit(dirty.X[train], dirty.y[train])
        errors.append(np.mean(np.abs(dirty.y[test] - model.predict(dirty.X[test]))))
    spread = np.std(errors, ddof=1) / np.sqrt(5)
    assert path.error[candidate] == pytest.approx(np.mean(errors), abs=0.05 * spread)
    assert path.stderr[candidate] == pytest.approx(spread, rel=0.02)


def test_threshold_is_finite_under_contamination(dirty, cross_validated):
    assert np.isfinite(cross_validated.cv_results_.tau)
    plain = TensorRegressor(**{**CV, "robust": "none"}).fit(dirty.X, dirty.y)
    errors = [relative_error(m.coef_, dirty.truth) for m in (cross_validated, plain)]
    assert errors[0] < errors[1] / 2


@pytest.mark.parametrize("seeds", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_threshold_hurts_clean_data_little(seeds):
    """By a tenth or so, on the whole: of 120 samples some ask for a cut by chance."""
    ratios = []
    for seed in range(seeds):
        data = make_model("I", 120, shape=(4, 3), rng=seed)
        errors = [
            relative_error(
                TensorRegressor(**{**CV, "robust": r}).fit(data.X, data.y).coef_, data.truth
            )
            for r in ("truncate:tau=cv", "none")
        ]
        ratios.append(errors[0] / errors[1])
    assert ratios[0] < 1.5
    assert np.median(ratios) < 1.05
    assert np.exp(np.mean(np.log(ratios))) < 1.15


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_are_weights_on_the_same_data(rng, weighted):
    problem = simulated((5, 4), (1, 1), 23, order=2)
    base = rng.uniform(0.5, 2.0, size=23) if weighted else np.ones(23)
    if weighted:
        problem = replace(problem, data=problem.data.reweight(base))
    for fold, test in folds.folds(problem, rng):
        assert np.shares_memory(fold.data.X, problem.data.X)
        assert np.shares_memory(fold.data.y, problem.data.y)
        expected = base.copy()
        expected[test] = 0.0
        np.testing.assert_array_equal(fold.data.weight, expected)


def test_parameters_are_unchanged_by_fit(cross_validated):
    assert cross_validated.robust == "truncate:tau=cv"
    given, data = Truncate(tau="cv"), make_model("I", 60, shape=(3,), rng=0)
    model = TensorRegressor(**{**CV, "robust": given}).fit(data.X, data.y)
    assert model.robust is given
    assert vars(given) == {"tau": "cv"}


def test_samples_without_weight_do_not_choose_the_threshold():
    data = make_model("I", 90, shape=(4, 3), rng=0)
    weight, y = np.repeat([1.0, 0.0], [60, 30]), data.y.copy()
    y[60:] = 1e4
    paths = [
        select_threshold(
            Problem(rows, Loss.get("squared"), Covariate(), Truncate()),
            data.truth,
            Solver.get("newton").set_params(n_iter=3),
            rng=np.random.default_rng(0),
        )
        for rows in (Rows(data.X[:60], y[:60]), Rows(data.X, y, weight=weight))
    ]
    for name in ("taus", "error", "stderr"):
        np.testing.assert_allclose(*(getattr(path, name) for path in paths), rtol=1e-6)


# Statistics


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariates", "noise"),
    [("normal", "normal"), ("normal", "t:1.2"), ("t:2.1", "normal"), ("t:2.1", "t:1.2")],
)
def test_rank_hit_rate(covariates, noise):
    options = {"shape": (10, 10, 10), "rank": (3, 3, 3), "reading": "random", "norm": 10.0}
    found = []
    for seed in range(5):
        data = make_model("I", 500, covariates=covariates, noise=noise, rng=seed, **options)
        problem = Problem(Rows(data.X, data.y), Loss.get("squared"), Covariate())
        found.append(chosen(problem, largest=5).rank)
    assert found.count((3, 3, 3)) >= 4, found
