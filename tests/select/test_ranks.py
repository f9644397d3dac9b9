"""Which responses choose a rank, and what is chosen where none of them can tell."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.init import starts
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.robust import adaptive
from tauten.select import criteria, rough, select_rank
from tauten.tucker import degrees_of_freedom


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
    np.testing.assert_array_equal(rough.counted(problem), expected)


def test_rank_one_where_no_fold_can_be_predicted(rng, monkeypatch):
    """An error that is no number is not even close to itself."""
    monkeypatch.setattr(criteria, "validate", lambda problems, *_: [np.nan] * len(problems))
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
            cost = criteria.Bic(problem)
        else:
            cost = criteria.CrossValidated(problem, np.random.default_rng(0))
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
        assert passes == pytest.approx(sum(each))
    assert max(each) < 7 + 15 + 2 + 15 + 1  # of one fit: start, two descents, residuals twice


def explained(*components, n=600, seed=0):
    """Responses of normal samples, from a tensor with these numbers on its core's diagonal."""
    rng = np.random.default_rng(seed)
    X, size = rng.normal(size=(n, 7, 6, 6)), len(components)
    u, v, w = (np.linalg.qr(rng.normal(size=(p, size)))[0] for p in (7, 6, 6))
    y = np.einsum("nijk,ia,a,ja,ka->n", X, u, components, v, w, optimize=True)
    return Problem(Rows(X, y + rng.normal(size=n)), Squared(), Covariate())


@pytest.mark.parametrize(
    ("components", "equal"),
    [
        ((3.0,), [1, 2, 3, 5]),  # the largest is no better: nor are those between
        ((4.0, 3.0, 2.0), [1, 2, 3, 5]),
        ((9.0, 7.0, 5.0, 3.0), [1, 2, 3, 5, 4]),
    ],
)
def test_of_larger_equal_ranks_the_largest_is_tried_first(components, equal, rng):
    path = select_rank(explained(*components), rng=rng)
    assert path.rank == (len(components),) * 3
    assert [rank for rank in path.ranks if len(set(rank)) == 1] == [(r, r, r) for r in equal]


@pytest.mark.parametrize("seed", [0, 2])
def test_components_that_are_worth_their_price_all_together(seed, rng):
    """Of five alike, the first ones explain too little each: the criterion rises, then falls."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(400, 8, 8, 8))
    u, v, w = (np.linalg.qr(draw.normal(size=(8, 5)))[0] for _ in range(3))
    y = np.einsum("nijk,ia,ja,ka->n", X, u, v, w, optimize=True)
    y += 0.1 * 5**0.5 * draw.normal(size=400)
    path = select_rank(Problem(Rows(X, y), Squared(), Covariate()), rng=rng)
    assert path.rank == (5, 5, 5)


@pytest.mark.parametrize("criterion", ["bic", "cv"])
def test_only_the_smallest_equal_ranks_start_from_zero(criterion, rng, monkeypatch):
    begun = []

    def watched(problems, tried):
        begun.extend(tried)
        return starts(problems, tried)

    monkeypatch.setattr(rough, "starts", watched)
    path = select_rank(explained(4.0, 3.0, 2.0), criterion=criterion, rng=rng)
    assert set(begun) == {(1, 1, 1), (2, 2, 2), (3, 3, 3)} < set(path.ranks)


@pytest.mark.parametrize("criterion", ["bic", "cv"])
@pytest.mark.parametrize("rank", [(1, 2, 2), (2, 1, 1), (3, 2, 2), (3, 3, 2)])
def test_fits_from_near_ranks_are_as_good_as_those_from_zero(criterion, rank, rng):
    problem = explained(4.0, 3.0)
    cost = criteria.Bic(problem) if criterion == "bic" else criteria.CrossValidated(problem, rng)
    cost.fit([(2, 2, 2)])
    cost.rescale((2, 2, 2))
    cost.fit([rank])
    near = cost._fits[rank] if criterion == "cv" else [cost._fits[rank]]
    problems = [fitted for fitted, _ in near]
    far = rough.descend(rough.rough_fits(problems, [rank] * len(near)))
    for (fitted, one), (_, other) in zip(near, far, strict=True):
        expected = fitted.gradient(other).value
        assert fitted.gradient(one).value == pytest.approx(expected, rel=0.02)


def test_criteria_of_ranks_that_the_last_move_did_not_look_at(rng):
    """They come of the fits at hand, with the bend and the scale of the last move."""
    problem = explained(9.0, 7.0, 5.0)
    path = select_rank(problem, rng=rng)
    criteria = dict(zip(path.ranks, path.criterion, strict=True))
    assert path.rank == (3, 3, 3)
    assert np.isfinite(path.criterion).all()
    assert criteria[1, 1, 1] > criteria[2, 2, 2] > criteria[3, 3, 3] < criteria[5, 5, 5]


def test_losses_of_many_residuals_are_added_up_by_parts(rng, monkeypatch):
    problem = explained(4.0, 3.0)
    whole = select_rank(problem, rng=rng)
    monkeypatch.setattr(criteria, "PART", 7)
    parts = select_rank(problem, rng=rng)
    assert parts.ranks == whole.ranks
    np.testing.assert_allclose(parts.criterion, whole.criterion, rtol=1e-12)


def test_the_efficiency_of_many_residuals_is_that_of_some(rng, monkeypatch):
    """It is the same for all ranks: their losses are known as exactly as ever."""
    problem = explained(4.0, 3.0, n=2000)
    every = select_rank(problem, rng=rng)
    monkeypatch.setattr(adaptive, "MOST_SCORES", 500)
    some = select_rank(problem, rng=rng)
    assert some.rank == every.rank
    losses = [
        [c - degrees_of_freedom((7, 6, 6), r) * np.log(2000) for r, c in known.items()]
        for known in (dict(zip(p.ranks, p.criterion, strict=True)) for p in (every, some))
    ]
    ratios = np.divide(*losses)
    assert 0.7 < ratios[0] < 1.4
    assert ratios[0] != 1
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-3)
