"""Ranks compared within the directions of their starts, where samples are small."""

from dataclasses import replace

import numpy as np
import pytest

import tauten as tt
from tauten._checks import check_tensor
from tauten.data import Rows, base, gather
from tauten.designs import Covariate, Direct
from tauten.init.base import tame
from tauten.losses import Loss, Squared
from tauten.problem import Problem, within
from tauten.select import criteria, rough, select_rank
from tauten.select.sketch import sketched
from tauten.tucker import Affine, Tucker


@pytest.fixture
def worth(monkeypatch):
    """However small X is, and however many directions there are."""
    monkeypatch.setattr(base, "LARGE", 0)
    monkeypatch.setattr(within, "SMALLER", 1)


def posed(n, shape, rng, *, covariates=3.0, rank=2, norm=3.0, weight=None, response=()):
    truth = tt.datasets.truth((*shape, *response), rank, reading="random", norm=norm, rng=rng)
    X = rng.standard_t(covariates, size=(n, *shape)) + 1.0
    y = np.tensordot(X, truth.full(), axes=len(shape)) + rng.standard_t(3, size=(n, *response))
    center = np.median(X, axis=0)
    problem = Problem(Rows(X, y, np.ones((n, 1)), weight), Squared(), Covariate(center))
    start = point(truth.shape, (rank,) * len(truth.shape), rng, response)
    return tame(problem, problem.pilot(start)), truth


def point(shape, rank, rng, response=()):
    factors = [np.linalg.qr(rng.normal(size=(p, r)))[0] for p, r in zip(shape, rank, strict=True)]
    return Affine(rng.normal(size=rank), tuple(factors), rng.normal(size=(1, *response)))


@pytest.mark.parametrize("response", [(), (3,)])
def test_predictions_and_weights_are_those_of_the_whole_samples(response, rng):
    """Shrunk by the norms of all their entries, not of the few coordinates that are left."""
    weight = rng.uniform(0.5, 2.0, size=90)
    problem, _ = posed(90, (7, 6, 5), rng, weight=weight, response=response)
    theta = point((7, 6, 5, *response), (2, 2, 2, *response), rng, response)
    directions = [
        np.linalg.qr(np.concatenate([u, rng.normal(size=(len(u), 1))], axis=1))[0]
        for u in theta.factors[:3]
    ]
    small = within.within(problem, problem.data.all.parts(100), directions)
    there = within.narrowed(theta, directions)
    assert small.data.X.shape == (90, 3, 3, 3)
    np.testing.assert_allclose(small.scores(there), problem.scores(theta), atol=1e-10)
    assert np.mean(np.abs(problem.scores(theta)) < np.abs(unshrunk(problem, theta)) - 1e-6) > 0.2
    mine, theirs = small.gradient(there), problem.gradient(theta)
    np.testing.assert_allclose(mine.blocks.core, theirs.blocks.core, atol=1e-10)
    np.testing.assert_allclose(mine.value, theirs.value)
    pairs = zip(mine.blocks.factors, theirs.blocks.factors, strict=True)
    for w, (narrow, wide) in zip(directions, pairs, strict=False):
        np.testing.assert_allclose(narrow, w.T @ wide, atol=1e-10)
    np.testing.assert_allclose(within.widened(there, directions).full(), theta.full(), atol=1e-10)


def unshrunk(problem, theta):
    X, y = problem.data.X - problem.design.center, problem.data.y
    return np.tensordot(X, theta.full(), axes=3) + theta.linear[0] - y


def test_within_all_directions_fits_are_those_of_the_whole_space(worth, rng):
    problem, _ = posed(300, (5, 5, 4), rng)
    fits = [(problem, point((5, 5, 4), rank, rng)) for rank in ((3, 2, 2), (2, 3, 2), (2, 2, 2))]
    expected = rough.descend(fits)
    for (_, found), (_, whole) in zip(sketched(fits), expected, strict=True):
        assert found[0] is problem
        np.testing.assert_allclose(found[1].full(), whole.full(), atol=1e-6)


def test_samples_are_read_twice(worth, rng):
    """Once for their norms, once for their coordinates; X itself stays as it is."""
    problem, _ = posed(300, (9, 8, 7), rng)
    before, X = problem.data.reads.passes, problem.data.X.copy()
    sketched([(problem, point((9, 8, 7), (2, 2, 2), rng))])
    assert problem.data.reads.passes == before + 2
    np.testing.assert_array_equal(problem.data.X, X)


def test_where_it_is_not_worth_it_or_cannot_be_done(worth, rng, tmp_path, monkeypatch):
    problem, _ = posed(100, (6, 5), rng)
    theta = point((6, 5), (2, 2), rng)
    assert sketched([(problem, theta)]) is not None
    assert sketched([]) is None
    classes = Rows(problem.data.X, (problem.data.y > 0) * 1.0)
    logistic = Problem(classes, Loss.get("logistic"), Covariate())
    assert sketched([(logistic, theta)]) is None
    pca = Problem(Rows(None, problem.data.X), Squared(), Direct())
    assert sketched([(pca, Tucker(theta.core, theta.factors))]) is None
    np.save(tmp_path / "x.npy", problem.data.X)
    stored = check_tensor("X", np.load(tmp_path / "x.npy", mmap_mode="r"), anywhere=True)
    files = replace(problem, data=gather(stored, problem.data.y, memory=10_000))
    assert sketched([(files, theta)]) is None
    monkeypatch.setattr(within, "SMALLER", 8)  # 2 x 2 of 6 x 5 numbers
    assert sketched([(problem, theta)]) is None
    monkeypatch.setattr(within, "SMALLER", 7)
    assert sketched([(problem, theta)]) is not None
    monkeypatch.setattr(base, "LARGE", 100 * 30 * 8 + 1)
    assert sketched([(problem, theta)]) is None


def components(n, p, count, rng, *, alike=0.0, noise=1.0, size=2.0):
    """Components of one size, of covariates whose neighbours along each mode are alike."""
    X = rng.normal(size=(n, p, p, p))
    for mode in (1, 2, 3):
        rows = np.moveaxis(X, mode, 0)
        for i in range(1, p):
            rows[i] = (1 - alike**2) ** 0.5 * rows[i] + alike * rows[i - 1]
    u, v, w = (np.linalg.qr(rng.normal(size=(p, count)))[0] for _ in range(3))
    y = size * np.einsum("nijk,ia,ja,ka->n", X, u, v, w, optimize=True)
    return Problem(Rows(X, y + noise * rng.normal(size=n)), Squared(), Covariate())


def steps_by_rank(monkeypatch, problem, rng):
    """The path, and how many steps in the whole space each rank was given."""
    taken = {}

    def watched(fits, *, n_iter=rough.STEPS):
        for _, theta in fits:
            taken[theta.rank] = taken.get(theta.rank, 0) + n_iter
        return rough.descend(fits, n_iter=n_iter)

    monkeypatch.setattr(criteria, "descend", watched)
    return select_rank(problem, rng=rng), taken


def test_ranks_that_are_hopeless_get_few_steps_or_none(worth, rng, monkeypatch):
    problem = components(500, 9, 2, rng)
    path, taken = steps_by_rank(monkeypatch, problem, rng)
    assert path.rank == (2, 2, 2)
    larger = [(3, 2, 2), (2, 3, 2), (2, 2, 3), (3, 3, 2), (3, 2, 3), (2, 3, 3)]
    assert taken == {(5, 5, 5): 6} | dict.fromkeys(larger, 2)
    assert {(1, 2, 2), (2, 1, 2), (2, 2, 1)} < set(path.ranks)  # none: they are far too dear


def test_ranks_that_may_be_better_are_fitted_to_the_end(worth, rng, monkeypatch):
    truth = tt.datasets.truth((10, 10, 10), (2, 2, 3), reading="random", norm=4.0, rng=rng)
    data = tt.datasets.simulate(truth, 800, covariate_order=3, rng=rng)
    problem = Problem(Rows(data.X, data.y), Squared(), Covariate())
    path, taken = steps_by_rank(monkeypatch, problem, rng)
    assert path.rank == (2, 2, 3)
    assert taken[2, 2, 3] >= rough.STEPS


@pytest.mark.parametrize("seed", range(3))
def test_correlated_covariates_do_not_hide_components(seed, worth):
    """There the gradient shows other directions than those that are missing."""
    rng = np.random.default_rng(seed)
    problem = components(700, 10, 5, rng, alike=0.5, noise=0.5, size=1.5)
    assert select_rank(problem, rng=rng).rank == (5, 5, 5)


@pytest.mark.parametrize("kind", ["normal", "t:1.5"])
def test_the_same_ranks_are_chosen_as_by_fits_in_the_whole_space(kind, worth, monkeypatch):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = tt.datasets.truth((9, 8, 7), (2, 1, 2), reading="random", norm=3.0, rng=rng)
        data = tt.datasets.simulate(truth, 500, covariate_order=3, noise=kind, rng=rng)
        problem = Problem(Rows(data.X, data.y), Squared(), Covariate())
        found = select_rank(problem, rng=rng).rank
        with monkeypatch.context() as patch:
            patch.setattr(base, "LARGE", np.inf)
            assert select_rank(problem, rng=rng).rank == found
