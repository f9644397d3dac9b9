"""Gradients of few samples with Jeffreys' prior, against those of passes over them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Loss
from tauten.problem import Problem, gradients
from tauten.problem import problem as module
from tauten.problem.at_once import all_that_count
from tauten.robust import MedianOfMeans, Robustifier, Shrink, Truncate

ROBUST = {"none": Robustifier(), "shrink": Shrink(8.0), "truncate": Truncate(0.2)}
# classes, samples, ridge: fewer predictors than parameters, more, and a saturated model
CASES = {
    "few, ridge": (2, 40, 0.1),
    "many, ridge": (2, 140, 0.1),
    "many": (2, 140, 0.0),
    "saturated": (2, 40, 0.0),
    "few, three classes": (3, 20, 0.1),
    "many, three classes": (3, 60, 0.0),
}


@pytest.fixture
def setting(make_theta, rng):
    """Make a problem, and points in no gauge and in the canonical one."""
    return partial(_setting, make_theta, rng)


def _setting(make_theta, rng, case, *, robust=ROBUST["none"], weighted=True):
    classes, n, ridge = CASES[case]
    many = classes > 2
    X, Z = rng.normal(size=(n, 10, 8)), np.column_stack([np.ones(n), rng.normal(size=n)])
    labels = np.argmax(X[:, 0, :classes] + rng.gumbel(size=(n, classes)), axis=1)
    y = np.eye(classes)[labels] if many else labels.astype(float)
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    loss = Loss.get("multinomial" if many else "logistic")
    problem = Problem(
        Rows(X, y, Z, weight, chunk=n // 3),
        loss,
        Covariate(np.full((10, 8), 0.1)),
        robust.calibrate(),
        reduce_bias=True,
        ridge=ridge,
    )
    shape, rank = ((10, 8, 3), (2, 3, 2)) if many else ((10, 8), (4, 4))
    theta = make_theta(shape, rank, linear=(2, 3) if many else (2,))
    return problem, [theta, theta.canonical()]


def by_passes(monkeypatch, *args, **options):
    with monkeypatch.context() as patch:
        patch.setattr(module, "all_that_count", lambda problem: False)
        return gradients(*args, **options)


def same(mine, theirs, rtol=1e-6):
    """Up to the ridge of 1e-7 that keeps a matrix of parameters invertible."""
    size = np.abs(theirs.blocks.flat()).max()
    np.testing.assert_allclose(mine.blocks.flat(), theirs.blocks.flat(), atol=rtol * size)
    assert mine.value == pytest.approx(theirs.value, rel=1e-12)
    for name in ("curvature", "correction", "tensor"):
        one, other = getattr(mine, name), getattr(theirs, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=rtol * max(np.abs(other).max(), 1e-300))


@pytest.mark.parametrize("curvature", [False, True])
@pytest.mark.parametrize("robust", ROBUST)
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_passes(case, robust, curvature, setting, monkeypatch):
    problem, points = setting(case, robust=ROBUST[robust])
    problems = [problem, replace(problem, ridge=2 * problem.ridge)]
    assert all(map(all_that_count, problems))
    here = gradients(problems, points, curvature=curvature)
    there = by_passes(monkeypatch, problems, points, curvature=curvature)
    plain = gradients(
        [replace(p, reduce_bias=False) for p in problems], points, curvature=curvature
    )
    for mine, theirs, without in zip(here, there, plain, strict=True):
        same(mine, theirs)
        gap = np.abs(mine.blocks.flat() - without.blocks.flat()).max()
        assert gap > 1e-4 * np.abs(mine.blocks.flat()).max()  # the prior is there


def test_shares_of_bent_entries_are_of_the_samples_that_count(setting, monkeypatch):
    options = {"robust": ROBUST["truncate"], "weighted": False}
    problem, (theta, _) = setting("few, ridge", **options)
    (whole,) = by_passes(monkeypatch, [problem], [theta])
    assert problem.gradient(theta).truncated == pytest.approx(whole.truncated)
    twice, doubled = (np.concatenate([a, a]) for a in (problem.data.X, problem.data.Z))
    weight = np.repeat([1.0, 0.0], problem.data.n)
    data = Rows(twice, np.concatenate([problem.data.y] * 2), doubled, weight)
    assert replace(problem, data=data).gradient(theta).truncated == pytest.approx(whole.truncated)


def test_one_sweep_of_the_samples_that_count(setting, monkeypatch):
    """And no pass over the others."""
    problem, (theta, _) = setting("few, ridge")
    sizes, sweep = [], Covariate.linearise
    problem.data.sample(2000)

    def counted(self, theta, X, *args):
        sizes.append(len(X))
        return sweep(self, theta, X, *args)

    monkeypatch.setattr(Covariate, "linearise", counted)
    before = problem.data.reads.passes
    problem.gradient(theta)
    assert sizes == [np.count_nonzero(problem.data.weight)]
    assert problem.data.reads.passes == before


def test_where_not_all_that_count_are_looked_at(setting, monkeypatch):
    problem, _ = setting("few, ridge")
    assert all_that_count(problem)
    assert not all_that_count(replace(problem, reduce_bias=False))
    assert not all_that_count(replace(problem, robust=MedianOfMeans(4).calibrate()))
    monkeypatch.setattr("tauten.problem.at_once.PILOT_SIZE", 10)
    assert not all_that_count(problem)


@pytest.mark.parametrize("case", ["few, ridge", "many", "few, three classes"])
def test_pseudo_observations_are_passed_on(case, setting, rng):
    """To the map of curvatures, which need not find them again."""
    problem, (_, theta) = setting(case)
    direction = theta.map(lambda block: rng.normal(size=block.shape))
    pseudo = problem.gradient(theta).pseudo
    known = problem.curvature_map(theta, pseudo)(direction).flat()
    found = problem.curvature_map(theta)(direction).flat()
    np.testing.assert_allclose(known, found, atol=1e-6 * np.abs(found).max())
    plain = replace(problem, reduce_bias=False).curvature_map(theta)(direction).flat()
    assert np.abs(known - plain).max() > 1e-3 * np.abs(found).max()
