"""Which responses choose a rank, and what is chosen where none of them can tell."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.select import ranks, select_rank


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_responses_that_are_missing_or_without_weight_do_not_count(missing, weighted, rng):
    y = rng.normal(size=(6, 3, 2))
    expected = np.ones(y.shape, bool)
    if missing:
        expected = rng.random(y.shape) < 0.7
        y[~expected] = np.nan
    weight = np.array([1.0, 0.0, 2.0, 0.5, 0.0, 1.0]) if weighted else None
    if weighted:
        expected[[1, 4]] = False
    problem = Problem(Rows(None, y, weight=weight), Squared(), Direct(), missing=missing)
    np.testing.assert_array_equal(ranks._seen(problem), expected)


def test_rank_one_where_no_fold_can_be_predicted(rng, monkeypatch):
    """An error that is no number is not even close to itself."""
    monkeypatch.setattr(ranks, "_pilot_fits", lambda problems, rank: [(p, rank) for p in problems])
    monkeypatch.setattr(ranks, "validate", lambda problems, *_: [np.nan] * len(problems))
    X = rng.normal(size=(60, 4, 3))
    problem = Problem(Rows(X, X[:, 0, 0]), Squared(), Covariate())
    assert select_rank(problem, criterion="cv", rng=rng, largest=2).rank == (1, 1)


def test_rank_one_where_there_is_nothing_to_explain(rng):
    """Residuals that are all zero have neither scale nor slope."""
    problem = Problem(Rows(rng.normal(size=(60, 4, 3)), np.zeros(60)), Squared(), Covariate())
    assert select_rank(problem, rng=rng, largest=2).rank == (1, 1)


def test_ranks_are_chosen_by_the_bic_unless_asked_otherwise(rng):
    X = rng.normal(size=(60, 4, 3))
    problem = Problem(Rows(X, X[:, 0, 0] + rng.normal(size=60)), Squared(), Covariate())
    paths = [select_rank(problem, rng=rng, largest=2, **o) for o in ({}, {"criterion": "bic"})]
    assert paths[0].criterion == paths[1].criterion


@pytest.mark.parametrize("criterion", ["bic", "cv"])
def test_ranks_are_fitted_together(criterion, rng):
    """And each as if it were alone. Folds of a rank go together, ranks one after the other."""
    X = rng.normal(size=(80, 5, 4))
    problem = Problem(Rows(X, X[:, 0, 0] + rng.standard_t(2, size=80)), Squared(), Covariate())
    tried = [(1, 1), (2, 2), (3, 3)]

    def costs(batches):
        if criterion == "bic":
            cost = ranks._Bic(problem)
        else:
            cost = ranks._CrossValidated(problem, np.random.default_rng(0))
        passes = [problem.data.reads.passes]
        for batch in batches:
            cost.fit(batch)
            passes.append(problem.data.reads.passes)
        return [cost.alone(rank) for rank in tried], np.diff(passes)

    together, (passes,) = costs([tried])
    alone, each = costs([[rank] for rank in tried])
    np.testing.assert_allclose(together, alone)
    if criterion == "bic":  # start and descent each take as long as their slowest
        assert max(each) <= passes < 0.6 * sum(each)
    else:
        assert passes == sum(each)
    assert max(each) < 7 + 15 + 2 + 15 + 1  # of one fit: start, two descents, residuals twice
