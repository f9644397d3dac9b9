"""The pseudo-Huber decomposition against HOOI and its own first-order condition."""

import numpy as np
import pytest

import oracle
import tauten as tt
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.init import decompose, pseudo_huber, start
from tauten.losses import Squared
from tauten.problem import Problem
from tauten.robust import PseudoHuber
from tauten.tucker import hooi


def problem(Y):
    return Problem(Rows(None, Y), Squared(), Direct(), missing=bool(np.isnan(Y).any()))


def copies(n, rank=2, noise="normal", seed=0):
    rng = np.random.default_rng(seed)
    truth = tt.datasets.truth((8, 7, 6), rank, reading="random", norm=60.0, rng=rng)
    return truth, truth.full() + tt.datasets.sample(noise, (n, 8, 7, 6), rng=rng)


@pytest.mark.parametrize("n", [1, 4])
def test_without_a_threshold_it_is_hooi_of_the_mean(n):
    _, Y = copies(n)
    fit = pseudo_huber(problem(Y), (2, 2, 2), delta=1e8, n_iter=200, tol=1e-9)
    best = hooi(Y.mean(axis=0), (2, 2, 2), n_iter=500, tol=0.0)
    assert fit.full() == pytest.approx(best.full(), abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_gradient_of_the_observed_entries_vanishes_along_the_manifold(share):
    _, Y = copies(3, noise="t:2.1")
    Y[np.random.default_rng(1).random(Y.shape) < share] = np.nan
    fit = pseudo_huber(problem(Y), (2, 2, 2), delta=1.5, n_iter=500, tol=1e-10)
    r = fit.full() - Y
    gradient = np.nan_to_num(r / np.sqrt(1 + (r / 1.5) ** 2)).mean(axis=0)
    along = oracle.tangent(fit.blocks, 3, gradient)
    assert np.linalg.norm(along) < 1e-5 * np.linalg.norm(gradient)


def test_one_wild_entry_does_not_move_it():
    truth, Y = copies(1)
    before = tt.metrics.relative_error(pseudo_huber(problem(Y), (2, 2, 2)), truth)
    Y[0, 0, 0, 0] = 1e6
    after = tt.metrics.relative_error(pseudo_huber(problem(Y), (2, 2, 2)), truth)
    assert after < 1.2 * before


def test_it_improves_on_the_winsorised_decomposition_of_normal_data():
    truth, Y = copies(1)
    fit, first = pseudo_huber(problem(Y), (2, 2, 2)), decompose(problem(Y), (2, 2, 2))
    errors = [tt.metrics.relative_error(theta, truth) for theta in (fit, first)]
    assert errors[0] < errors[1]


def test_covariates_are_refused():
    regression = Problem(Rows(np.ones((5, 3)), np.ones(5)), Squared(), Covariate())
    with pytest.raises(ValueError, match="is for PCA"):
        pseudo_huber(regression, (1,))
    with pytest.raises(ValueError, match="nuclear-literal, projected, random, restarts, spectral"):
        start("pseudo-huber", regression, (1,), np.random.default_rng(0))


def test_score_is_the_derivative_of_the_pseudo_huber_loss():
    r, nu, h = np.linspace(-5, 5, 21), 1.3, 1e-6

    def loss(x):
        return nu**2 * (np.sqrt(1 + (x / nu) ** 2) - 1)

    score = PseudoHuber(nu).calibrate().score(r)
    assert score == pytest.approx((loss(r + h) - loss(r - h)) / (2 * h), abs=1e-8)


def test_robustifier_keeps_its_promises():
    tt.testing.check_robustifier(PseudoHuber(), off={"nu": np.inf})
