"""Starts within the directions that the gradient at zero shows."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tauten as tt
from tauten._checks import check_tensor
from tauten.data import Rows, gather
from tauten.designs import Covariate, Direct
from tauten.exceptions import NotConvergedWarning
from tauten.init import default, iht, projected, spectral, starts
from tauten.init.base import tame, with_linear
from tauten.init.thresholding import ihts
from tauten.losses import Loss, Squared
from tauten.problem import PILOT_SIZE, Problem
from tauten.problem import within as narrow
from tauten.tucker import hooi, hosvd


def regression(n, shape, rank, *, order=None, noise="normal", seed=0, weight=None, **options):
    truth = tt.datasets.truth(shape, rank, reading="random", norm=4.0, rng=seed)
    order = len(shape) if order is None else order
    data = tt.datasets.simulate(
        truth, n, covariate_order=order, noise=noise, rng=seed + 1, **options
    )
    rows = Rows(data.X, data.y, np.ones((n, 1)), weight)
    return truth, Problem(rows, Squared(), Covariate())


@pytest.mark.parametrize(
    ("shape", "order", "n"), [((12, 11, 10), 3, 900), ((30, 28), 2, 900), ((15, 14, 6), 2, 300)]
)
def test_it_is_nearer_to_the_truth_than_its_first_step(shape, order, n):
    rank = (2,) * len(shape)
    truth, problem = regression(n, shape, 2, order=order, noise="t:2.5")
    error, first = (
        tt.metrics.relative_error(start(problem, rank), truth) for start in (projected, spectral)
    )
    assert error < 0.8 * first


@pytest.mark.parametrize(("shape", "order"), [((6, 5, 6), 3), ((6, 6, 7), 2)])
def test_within_all_directions_it_is_iht_in_other_coordinates(shape, order):
    """And a step more, of weighted least squares in the tangent space, wherever that ended."""
    _, problem = regression(400, shape, 2, order=order, noise="t:1.5", covariates="t:3")
    rank = (2, 2, 2)
    other = ihts([problem], [rank], n_iter=8, whole=True)[0].canonical()
    tamed = tame(problem, problem.pilot(other, problem.data.sample(PILOT_SIZE)))
    there, y = (np.reshape(a, -1) for a in (tamed.predictors(other), problem.data.y))
    scale = tamed.robust.shrink(lambda: problem.design.norms(problem.data.all))
    scale = np.repeat(scale, len(y) // len(scale))
    residuals = scale * (y - there)
    weight = scale**2 * np.minimum(1, tamed.robust.nu_ / np.abs(residuals))

    def moved(step):
        return other.with_blocks(other.split(other.flat() + step))

    def slope(step):  # exact: along one entry of a block predictors are linear
        return np.reshape(tamed.predictors(moved(step)), -1) - there

    moves, root = other.horizontal(np.eye(len(other.flat()))), np.sqrt(weight)
    jacobian = np.array([slope(entry) for entry in np.eye(len(moves))]).T @ moves
    step, *_ = np.linalg.lstsq(root[:, None] * jacobian, root * (y - there))
    expected = moved(moves @ step)
    found = projected(problem, rank)
    np.testing.assert_allclose(found.full(), expected.full(), atol=1e-5)
    np.testing.assert_allclose(found.linear, expected.linear, atol=1e-5)


@pytest.mark.parametrize("start", [projected, iht])
@pytest.mark.parametrize("period", [4, 8])
def test_outliers_at_even_spaces_are_as_bad_as_others(period, start, rng):
    """Whatever few samples a start looks at, they are not all outliers."""
    truth, problem = regression(2000, (9, 8, 7), 1)
    errors = []
    for where in (np.arange(0, 2000, period), rng.choice(2000, 2000 // period, replace=False)):
        y = problem.data.y.copy()
        y[where] += 100.0
        spoilt = replace(problem, data=Rows(problem.data.X, y, problem.data.Z))
        errors.append(tt.metrics.relative_error(start(spoilt, (1, 1, 1)), truth))
    assert errors[0] < 1.5 * errors[1]


def test_samples_are_read_twice_and_those_looked_at(rng):
    _, problem = regression(2500, (8, 7, 6), 1)
    projected(problem, (1, 1, 1))
    assert problem.data.sample(PILOT_SIZE).y.shape == (1250,)
    assert problem.data.reads.passes == 2.5


def test_residuals_are_those_that_were_seen(monkeypatch):
    """X is not read for them: within the directions samples are small."""
    _, problem = regression(300, (8, 7, 6), 1)
    truth = tt.datasets.truth((8, 7, 6), 1, reading="random", norm=1.0, rng=5)
    point = with_linear(problem, truth)
    whole, other = problem.data.sample(PILOT_SIZE), problem.data.sample(PILOT_SIZE).thin(60)
    seen = problem.pilot(point, other)
    tamed = tame(problem, problem.pilot(point, whole), seen=seen).robust
    assert tamed.nu_ == tame(problem, seen).robust.nu_
    assert tamed.omega_ == tame(problem, problem.pilot(point, whole)).robust.omega_
    assert tamed.nu_ != tame(problem, problem.pilot(point, whole)).robust.nu_
    read, inner = [], Covariate.inner

    def counted(self, tensor, X, scale=None):
        read.append(X.shape[1:])
        return inner(self, tensor, X, scale)

    monkeypatch.setattr(Covariate, "inner", counted)
    projected(problem, (1, 1, 1))
    assert read.count((8, 7, 6)) == 2  # of zero, which takes no read
    assert (3, 3, 3) in read


def test_where_a_matrix_would_be_too_large_it_ends_with_two_steps_of_iht(monkeypatch):
    monkeypatch.setattr("tauten.solver.choice.LARGEST", 10)
    _, problem = regression(400, (6, 5, 6), 2)
    one, rank = projected(problem, (2, 2, 2)), (2, 2, 2)
    begun = ihts([problem], [rank], n_iter=8, whole=True)
    (other,) = ihts([problem], [rank], n_iter=2, thetas=begun)
    np.testing.assert_allclose(one.full(), other.full(), atol=1e-9)


def test_a_whole_step_is_along_the_whole_gradient(rng):
    """Of Huber's scores of shrunk samples, and as long as its low-rank part says."""
    X, rank = rng.standard_t(3, size=(200, 6, 5, 4)), (2, 2, 2)
    y = rng.standard_t(2, size=200)
    problem = Problem(Rows(X, y), Squared(), Covariate())
    begun = tt.datasets.truth((6, 5, 4), 2, reading="random", norm=1.0, rng=0).canonical()
    tamed = tame(problem, problem.pilot(begun)).robust
    scale = np.minimum(1, tamed.omega_ / np.linalg.norm(X.reshape(200, -1), axis=1))
    residuals = scale * (np.tensordot(X, begun.full(), 3) - y)
    gradient = np.tensordot(scale * np.clip(residuals, -tamed.nu_, tamed.nu_), X, 1) / 200
    near = partial(hooi, rank=rank, n_iter=5, tol=1e-3)
    low = hosvd(gradient, rank).full()
    weight = scale**2 * np.minimum(1, tamed.nu_ / np.abs(residuals))
    length = np.sum(low**2) / np.mean(weight * np.tensordot(X, low, 3) ** 2)
    expected = near(begun.full() - length * gradient).full()
    (found,) = ihts([problem], [rank], n_iter=1, thetas=[begun], whole=True)
    np.testing.assert_allclose(found.full(), expected, atol=1e-10)


def test_whole_steps_find_a_component_that_others_miss(rng):
    """Begun with a direction of noise in place of the third component, in each mode."""
    truth = tt.Tucker(
        np.einsum("a,ab,ac->abc", [4.0, 2.0, 1.0], np.eye(3), np.eye(3)),
        [np.eye(p, 3) for p in (8, 7, 9)],
    )
    X = rng.normal(size=(800, 8, 7, 9))
    y = np.tensordot(X, truth.full(), 3) + rng.normal(size=800)
    problem = Problem(Rows(X, y), Squared(), Covariate())
    wrong = [np.eye(p)[:, [0, 1, p - 1]] for p in (8, 7, 9)]
    begun = tt.Tucker(truth.core * np.array([1.0, 1.0, 0.1]), wrong)
    whole, tangential = [
        tt.metrics.relative_error(
            ihts([problem], [(3, 3, 3)], n_iter=2, thetas=[begun], whole=whole)[0], truth
        )
        for whole in (True, False)
    ]
    assert whole < 0.12
    assert tangential > 0.2


def test_starts_of_several_ranks_share_that_read_and_their_directions(monkeypatch):
    monkeypatch.setattr("tauten.data.base.LARGE", 0)
    _, problem = regression(300, (16, 16, 16), 2)
    ranks = [(1, 1, 1), (2, 2, 2)]
    expected = projected(problem, ranks[1])
    problem.data.sample(PILOT_SIZE)
    before = problem.data.reads.passes
    small, large = starts([problem] * 2, ranks)
    assert problem.data.reads.passes == before + 2
    np.testing.assert_allclose(large.full(), expected.full(), atol=1e-12)
    assert small.rank == (1, 1, 1)
    np.testing.assert_allclose(large.factors[0], expected.factors[0], atol=1e-12)
    other = replace(problem, data=problem.data.reweight(np.arange(1.0, 301.0)))
    found = starts([problem, other], ranks)  # each has a gradient of its own
    for one, whole in zip(found, ihts([problem, other], ranks, n_iter=5), strict=True):
        np.testing.assert_allclose(one.full(), whole.full(), atol=1e-12)


def test_the_small_problem_holds_coordinates_of_centred_samples(rng):
    X, Z, weight = rng.normal(size=(600, 5, 4, 3)), rng.normal(size=(600, 2)), rng.random(600)
    y, center = rng.normal(size=600), rng.normal(size=(5, 4, 3))
    problem = Problem(Rows(X, y, Z, weight), Squared(), Covariate(center))
    u, v, w = (np.linalg.qr(rng.normal(size=(p, 2)))[0] for p in (5, 4, 3))
    small = narrow.within(problem, problem.data.sample(600).parts(250), (u, v, w))
    expected = np.einsum("nijk,ia,jb,kc->nabc", X - center, u, v, w)
    np.testing.assert_allclose(small.data.X, expected, atol=1e-12)
    assert small.design.center is None
    for name, array in (("y", y), ("Z", Z), ("weight", weight)):
        np.testing.assert_array_equal(getattr(small.data, name), array)


def test_samples_without_weight_do_not_count(rng):
    """Neither for the directions nor for what is found within them."""
    _, problem = regression(500, (10, 9, 8), 1)
    wild = problem.data.y.copy()
    wild[::3] = 1e3 * rng.normal(size=len(wild[::3]))
    weight = (wild == problem.data.y).astype(float)
    some = Rows(problem.data.X, wild, problem.data.Z, weight)
    kept = Rows(*(a[weight > 0] for a in (problem.data.X, wild, problem.data.Z)))
    one, other = (projected(replace(problem, data=d), (1, 1, 1)) for d in (some, kept))
    np.testing.assert_allclose(one.full(), other.full(), atol=1e-10)


@pytest.mark.parametrize(
    ("n", "shape", "rank", "name"),
    [
        (2000, (30, 30, 30), (3, 3, 3), "projected"),
        (1200, (30, 30, 30), (3, 3, 3), "projected"),
        (1000, (30, 30, 30), (3, 3, 3), "restarts"),  # few samples
        (383, (28, 28, 28), (1, 1, 1), "projected"),
        (382, (28, 28, 28), (1, 1, 1), "iht"),  # less than 64 MB
        (8000, (20, 20, 20), (2, 3, 3), "projected"),
        (8000, (20, 20, 20), (3, 3, 3), "iht"),  # 729 numbers of 8,000 are left
        (9000, (20, 60, 3), (1, 1, 3), "projected"),
        (8000, (2000,), (1,), "iht"),  # A is free
    ],
)
def test_it_is_the_default_where_x_is_large_and_becomes_small(n, shape, rank, name):
    X = np.broadcast_to(np.ones(()), (n, *shape))
    assert default(Problem(Rows(X, np.ones(n)), Squared(), Covariate()), rank) == name
    if name == "projected":
        logistic = Problem(Rows(X, np.ones(n)), Loss.get("logistic"), Covariate())
        assert default(logistic, rank) == "iht"


def test_it_is_not_where_memory_holds_few_samples(tmp_path):
    """A start that is found on a hundred samples is no start."""
    X = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", float, (9000, 40, 40))
    stored = check_tensor("X", X, anywhere=True)
    for memory, name in (("120MB", "projected"), ("100MB", "iht")):  # a quarter is for samples
        data = gather(stored, np.ones(9000), memory=memory)
        assert default(Problem(data, Squared(), Covariate()), (3, 3)) == name


def test_modes_of_the_response_do_not_count_as_directions():
    X, y = np.broadcast_to(np.ones(()), (9000, 40, 40)), np.ones((9000, 5))
    assert default(Problem(Rows(X, y), Squared(), Covariate()), (3, 3, 5)) == "projected"
    assert default(Problem(Rows(None, X), Squared(), Direct()), (3, 3)) == "decompose"


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t:1.5"])
@pytest.mark.parametrize("covariates", ["normal", "t:2.1"])
def test_fits_from_it_are_as_good_as_from_iht_in_fewer_passes(noise, covariates):
    """Of 700 samples of 20 x 20 x 20, six for each parameter, where some starts go wrong."""
    gaps, saved = [], []
    for seed in range(12):
        truth, problem = regression(
            700, (20, 20, 20), 2, noise=noise, covariates=covariates, seed=seed
        )
        with warnings.catch_warnings(action="ignore", category=NotConvergedWarning):
            fits = [
                tt.TensorRegressor(rank=2, init=init).fit(problem.data.X, problem.data.y)
                for init in ("iht", "projected")
            ]
        errors = [tt.metrics.relative_error(fit.coef_, truth) for fit in fits]
        gaps.append(np.log(errors[1] / errors[0]))
        saved.append(fits[0].result_.n_passes - fits[1].result_.n_passes)
    assert np.mean(gaps) < 2 * np.std(gaps) / np.sqrt(len(gaps)) + 1e-3
    assert np.median(gaps) < 0.01
    assert np.mean(saved) > 1
