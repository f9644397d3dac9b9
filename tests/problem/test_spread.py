"""Spread along modes: against the covariance of what was drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Chunk, Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.problem.spread import mode_spreads


def spreads(X, center=None):
    return mode_spreads(Chunk(X, np.zeros(len(X)), None, None, 0), center)


def correlated(rng, n=200):
    """Samples of covariance Σ_1 ⊗ Σ_2, and that."""
    roots = [np.tril(rng.uniform(0.2, 1.0, size=(p, p))) for p in (4, 5)]
    X = np.einsum("ab,nbc,dc->nad", roots[0], rng.normal(size=(n, 4, 5)), roots[1])
    return X, [root @ root.T for root in roots]


@pytest.mark.parametrize("center", [None, 3.0])
def test_spreads_are_the_covariances_along_each_mode_of_samples_of_one_size(center, rng):
    """By hand, in loops over the samples; and near those of what was drawn."""
    X, truth = correlated(rng)
    found = spreads(X if center is None else X + center, center and np.full((4, 5), center))
    sizes = np.array([np.mean(x**2) for x in X])
    for k, (mine, theirs) in enumerate(zip(found, truth, strict=True)):
        p = len(mine)
        rows = [x if k == 0 else x.T for x in X]
        mean = sum(x @ x.T / size for x, size in zip(rows, sizes, strict=True)) * p / X.size
        share = p * p / X.size
        expected = (1 - share) * mean + share * np.eye(p)
        np.testing.assert_allclose(mine, expected * (np.median(sizes) if k == 0 else 1.0))
        cosine = np.sum(mine * theirs) / np.linalg.norm(mine) / np.linalg.norm(theirs)
        assert cosine > 0.97


def test_wild_samples_count_no_more_than_others(rng):
    X, _ = correlated(rng)
    wild = X * np.where(np.arange(200) % 10 == 3, 1e6, 1.0)[:, None, None]
    for mine, theirs in zip(spreads(wild)[1:], spreads(X)[1:], strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_few_rows_of_a_long_mode_tell_nothing(rng):
    (found,) = spreads(rng.normal(size=(40, 60)))
    np.testing.assert_allclose(found / found[0, 0], np.eye(60), atol=1e-12)


def test_samples_without_any_spread(rng):
    for found in spreads(np.zeros((20, 3, 2))):
        assert np.isfinite(found).all()
        assert np.linalg.matrix_rank(found) == len(found)


def test_a_part_of_many_samples_is_looked_at(rng, monkeypatch):
    X = rng.normal(size=(1000, 3, 2))
    monkeypatch.setattr("tauten.problem.spread.SIZE", 100)
    np.testing.assert_array_equal(spreads(X)[1], spreads(X[::11])[1])


def test_there_is_none_in_pca(rng):
    assert Problem(Rows(None, rng.normal(size=(5, 3))), Squared(), Direct()).spreads == []
    problem = Problem(Rows(rng.normal(size=(5, 3, 2)), np.zeros(5)), Squared(), Covariate())
    assert [m.shape for m in problem.spreads] == [(3, 3), (2, 2)]


def test_what_is_known_of_samples_is_kept(rng):
    one, other = (Rows(rng.normal(size=(5, 3, 2)), np.zeros(5)) for _ in range(2))
    problem = Problem(one, Squared(), Covariate())
    with_ridge = Problem(other, Squared(), Covariate(), ridge=1.0).on_samples_of(problem)
    assert "spreads" not in vars(with_ridge)
    spreads = problem.spreads
    with_ridge = with_ridge.on_samples_of(problem)
    assert with_ridge.data is one
    assert with_ridge.ridge == 1.0
    assert with_ridge.spreads is spreads
