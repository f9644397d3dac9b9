"""Problems near one point, against predictors made linear by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tauten import datasets
from tauten.data import Rows
from tauten.designs import Covariate
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.problem.nearby import gradients_near, linear, scores_near
from tauten.robust import Adaptive, Truncate
from tauten.tucker import Affine


@pytest.fixture
def sight(rng):
    """A problem with an intercept and weights, a point, and a step from it."""
    A = datasets.truth((3, 4), 2, reading="random", rng=0)
    X, Z = rng.normal(size=(40, 3, 4)), np.ones((40, 1))
    y, weight = np.tensordot(X, A.full(), 2) + rng.normal(size=40), rng.uniform(0.5, 2, size=40)
    problem = Problem(Rows(X, y, Z, weight), Squared(), Covariate(X.mean(axis=0)))
    theta = Affine(A.core, A.factors, np.array([0.3]))
    return problem, theta, 0.1 * rng.normal(size=theta.flat().size)


def moved(problem, theta, step):
    """Predictors at the end of a step, to first order, and their derivatives."""

    def predictors(vector):
        return problem.predictors(theta.with_blocks(theta.split(vector)))

    here, h = theta.flat(), 1e-6
    each = [predictors(here + h * e) - predictors(here - h * e) for e in np.eye(here.size)]
    rows = np.stack(each, axis=1) / (2 * h)
    return predictors(here) + rows @ step, rows


@pytest.mark.parametrize("tau", [0.5, np.inf])
def test_gradients_are_those_of_linear_predictors(sight, tau):
    problem, theta, step = sight
    robust = Truncate(tau).calibrate()
    eta, rows = moved(problem, theta, step)
    gradients = (eta - problem.data.y)[:, None] * rows
    expected = np.average(np.clip(gradients, -tau, tau), axis=0, weights=problem.data.weight)
    (found,) = gradients_near([replace(problem, robust=robust)], theta, [step])
    np.testing.assert_allclose(found.blocks.flat(), expected, atol=1e-7)


def test_samples_are_shrunk_as_elsewhere(sight):
    problem, theta, step = sight
    norms = np.linalg.norm((problem.data.X - problem.design.center).reshape(40, -1), axis=1)
    omega = float(np.median(norms))
    tamed = replace(problem, robust=Adaptive(omega, np.inf, np.inf).calibrate())
    scale = np.minimum(1, omega / norms)
    eta, rows = moved(problem, theta, step)
    residuals = scale * (eta - problem.data.y)
    expected = np.average((residuals * scale)[:, None] * rows, axis=0, weights=problem.data.weight)
    plain, shrunk = gradients_near([problem, tamed], theta, [step, step])
    np.testing.assert_allclose(shrunk.blocks.flat(), expected, atol=1e-7)
    assert np.abs(plain.blocks.flat() - expected).max() > 1e-3
    np.testing.assert_allclose(scores_near([tamed], theta, [step])[0], residuals, atol=1e-7)


def test_without_a_step_they_are_those_of_the_point(sight):
    problem, theta, step = sight
    problem = replace(problem, robust=Truncate(0.5).calibrate())
    (found,) = gradients_near([problem], theta, [0 * step], curvature=True)
    there = problem.gradient(theta, curvature=True)
    np.testing.assert_allclose(found.blocks.flat(), there.blocks.flat(), rtol=1e-12)
    for name in ("curvature", "correction"):
        np.testing.assert_allclose(getattr(found, name), getattr(there, name), rtol=1e-10)


def test_each_problem_has_its_weights(sight):
    problem, theta, step = sight
    first = np.where(np.arange(40) < 25, 1.0, 0.0)
    parts = [replace(problem, data=problem.data.reweight(w)) for w in (first, 1 - first)]
    eta, rows = moved(problem, theta, step)
    for part, found in zip(parts, gradients_near(parts, theta, [step] * 2), strict=True):
        some = part.data.weight > 0
        expected = ((eta - problem.data.y)[:, None] * rows)[some].mean(axis=0)
        np.testing.assert_allclose(found.blocks.flat(), expected, atol=1e-7)


def test_responses_must_be_numbers(sight, rng):
    problem = sight[0]
    assert linear(problem)
    assert not linear(replace(problem, reduce_bias=True))
    assert not linear(replace(problem, ridge=0.1))
    several = Rows(problem.data.X, rng.normal(size=(40, 2)))
    assert not linear(replace(problem, data=several))
    assert not linear(replace(problem, data=Rows(None, rng.normal(size=40))))
