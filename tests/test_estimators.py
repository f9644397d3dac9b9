"""The estimators against closed forms, scikit-learn, scipy, TensorLy and naive formulas."""

from __future__ import annotations

import math
import string
import sys

import numpy as np
import pytest
import tensorly as tl
from scipy.optimize import least_squares, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from tensorly.decomposition import tucker

from tauten import TensorClassifier, TensorPCA, TensorRegressor, Tucker
from tauten.datasets import make_model, simulate, truth
from tauten.metrics import relative_error
from tauten.robust import (
    Adaptive,
    Catoni,
    HodgesLehmann,
    Huber,
    MedianOfMeans,
    NormClip,
    Robustifier,
    Shrink,
    Truncate,
)
from tauten.solver import GradientDescent, Newton
from tauten.tucker import multi_mode_dot

TIGHT = Newton(n_iter=300, tol=1e-12)
STABLE = Newton(n_iter=300, tol=1e-9)  # for comparisons at 1e-6
NAMES = sorted(Robustifier.registry)
SMOOTH = ["none", "auto", "huber", "cauchy", "truncate", "normclip", "catoni", "shrink"]
SOME = ["none", "auto", "truncate", "normclip"]
INSTANCES = [
    Truncate(2.0),
    Truncate([2.0, 3.0, 3.0]),  # core and factors
    Truncate(np.inf),
    Huber(1.5),
    Shrink(4.0),
    NormClip(5.0),
    MedianOfMeans(5),
    HodgesLehmann(6),
    Catoni(8.0),
    Adaptive(omega=5.0, nu=1.5, tau=10.0),
]
NO_CONVERGENCE = "ignore::sklearn.exceptions.ConvergenceWarning"  # medians of blocks have kinks


def vectors(n=200, p=5, seed=0):
    """Draw covariates, coefficients and linear predictors of a plain regression."""
    rng = np.random.default_rng(seed)
    X, b = rng.normal(size=(n, p)), rng.normal(size=p)
    return X, X @ b + 2, rng


def close(mine, theirs, tol=1e-6):
    """Compare relative to the size of the whole array."""
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape
    gap, size = np.linalg.norm(mine - theirs), np.linalg.norm(theirs)
    assert gap <= tol * max(size, 1e-12), f"relative difference {gap / max(size, 1e-12):.1e}"


def naive_full(vector, shape, rank):
    """Make a tensor of the entries of its core and factors, by one einsum."""
    sizes = [math.prod(rank), *(p * r for p, r in zip(shape, rank, strict=True))]
    core, *factors = np.split(vector, np.cumsum(sizes)[:-1])
    inner, outer = string.ascii_lowercase[: len(rank)], string.ascii_uppercase[: len(rank)]
    pairs = ",".join(o + i for i, o in zip(inner, outer, strict=True))
    factors = [u.reshape(p, r) for u, p, r in zip(factors, shape, rank, strict=True)]
    return np.einsum(f"{inner},{pairs}->{outer}", core.reshape(rank), *factors)


def flat(point):
    return np.concatenate([np.ravel(block) for block in point.blocks])


def naive_fit(X, y, start, *, nu=np.inf):
    """Fit least squares, or Huber's, over the entries of core, factors and intercept by scipy."""
    shape, rank = start.shape, start.rank
    X2, y2 = X.reshape(len(X), -1), y.reshape(len(y), -1)

    def residuals(vector):
        split = vector.size - y2.shape[1]
        A = naive_full(vector[:split], shape, rank).reshape(X2.shape[1], -1)
        return (X2 @ A + vector[split:] - y2).ravel()

    first = np.concatenate([flat(start), y2.mean(axis=0)])
    options = {} if np.isinf(nu) else {"loss": "huber", "f_scale": nu}
    tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
    fit = least_squares(residuals, first, max_nfev=2000, **tight, **options)
    split = first.size - y2.shape[1]
    return naive_full(fit.x[:split], shape, rank), fit.x[split:].reshape(y.shape[1:])


# ------------------------------------------------- vectors: scikit-learn has the answer already


@pytest.mark.parametrize("rank", [1, 3, (5,)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_vector_least_squares_is_linear_regression(rank, fit_intercept):
    X, eta, rng = vectors()
    y = eta + rng.normal(size=len(X))
    mine = TensorRegressor(rank, robust="none", fit_intercept=fit_intercept).fit(X, y)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.score(X, y), theirs.score(X, y), rtol=1e-9)


def test_vector_poisson_is_poisson_regression():
    X, eta, rng = vectors()
    y = rng.poisson(np.exp(0.4 * eta)).astype(float)
    mine = TensorRegressor(1, loss="poisson", robust="none", solver=TIGHT).fit(X, y)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=5000).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))


def test_vector_gamma_is_gamma_regression():
    X, eta, rng = vectors()
    y = rng.exponential(np.exp(0.4 * eta))
    mine = TensorRegressor(1, loss="gamma", robust="none", solver=TIGHT).fit(X, y)
    theirs = GammaRegressor(alpha=0, tol=1e-10, max_iter=5000).fit(X, y)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("nu", [0.3, 1.345, 20.0])
@pytest.mark.parametrize("how", ["robustifier", "loss"])
def test_vector_huber_is_scipy_least_squares(nu, how):
    X, eta, rng = vectors()
    y = eta + rng.standard_t(1.5, size=len(X))
    options = {"robust": Huber(nu)} if how == "robustifier" else {"robust": "none"}
    loss = "squared" if how == "robustifier" else f"huber:nu={nu}"
    mine = TensorRegressor(1, loss=loss, solver=TIGHT, **options).fit(X, y)
    theirs = least_squares(
        lambda b: X @ b[:-1] + b[-1] - y,
        np.zeros(X.shape[1] + 1),
        loss="huber",
        f_scale=nu,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    ).x
    close(mine.coef_, theirs[:-1])
    np.testing.assert_allclose(mine.intercept_, theirs[-1], atol=1e-6)


def test_vector_covariates_are_more_features():
    X, eta, rng = vectors()
    Z = rng.normal(size=(len(X), 3))
    y = eta + Z @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))
    mine = TensorRegressor(1, robust="none").fit(X, y, covariates=Z)
    theirs = LinearRegression().fit(np.hstack([X, Z]), y)
    close(mine.coef_, theirs.coef_[:5])
    close(mine.covariate_coef_, theirs.coef_[5:])
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    close(mine.predict(X, Z), theirs.predict(np.hstack([X, Z])))
    np.testing.assert_allclose(
        mine.score(X, y, covariates=Z), theirs.score(np.hstack([X, Z]), y), rtol=1e-9
    )


def test_covariates_with_tensors_and_tensor_responses():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(150, 3, 2)), rng.normal(size=(150, 2))
    y = rng.normal(size=(150, 4))
    mine = TensorRegressor(6, robust="none").fit(X, y, covariates=Z)
    features = np.hstack([X.reshape(150, -1), Z])
    theirs = LinearRegression().fit(features, y)
    assert mine.covariate_coef_.shape == (2, 4)
    close(mine.predict(X, Z), theirs.predict(features))
    close(mine.covariate_coef_, theirs.coef_[:, 6:].T)


# ------------------------------------------------- tensors


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2)])
def test_full_rank_is_linear_regression_on_the_entries(shape):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, *shape))
    y = X.reshape(150, -1) @ rng.normal(size=math.prod(shape)) + 3 + rng.normal(size=150)
    mine = TensorRegressor(99, robust="none", solver=TIGHT).fit(X, y)
    theirs = LinearRegression().fit(X.reshape(150, -1), y)
    close(mine.coef_, theirs.coef_.reshape(shape))
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize(
    ("x_shape", "y_shape"), [((4,), (3,)), ((4,), (2, 3)), ((3, 2), (2,)), ((3, 2), (2, 3))]
)
def test_full_rank_tensor_responses(x_shape, y_shape):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(150, *x_shape)), 5 + rng.normal(size=(150, *y_shape))
    mine = TensorRegressor(99, robust="none", solver=TIGHT).fit(X, y)
    theirs = LinearRegression().fit(X.reshape(150, -1), y.reshape(150, -1))
    assert mine.predict(X).shape == y.shape
    close(mine.coef_, theirs.coef_.T.reshape(*x_shape, *y_shape))
    close(mine.intercept_, theirs.intercept_.reshape(y_shape))
    close(mine.predict(X), theirs.predict(X.reshape(150, -1)).reshape(y.shape))
    np.testing.assert_allclose(
        mine.score(X, y), r2_score(y.reshape(150, -1), mine.predict(X).reshape(150, -1))
    )


@pytest.mark.parametrize("rank", [1, 2])
def test_vectors_to_vectors_is_reduced_rank_regression(rank):
    """Closed form: project the least-squares fit on the leading directions of fitted values."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 6))
    y = X @ rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5)) + 7 + rng.normal(size=(200, 5))
    mine = TensorRegressor(rank, robust="none", solver=TIGHT).fit(X, y)
    ols = LinearRegression().fit(X, y)
    _, _, vt = np.linalg.svd((X - X.mean(axis=0)) @ ols.coef_.T)
    theirs = ols.coef_.T @ vt[:rank].T @ vt[:rank]
    close(mine.coef_, theirs)
    close(mine.intercept_, y.mean(axis=0) - X.mean(axis=0) @ theirs)


def test_column_response_keeps_its_axis():
    X, eta, rng = vectors()
    y = (eta + rng.normal(size=len(X)))[:, None]
    mine = TensorRegressor(1, robust="none").fit(X, y)
    theirs = LinearRegression().fit(X, y)
    assert mine.coef_.shape == (5, 1)
    assert mine.intercept_.shape == (1,)
    close(mine.coef_, theirs.coef_.T)
    close(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("shape", "rank", "order", "nu"),
    [
        ((5, 4), (1, 1), 2, np.inf),
        ((5, 4), (2, 2), 2, 1.0),
        ((4, 3, 2), (2, 2, 1), 3, np.inf),
        ((4, 3, 2), (2, 1, 2), 2, 1.0),
        ((3, 2, 2, 2), (1, 2, 1, 2), 4, np.inf),
        ((2, 2, 2, 2, 2), (1, 1, 1, 1, 1), 5, 1.0),
        ((2, 2, 2, 2, 2), (1, 1, 1, 1, 1), 3, np.inf),
    ],
)
def test_low_rank_fit_is_the_naive_minimum(shape, rank, order, nu):
    point = truth(shape, rank, reading="random", norm=4.0, rng=5)
    data = simulate(point, 150, covariate_order=order, noise="t:3", rng=6)
    mine = TensorRegressor(rank, robust=Huber(nu), solver=TIGHT).fit(data.X, data.y)
    coef, intercept = naive_fit(data.X, data.y, point, nu=nu)
    assert mine.rank_ == mine.tucker_.rank == rank
    close(mine.coef_, coef, 1e-5)
    np.testing.assert_allclose(mine.intercept_, intercept, atol=1e-4)


def test_low_rank_poisson_is_the_naive_minimum():
    point = truth((4, 3), 1, norm=0.8)
    data = simulate(point, 300, covariate_order=2, loss="poisson", rng=7)

    def deviance(vector):
        eta = data.X.reshape(300, -1) @ naive_full(vector[:-1], (4, 3), (1, 1)).ravel() + vector[-1]
        return np.mean(np.exp(eta) - data.y * eta)

    theirs = minimize(deviance, np.append(flat(point), 0.0), method="BFGS", options={"gtol": 1e-7})
    mine = TensorRegressor(1, loss="poisson", robust="none", solver=TIGHT).fit(data.X, data.y)
    close(mine.coef_, naive_full(theirs.x[:-1], (4, 3), (1, 1)), 1e-4)
    np.testing.assert_allclose(mine.intercept_, theirs.x[-1], atol=1e-4)


@pytest.mark.parametrize(
    ("rank", "expected"), [(1, (1, 1, 1)), (2, (2, 2, 2)), ((1, 2, 2), (1, 2, 2)), (9, (4, 3, 2))]
)
def test_rank_one_for_all_or_one_per_mode(rank, expected):
    data = make_model("I", 100, shape=(4, 3, 2), rng=0)
    model = TensorRegressor(rank, robust="none").fit(data.X, data.y)
    assert model.rank_ == expected
    for k, r in enumerate(expected):  # the tensor itself has these ranks
        unfolded = np.moveaxis(model.coef_, k, 0).reshape(data.X.shape[k + 1], -1)
        assert np.linalg.matrix_rank(unfolded, tol=1e-8) == r


# ------------------------------------------------- weights


def weighted(seed=0):
    X, eta, rng = vectors(120, seed=seed)
    y = eta + rng.standard_t(3, size=len(X))
    return X, y, rng.integers(0, 4, size=len(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weighted_least_squares(fit_intercept):
    X, y, weight = weighted()
    weight = weight + 0.37
    mine = TensorRegressor(1, robust="none", fit_intercept=fit_intercept)
    mine.fit(X, y, sample_weight=weight)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(
        mine.score(X, y, sample_weight=weight), theirs.score(X, y, sample_weight=weight), rtol=1e-8
    )


FIXED = ["none", Huber(1.0), Truncate(1.5), NormClip(2.0), Catoni(3.0)]  # thresholds as given


@pytest.mark.parametrize(
    ("robust", "fit_intercept"), [*((r, True) for r in FIXED), (Truncate(1.5), False)], ids=str
)
def test_integer_weights_are_repeated_rows(robust, fit_intercept):
    X, y, weight = weighted()
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept, solver=TIGHT)
    mine = clone(model).fit(X, y, sample_weight=weight)
    theirs = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    close(mine.coef_, theirs.coef_)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("robust", [*FIXED, "auto", "huber", "truncate"], ids=str)
def test_zero_weights_are_dropped_rows(robust):
    X, y, weight = weighted()
    kept = weight > 0
    X[~kept] *= 50  # would matter a lot
    y[~kept] -= 1000
    model = TensorRegressor(1, robust=robust, solver=TIGHT)
    mine = clone(model).fit(X, y, sample_weight=kept.astype(float))
    theirs = clone(model).fit(X[kept], y[kept])
    tol = 1e-6 if robust in FIXED else 1e-3  # chosen thresholds depend a little on the start
    close(mine.coef_, theirs.coef_, tol)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=tol)


def test_uneven_weights_do_not_break_the_start():
    """Where large weights and large covariates meet, a start that ignored one would explode."""
    X, eta, rng = vectors(300)
    scale = np.exp(rng.normal(size=300) * 2)
    X, y = X * scale[:, None], (eta - 2) * scale + rng.normal(size=300)
    mine = TensorRegressor(1, robust="none").fit(X, y, sample_weight=scale**2)
    close(mine.coef_, LinearRegression().fit(X, y, sample_weight=scale**2).coef_)


# ------------------------------------------------- robustifiers, solvers, starts


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize(
    ("robust", "fit_intercept"),
    [*((name, True) for name in [*NAMES, "truncate:tau=3"]), *((r, False) for r in INSTANCES)],
    ids=str,
)
def test_every_robustifier_finds_the_truth(robust, fit_intercept):
    data = make_model("I", 400, shape=(5, 4), noise="t:3", rng=0)
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(data.X, data.y)
    assert relative_error(model.coef_, data.truth) < 0.15
    assert model.robust_ is not robust
    assert isinstance(model.robust_, Robustifier)
    assert np.ndim(model.intercept_) == 0
    assert (model.intercept_ == 0) == (not fit_intercept)


@pytest.mark.parametrize(
    ("robust", "fit_intercept"), [("none", True), ("none", False), (Huber(1.0), True)], ids=str
)
def test_gradient_descent_and_newton_agree(robust, fit_intercept):
    data = make_model("I", 300, shape=(4, 3), noise="t:3", rng=0)
    options = {"robust": robust, "fit_intercept": fit_intercept}
    newton = TensorRegressor(1, solver="newton", **options).fit(data.X, data.y)
    slow = TensorRegressor(1, solver=GradientDescent(0.05, n_iter=200), **options)
    slow.fit(data.X, data.y)
    assert slow.n_iter_ == 200
    close(slow.coef_, newton.coef_, 1e-3)
    np.testing.assert_allclose(slow.intercept_, newton.intercept_, atol=1e-3)


def test_gradient_descent_by_name():
    data = make_model("I", 100, shape=(4, 3), rng=0)
    model = TensorRegressor(1, solver="gd:step_size=0.01,n_iter=7").fit(data.X, data.y)
    assert model.n_iter_ == len(model.result_.history) == 7
    assert model.result_.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scaled_descent_solves_regressions_too(fit_intercept):
    data = make_model("I", 300, shape=(4, 3), rng=0)
    options = {"robust": "none", "fit_intercept": fit_intercept}
    newton = TensorRegressor(1, solver=TIGHT, **options).fit(data.X, data.y)
    scaled = TensorRegressor(1, solver="scaled", **options).fit(data.X, data.y)
    close(scaled.coef_, newton.coef_, 1e-4)


@pytest.mark.parametrize("init", ["auto", "iht", "spectral", "random"])
def test_every_start_leads_to_the_same_fit(init):
    data = make_model("I", 300, shape=(5, 4), rng=0)
    best = TensorRegressor(1, robust="none", init=data.truth, solver=TIGHT).fit(data.X, data.y)
    model = TensorRegressor(1, robust="none", init=init, random_state=0, solver=TIGHT)
    close(model.fit(data.X, data.y).coef_, best.coef_)


def test_given_start_is_where_the_fit_starts():
    data = make_model("I", 300, shape=(5, 4), rng=0)
    start = Tucker(np.ones((1, 1)), [np.ones((5, 1)), np.ones((4, 1))])
    before = [block.copy() for block in start.blocks]
    first = TensorRegressor(1, robust="none", init=start, solver="gd:step_size=1e-12,n_iter=1")
    np.testing.assert_allclose(first.fit(data.X, data.y).coef_, np.ones((5, 4)), rtol=1e-6)
    assert all((a == b).all() for a, b in zip(before, start.blocks, strict=True))


@pytest.mark.parametrize("tau", [0.5, 2.0, [1.0, 0.3]], ids=str)
def test_truncated_gradients_vanish_at_the_fit(tau):
    """A vector is a length c times a direction u; both of its truncated mean gradients are zero."""
    X, eta, rng = vectors()
    y = eta - 2 + rng.standard_t(3, size=len(X))
    model = TensorRegressor(1, robust=Truncate(tau), solver=TIGHT, fit_intercept=False).fit(X, y)
    c = np.linalg.norm(model.coef_)
    u, residuals = model.coef_ / c, X @ model.coef_ - y
    first, second = tau if isinstance(tau, list) else (tau, tau)
    along = np.clip(residuals * (X @ u), -first, first).mean()
    across = np.clip(residuals[:, None] * X * c, -second, second).mean(axis=0)
    assert abs(along) < 1e-8
    np.testing.assert_allclose(across - u * (u @ across), 0, atol=1e-8)


@pytest.mark.parametrize("tau", [2.0, [1.0, 2.0, 3.0, 4.0]], ids=str)
def test_default_with_its_other_steps_off_is_truncation(tau):
    data = make_model("I", 200, shape=(4, 3), noise="t:3", rng=0)
    mine = TensorRegressor(1, robust=Adaptive(np.inf, np.inf, tau), solver=TIGHT)
    theirs = TensorRegressor(1, robust=Truncate(tau), solver=TIGHT)
    close(mine.fit(data.X, data.y).coef_, theirs.fit(data.X, data.y).coef_, 1e-9)


@pytest.mark.parametrize("robust", ["auto", "huber", "truncate", "normclip", "catoni"])
def test_one_response_may_be_of_any_size(robust):
    data = make_model("I", 200, shape=(4, 3), noise="t:3", rng=0)
    coefs = []
    for wild in (1e6, 1e15):
        data.y[0] = wild
        coefs.append(TensorRegressor(1, robust=robust).fit(data.X, data.y).coef_)
    close(coefs[1], coefs[0], 1e-3)
    assert relative_error(coefs[1], data.truth) < 0.15


def test_huber_start_and_fit_under_very_heavy_tails_beat_least_squares():
    data = make_model("I", 400, shape=(6, 5), noise="t:1.2", rng=1)
    errors = {
        robust: relative_error(
            TensorRegressor(1, robust=robust).fit(data.X, data.y).coef_, data.truth
        )
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 0.1
    assert errors["auto"] < errors["none"] / 2


# ------------------------------------------------- invariances


def problem_data(seed=2):
    point = truth((4, 3, 2), (2, 2, 1), reading="random", rng=1)
    return simulate(point, 100, covariate_order=3, noise="t:2", rng=seed)


@pytest.mark.parametrize(("robust", "c"), [*((robust, -7.0) for robust in SMOOTH), ("auto", 1e-3)])
def test_scaling(robust, c):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    wide, tall = clone(model).fit(c * data.X, data.y), clone(model).fit(data.X, c * data.y)
    close(c * wide.coef_, base.coef_)
    close(tall.coef_ / c, base.coef_)
    np.testing.assert_allclose(wide.intercept_, base.intercept_, rtol=1e-5)
    np.testing.assert_allclose(tall.intercept_ / c, base.intercept_, rtol=1e-5)


@pytest.mark.parametrize("robust", SOME)
def test_shifting_changes_the_intercept_alone(robust):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    far, high = clone(model).fit(data.X + 100, data.y), clone(model).fit(data.X, data.y + 100)
    close(far.coef_, base.coef_)
    close(far.predict(data.X + 100), base.predict(data.X))
    np.testing.assert_allclose(
        far.intercept_, base.intercept_ - 100 * base.coef_.sum(), rtol=1e-6, atol=1e-6
    )
    close(high.coef_, base.coef_)
    close(high.predict(data.X), base.predict(data.X) + 100)


@pytest.mark.parametrize("robust", ["none", "auto", "normclip", Huber(1.0), Truncate(2.0)], ids=str)
def test_order_of_modes_and_samples(robust):
    data = problem_data()
    model = TensorRegressor((2, 2, 1), robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    turned = clone(model).set_params(rank=(1, 2, 2)).fit(data.X.transpose(0, 3, 1, 2), data.y)
    # Starts take one mode after the other, and chosen thresholds depend a little on the start.
    chosen = robust in {"auto", "normclip"}
    close(turned.coef_, base.coef_.transpose(2, 0, 1), 1e-4 if chosen else 1e-6)
    order = np.random.default_rng(0).permutation(len(data.y))
    shuffled = clone(model).fit(data.X[order], data.y[order])
    close(shuffled.coef_, base.coef_)
    np.testing.assert_allclose(shuffled.influence_, base.influence_[order], atol=1e-6)


@pytest.mark.parametrize("robust", ["none", "auto", Truncate(2.0)], ids=str)
def test_order_of_responses(robust):
    point = truth((4, 3, 2), 1, rng=1)
    data = simulate(point, 100, covariate_order=1, noise="t:2", rng=3)
    model = TensorRegressor(1, robust=robust, solver=STABLE)
    base = clone(model).fit(data.X, data.y)
    turned = clone(model).fit(data.X, data.y.transpose(0, 2, 1))
    close(turned.coef_, base.coef_.transpose(0, 2, 1), 1e-4 if robust == "auto" else 1e-6)


# ------------------------------------------------- arrays of all kinds


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize(
    ("robust", "fit_intercept"),
    [*((name, True) for name in NAMES), ("none", False), ("auto", False)],
)
def test_single_precision_stays(robust, fit_intercept):
    data = make_model("II", 150, shape=(4, 3, 2), rng=0)
    X, y = data.X.astype(np.float32), data.y.astype(np.float32)
    model = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(X, y)
    arrays = [model.coef_, model.intercept_, model.covariate_coef_, model.predict(X)]
    assert {a.dtype for a in [*arrays, *model.tucker_.blocks]} == {np.dtype(np.float32)}
    double = TensorRegressor(1, robust=robust, fit_intercept=fit_intercept).fit(data.X, data.y)
    assert double.coef_.dtype == np.float64
    close(model.coef_, double.coef_, 0.02 if robust in {"mom", "rank"} else 1e-3)


def test_single_precision_with_double_extras():
    """X sets the precision; y, covariates, weights and start follow."""
    data = make_model("I", 100, shape=(4, 3), rng=0)
    X, Z = data.X.astype(np.float32), np.random.default_rng(0).normal(size=(100, 2))
    model = TensorRegressor(1, init=data.truth)
    model.fit(X, data.y, covariates=Z, sample_weight=np.ones(100))
    arrays = [model.coef_, model.intercept_, model.covariate_coef_, model.predict(X, Z)]
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}


def test_integers_and_lists():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-5, 6, size=(80, 3, 2)), rng.integers(-9, 9, size=80)
    expected = TensorRegressor(1).fit(X.astype(float), y.astype(float))
    for a, b in [(X, y), (X.tolist(), y.tolist()), (X.astype(np.int8), y.astype(object))]:
        model = TensorRegressor(1).fit(a, b)
        assert model.coef_.dtype == np.float64
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    "arrange",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[::-1].copy()[::-1],
        lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    ],
    ids=["fortran", "strided", "reversed", "samples last"],
)
def test_memory_layout_and_read_only(arrange):
    data = make_model("II", 100, shape=(4, 3, 2), rng=0)
    expected = TensorRegressor(1).fit(data.X, data.y)
    X, y = arrange(data.X), arrange(data.y)
    X.flags.writeable = y.flags.writeable = False
    model = TensorRegressor(1).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), expected.predict(data.X), rtol=1e-9)


def test_fit_leaves_its_input_alone():
    data = make_model("I", 100, shape=(4, 3), noise="t:2", rng=0)
    X, y = data.X.copy(), data.y.copy()
    Z, weight = np.ones((100, 1)), np.full(100, 2.0)
    TensorRegressor(1).fit(X, y, covariates=Z, sample_weight=weight).predict(X, Z)
    TensorClassifier(1, robust="none").fit(X, y > 0)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    assert (Z == 1).all()
    assert (weight == 2).all()
    Y = make_model("IV", 5, shape=(4, 3), rng=0).y
    Y[0, 0, 0] = np.nan
    before = Y.copy()
    TensorPCA(1, replicates=True).fit(Y)
    np.testing.assert_array_equal(Y, before)


# ------------------------------------------------- the scikit-learn protocol


def test_fit_leaves_its_parameters_alone():
    data = make_model("I", 100, shape=(4, 3), rng=0)
    robust, solver = Truncate(), Newton(n_iter=40, tol=1e-4)
    model = TensorRegressor(1, robust=robust, solver=solver, init=data.truth, random_state=3)
    before = {**model.get_params()}
    model.fit(data.X, data.y)
    after = model.get_params()
    assert before.keys() == after.keys()
    assert all(after[key] is before[key] for key in before)
    assert vars(robust) == {"tau": "auto"}
    assert vars(solver) == {"n_iter": 40, "tol": 1e-4}


def test_cross_validated_threshold_stays_a_request():
    data = make_model("I", 60, shape=(3, 2), noise="t:3", rng=0)
    robust = Truncate("cv")
    model = TensorRegressor(1, robust=robust).fit(data.X, data.y)
    assert robust.tau == "cv"
    assert model.robust is robust
    assert model.robust_.tau_ == model.cv_results_.tau


def test_clone_and_nested_parameters():
    model = TensorRegressor(2, robust=Truncate(1.0), loss="huber", solver=Newton(n_iter=9))
    copy = clone(model)
    assert copy.robust is not model.robust
    assert copy.get_params()["robust__tau"] == 1.0
    copy.set_params(robust__tau=3.0, solver__n_iter=5, rank=1)
    assert (copy.robust.tau, copy.solver.n_iter, copy.rank) == (3.0, 5, 1)
    assert (model.robust.tau, model.solver.n_iter, model.rank) == (1.0, 9, 2)


def test_grid_search_over_rank_and_threshold():
    """On 4-D X; the chosen threshold and rank must be the ones that cross-validate best."""
    point = truth((3, 3, 2), 2, reading="random", norm=4.0, rng=1)
    data = simulate(point, 150, covariate_order=3, noise="t:3", rng=1)
    grid = {"rank": [1, 2], "robust__tau": [5.0, 50.0]}
    model = TensorRegressor(1, robust=Truncate())
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(data.X, data.y)
    scores = {
        (rank, tau): np.mean(
            cross_val_score(
                clone(model).set_params(rank=rank, robust__tau=tau), data.X, data.y, cv=3
            )
        )
        for rank in grid["rank"]
        for tau in grid["robust__tau"]
    }
    assert len(set(scores.values())) == len(scores)  # each setting is another fit
    best = search.best_params_
    assert (best["rank"], best["robust__tau"]) == max(scores, key=scores.get)
    assert best["rank"] == 2
    assert search.best_estimator_.robust_.tau_ == best["robust__tau"]
    assert search.predict(data.X).shape == (150,)


def test_cross_validation_of_classifiers():
    data = make_model("III", 200, shape=(4, 3), rng=0)
    scores = cross_val_score(TensorClassifier(1, robust="none"), data.X, data.y, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.6


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize("robust", ["none", "auto", "truncate", "rank"])
def test_a_second_fit_is_the_same(robust):
    data = make_model("I", 100, shape=(4, 3), noise="t:2", rng=0)
    model = TensorRegressor(1, robust=robust).fit(data.X, data.y)
    first = model.coef_.copy()
    model.fit(data.X[:50], data.y[:50])
    assert model.influence_.shape == (50,)
    np.testing.assert_array_equal(model.fit(data.X, data.y).coef_, first)
    np.testing.assert_array_equal(clone(model).fit(data.X, data.y).coef_, first)


def test_random_start_follows_random_state():
    data = make_model("I", 100, shape=(4, 3), rng=0)

    def one_step(state):
        model = TensorRegressor(1, init="random", random_state=state, solver="gd:n_iter=1")
        return model.fit(data.X, data.y).coef_

    np.testing.assert_array_equal(one_step(0), one_step(0))
    assert np.abs(one_step(0) - one_step(1)).max() > 0.01
    np.testing.assert_array_equal(one_step(np.random.default_rng(0)), one_step(0))
    np.testing.assert_array_equal(one_step(None), one_step(None))


@pytest.mark.parametrize("x_shape", [(4,), (2, 3, 2)])
@pytest.mark.parametrize("y_shape", [(), (1,), (2, 3)])
def test_shapes(x_shape, y_shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, *x_shape)), rng.normal(size=(60, *y_shape))
    model = TensorRegressor(1, robust="none").fit(X, y)
    assert model.coef_.shape == x_shape + y_shape
    assert model.intercept_.shape == y_shape
    assert model.covariate_coef_.shape == (0, *y_shape)
    assert model.rank_ == (1,) * len(x_shape + y_shape)
    assert model.influence_.shape == (60,)
    assert model.n_features_in_ == x_shape[0]
    assert model.predict(X).shape == y.shape
    assert model.predict(X[:1]).shape == (1, *y_shape)
    assert isinstance(model.score(X, y), float)
    naive = np.tensordot(X, model.coef_, axes=len(x_shape)) + model.intercept_
    np.testing.assert_allclose(model.predict(X), naive, atol=1e-10)


def test_score_is_the_mean_share_of_variance_explained():
    data = make_model("II", 100, shape=(4, 3, 2), noise="t:3", rng=0)
    model = TensorRegressor(1).fit(data.X, data.y)
    rest = ((data.y - model.predict(data.X)) ** 2).sum(axis=0)
    total = ((data.y - data.y.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(model.score(data.X, data.y), np.mean(1 - rest / total))


# ------------------------------------------------- what a fit reports


@pytest.mark.parametrize("model", ["I", "II"])
@pytest.mark.parametrize("kind", ["adversarial", "random"])
def test_influence_points_at_the_outliers(model, kind):
    data = make_model(model, 400, shape=(5, 4, 3), contamination=0.1, kind=kind, rng=0)
    fitted = TensorRegressor(1).fit(data.X, data.y)
    assert ((fitted.influence_ >= 0) & (fitted.influence_ <= 1)).all()
    bad, good = fitted.influence_[data.outliers], fitted.influence_[~data.outliers]
    assert bad.mean() > 2 * good.mean()
    assert roc_auc_score(data.outliers, fitted.influence_) > 0.85
    assert (TensorRegressor(1, robust="none").fit(data.X, data.y).influence_ == 0).all()


def test_influence_points_at_bad_replicates():
    data = make_model("IV", 60, shape=(5, 4, 3), rng=0)
    data.y[7] *= 40
    influence = TensorPCA(1, replicates=True).fit(data.y).influence_
    assert influence.argmax() == 7


def test_early_stop_is_said_in_words():
    data = make_model("I", 100, shape=(4, 3), noise="t:1.5", rng=0)
    model = TensorRegressor(1, solver=Newton(n_iter=1))
    words = r"TensorRegressor stopped early: not converged in 1 iterations.*larger n_iter"
    with pytest.warns(ConvergenceWarning, match=words) as record:
        model.fit(data.X, data.y)
    assert record[0].filename == __file__  # the line that called fit
    assert not model.result_.converged
    assert model.n_iter_ == 1
    assert np.isfinite(model.coef_).all()


def test_divergence_is_said_in_words():
    data = make_model("I", 100, shape=(4, 3), rng=0)
    model = TensorRegressor(1, solver=GradientDescent(step_size=1e3))
    with pytest.warns(ConvergenceWarning, match=r"diverged at iteration \d+.*smaller step"):
        model.fit(data.X, data.y)
    assert np.isfinite(model.coef_).all()


def test_verbose_writes_lines_to_standard_error(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # as if it were not installed
    data = make_model("I", 100, shape=(4, 3), rng=0)
    TensorRegressor(1).fit(data.X, data.y)
    assert capsys.readouterr() == ("", "")
    model = TensorRegressor(1, verbose=1).fit(data.X, data.y)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) >= model.n_iter_
    assert all(line.startswith("iteration") for line in lines)
    last = model.result_.history[-1]
    assert f"loss {last.value:.6g}" in lines[-1]
    TensorPCA(1, verbose=1).fit(data.X[0])
    assert "iteration    1" in capsys.readouterr().err


def test_thresholds_in_use_are_kept():
    data = make_model("I", 100, shape=(4, 3), noise="t:2", rng=0)
    model = TensorRegressor(1, robust="huber").fit(data.X, data.y)
    residuals = np.abs(data.y - model.predict(data.X))
    # 1.345 robust standard deviations of the residuals, at the fit before the last
    np.testing.assert_allclose(model.robust_.nu_, 1.345 * 1.4826 * np.median(residuals), rtol=0.05)
    assert len(TensorRegressor(1, robust="truncate").fit(data.X, data.y).robust_.tau_) == 4


# ------------------------------------------------- classes


def labels(n=300, p=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = X @ rng.normal(size=(p, classes)) * 0.7 + 0.3 * np.arange(classes)
    return X, np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)


def skewed(p=20, missing=0.0, seed=0):
    """A tensor of rank 2 in noise that is shifted exponential: of mean 3, and median 3 - 0.31."""
    rng = np.random.default_rng(seed)
    factors = [np.linalg.qr(rng.normal(size=(p, 2)))[0] for _ in range(3)]
    core = np.zeros((2, 2, 2))
    core[[0, 1], [0, 1], [0, 1]] = 60.0, 40.0
    A = np.einsum("abc,ia,jb,kc->ijk", core, *factors)
    Y = A + 3 + rng.exponential(size=A.shape) - 1
    Y[rng.random(Y.shape) < missing] = np.nan
    return A, Y


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_offset_of_skewed_noise(missing):
    A, Y = skewed(missing=missing)
    model = TensorPCA(2, offset=True).fit(Y)
    plain = TensorPCA(2).fit(Y)
    assert 2 < model.offset_ < 3  # between the mode and the mean of the noise
    error, worse = (np.linalg.norm(m.low_rank_ - A) / np.linalg.norm(A) for m in (model, plain))
    assert error < 0.15
    assert worse > 3 * error
    assert plain.offset_ == 0.0


def test_offset_is_the_root_of_the_bent_residuals():
    Y = skewed()[1]
    model = TensorPCA(2, offset=True, robust="huber:nu=0.5", solver="scaled:tol=1e-8").fit(Y)
    bent = np.clip(Y - model.low_rank_ - model.offset_, -0.5, 0.5)
    assert abs(bent.mean()) < 0.01


def test_offset_is_taken_from_the_data_and_given_back():
    _, Y = skewed(8)
    copies = np.stack([Y, Y + 0.1, Y - 0.1, Y])
    options = {"replicates": True, "robust": "none", "solver": "scaled:tol=1e-12"}
    model = TensorPCA(2, offset=True, **options).fit(copies)
    shifted = TensorPCA(2, **options).fit(copies - model.offset_)
    np.testing.assert_allclose(model.low_rank_, shifted.low_rank_, atol=1e-8)
    scores = model.transform(Y)
    np.testing.assert_allclose(
        scores, multi_mode_dot(Y - model.offset_, [u.T for u in model.tucker_.factors])
    )
    back = multi_mode_dot(scores, model.tucker_.factors) + model.offset_
    np.testing.assert_allclose(model.inverse_transform(scores), back)
    widths = [
        m.confidence_intervals(c).stderr
        for m, c in ((model, copies), (shifted, copies - model.offset_))
    ]
    np.testing.assert_allclose(*widths, rtol=1e-6)


LIKELIHOOD = {"robust": "none", "solver": TIGHT, "reduce_bias": False}


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_binary_is_logistic_regression(fit_intercept):
    X, y = labels()
    mine = TensorClassifier(1, fit_intercept=fit_intercept, **LIKELIHOOD).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)
    theirs.fit(X, y)
    close(mine.coef_, theirs.coef_[0], 1e-5)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_[0], atol=1e-5)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.score(X, y), theirs.score(X, y))


@pytest.mark.parametrize("classes", [3, 4])
def test_multinomial_is_logistic_regression(classes):
    X, y = labels(200, p=3, classes=classes)
    mine = TensorClassifier(99, robust="none", reduce_bias=False).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


def test_multinomial_of_two_classes_is_binary():
    X, y = labels()
    two = TensorClassifier(99, loss="multinomial", robust="none").fit(X, y)
    one = TensorClassifier(1, robust="none").fit(X, y)
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-4)


def test_weighted_classes():
    X, y = labels()
    weight = np.random.default_rng(1).uniform(0.5, 3, size=len(y))
    mine = TensorClassifier(1, **LIKELIHOOD).fit(X, y, sample_weight=weight)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    theirs.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("class_weight", "weighted_samples"),
    [("balanced", False), ({"a": 1.0, "b": 5.0}, False), ({"a": 1.0, "b": 5.0}, True)],
    ids=str,
)
def test_class_weights(class_weight, weighted_samples):
    X, y = labels(seed=3)
    y = np.where(y > 0, "b", "a")
    weight = np.random.default_rng(1).uniform(0.5, 3, size=len(y)) if weighted_samples else None
    mine = TensorClassifier(1, class_weight=class_weight, **LIKELIHOOD)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, class_weight=class_weight)
    for model in (mine, theirs):
        model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_classifier_with_covariates():
    X, y = labels()
    mine = TensorClassifier(1, **LIKELIHOOD).fit(X[:, :2], y, covariates=X[:, 2:])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    probabilities = mine.predict_proba(X[:, :2], X[:, 2:])
    np.testing.assert_allclose(probabilities, theirs.predict_proba(X), atol=1e-6)


def test_low_rank_logistic_is_the_naive_minimum():
    point = truth((4, 3), 1, norm=2.0)
    data = simulate(point, 300, covariate_order=2, loss="logistic", rng=7)

    def deviance(vector):
        eta = data.X.reshape(300, -1) @ naive_full(vector[:-1], (4, 3), (1, 1)).ravel() + vector[-1]
        return np.mean(np.log1p(np.exp(eta)) - data.y * eta)

    theirs = minimize(deviance, np.append(flat(point), 0.0), method="BFGS", options={"gtol": 1e-7})
    mine = TensorClassifier(1, **LIKELIHOOD).fit(data.X, data.y)
    close(mine.coef_, naive_full(theirs.x[:-1], (4, 3), (1, 1)), 1e-4)
    np.testing.assert_allclose(mine.intercept_, theirs.x[-1], atol=1e-4)


@pytest.mark.parametrize(
    "names",
    [["yes", "no"], [True, False], [3, -1], ["b", "a", "c"], [2.0, 0.0, 1.0]],
    ids=str,
)
def test_labels_of_any_kind(names):
    X, y = labels(classes=len(names))
    names = np.array(names)
    model = TensorClassifier(len(names), robust="none").fit(X, names[y])
    assert model.classes_.tolist() == sorted(names.tolist())
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert set(predicted) <= set(names)
    plain = TensorClassifier(len(names), robust="none").fit(X, np.argsort(np.argsort(names))[y])
    np.testing.assert_array_equal(predicted, model.classes_[plain.predict(X)])
    best = np.unique(y, return_counts=True)[1].max() / len(y)
    assert model.score(X, names[y]) > best


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@pytest.mark.parametrize("classes", [2, 3])
def test_shapes_of_class_predictions(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3, 2))
    y = (np.arange(120) + (X[:, 0, 0] > 0.5)) % classes
    model = TensorClassifier(1, robust="none").fit(X, y)
    probabilities, decision = model.predict_proba(X), model.decision_function(X)
    assert probabilities.shape == (120, classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert (probabilities >= 0).all()
    if classes == 2:
        assert decision.shape == (120,)
        np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    else:
        assert decision.shape == (120, 3)
        assert model.coef_.shape == (3, 2, 3)
        np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])


@pytest.mark.parametrize("seed", range(3))
def test_robust_classifier_on_clean_data_is_not_much_worse_than_likelihood(seed):
    data = make_model("III", 500, shape=(5, 4), rng=seed)
    errors = {
        robust: relative_error(
            TensorClassifier(1, robust=robust).fit(data.X, data.y).coef_, data.truth
        )
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 1.5 * errors["none"], errors


@pytest.mark.parametrize("seed", range(3))
def test_robust_classifier_under_contamination(seed):
    """Flipped labels on large covariates: the direction of A must survive, least squares' not."""
    data = make_model("III", 500, shape=(5, 4), contamination=0.05, rng=seed)
    target = data.truth.full() / data.truth.norm()
    cosines = {}
    for robust in ("auto", "none"):
        coef = TensorClassifier(1, robust=robust).fit(data.X, data.y).coef_
        cosines[robust] = float(np.sum(coef * target) / np.linalg.norm(coef))
    assert cosines["auto"] > 0.9, cosines
    assert cosines["auto"] > cosines["none"], cosines


# ------------------------------------------------- PCA


@pytest.mark.parametrize(
    ("shape", "rank"),
    [
        ((8, 7), (2, 2)),
        ((8, 7, 6), (2, 2, 2)),
        ((7, 6, 5), (1, 2, 2)),
        ((5, 4, 4, 3), (2, 2, 1, 2)),
    ],
)
def test_pca_of_one_tensor_is_hooi(shape, rank):
    rng = np.random.default_rng(0)
    point = truth(shape, rank, reading="random", norm=25.0, rng=1)
    Y = point.full() + rng.normal(size=shape)
    mine = TensorPCA(rank, robust="none").fit(Y)
    theirs = tl.tucker_to_tensor(tucker(tl.tensor(Y), list(rank), n_iter_max=2000, tol=1e-15))
    close(mine.low_rank_, theirs, 1e-5)
    np.testing.assert_array_equal(mine.low_rank_, mine.coef_)
    for u in mine.tucker_.factors:
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-10)


def test_pca_of_replicates_is_hooi_of_their_mean():
    data = make_model("IV", 30, shape=(6, 5, 4), rng=0)
    mine = TensorPCA(1, robust="none", replicates=True).fit(data.y)
    mean = tl.tensor(data.y.mean(axis=0))
    theirs = tl.tucker_to_tensor(tucker(mean, [1, 1, 1], n_iter_max=2000, tol=1e-15))
    close(mine.low_rank_, theirs, 1e-5)
    assert mine.influence_.shape == (30,)


def naive_pca(Y, start, *, nu=np.inf):
    """Fit by scipy the entries of core and factors to the observed entries of tensors."""
    seen = ~np.isnan(Y)
    options = {} if np.isinf(nu) else {"loss": "huber", "f_scale": nu}
    tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)

    def residuals(vector):
        return (naive_full(vector, start.shape, start.rank)[None] - Y)[seen]

    fit = least_squares(residuals, flat(start), max_nfev=2000, **tight, **options)
    return naive_full(fit.x, start.shape, start.rank)


@pytest.mark.parametrize("copies", [1, 6])
@pytest.mark.parametrize(
    ("missing", "nu", "solver"),
    [
        (0.0, 0.8, "scaled:n_iter=2000,tol=1e-7"),
        (0.3, np.inf, "scaled:n_iter=2000,tol=1e-7"),
        (0.3, 0.8, "scaled:n_iter=2000,tol=1e-7"),
        (0.3, 0.8, "newton:n_iter=300,tol=1e-8"),
    ],
)
def test_pca_is_the_naive_minimum(copies, missing, nu, solver):
    rng = np.random.default_rng(3)
    point = truth((5, 4, 3), (2, 2, 1), reading="random", norm=30.0, rng=1)
    Y = point.full() + 0.5 * rng.standard_t(3, size=(copies, 5, 4, 3))
    Y[rng.random(Y.shape) < missing] = np.nan
    mine = TensorPCA((2, 2, 1), robust=Huber(nu), replicates=True, solver=solver).fit(Y)
    close(mine.low_rank_, naive_pca(Y, point, nu=nu), 1e-4)


@pytest.mark.parametrize("robust", ["none", "auto"])
@pytest.mark.parametrize(("shape", "rank"), [((20, 15), 2), ((10, 9, 8), 2), ((6, 6, 5, 5), 1)])
def test_pca_without_a_third_of_the_entries(shape, rank, robust):
    rng = np.random.default_rng(0)
    point = truth(shape, rank, reading="random", norm=40.0, rng=1)
    Y = point.full() + 0.3 * rng.normal(size=shape)
    holes = np.where(rng.random(shape) < 0.3, np.nan, Y)
    complete = TensorPCA(rank, robust=robust).fit(Y)
    mine = TensorPCA(rank, robust=robust).fit(holes)
    error = relative_error(complete.low_rank_, point)
    assert relative_error(mine.low_rank_, complete.low_rank_) < 1.5 * error
    assert relative_error(mine.low_rank_, point) < 2 * error


def test_pca_with_whole_blocks_missing():
    """Where most of some rows is missing, the steps must still not overshoot in the others."""
    rng = np.random.default_rng(0)
    point = truth((12, 10), 1, norm=30.0)
    Y = point.full() + 0.1 * rng.normal(size=(12, 10))
    Y[3:, 3:] = np.nan
    mine = TensorPCA(1, robust="none", solver="scaled:n_iter=2000,tol=1e-8").fit(Y)
    close(mine.low_rank_, naive_pca(Y[None], point), 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_pca_of_heavy_tailed_replicates(seed):
    data = make_model("IV", 40, shape=(6, 5, 4), noise="t:1.2", rng=seed)
    errors = {
        robust: relative_error(
            TensorPCA(1, robust=robust, replicates=True).fit(data.y).low_rank_, data.truth
        )
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 0.6, errors
    assert errors["auto"] < errors["none"] / 3, errors


def test_pca_of_one_tensor_with_wild_entries():
    rng = np.random.default_rng(0)
    point = truth((12, 10, 8), 1, norm=60.0)
    Y = point.full() + rng.standard_t(1.2, size=(12, 10, 8))
    errors = {
        robust: relative_error(TensorPCA(1, robust=robust).fit(Y).low_rank_, point)
        for robust in ("auto", "none")
    }
    assert errors["auto"] < 0.15, errors
    assert errors["auto"] < errors["none"] / 2, errors


def test_transform_projects_and_inverse_transform_lifts():
    data = make_model("IV", 10, shape=(6, 5, 4), rng=0)
    model = TensorPCA((2, 1, 2), replicates=True).fit(data.y)
    scores = model.transform(data.y)
    assert scores.shape == (10, 2, 1, 2)
    u, v, w = model.tucker_.factors
    np.testing.assert_allclose(scores, np.einsum("nijk,ia,jb,kc->nabc", data.y, u, v, w))
    np.testing.assert_allclose(model.transform(data.y[3]), scores[3])
    lifted = model.inverse_transform(scores)
    assert lifted.shape == data.y.shape
    np.testing.assert_allclose(lifted, np.einsum("nabc,ia,jb,kc->nijk", scores, u, v, w))
    np.testing.assert_allclose(model.transform(lifted), scores, atol=1e-10)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(model.low_rank_)), model.low_rank_, atol=1e-10
    )
    np.testing.assert_allclose(model.transform(model.low_rank_), model.tucker_.core, atol=1e-10)


def test_pca_fit_transform_and_single_precision():
    data = make_model("IV", 10, shape=(6, 5, 4), rng=0)
    model = TensorPCA(1, replicates=True)
    scores = model.fit_transform(data.y.astype(np.float32))
    assert scores.shape == (10, 1, 1, 1)
    assert {model.low_rank_.dtype, scores.dtype} == {np.dtype(np.float32)}
    assert not hasattr(model, "intercept_")


@pytest.mark.parametrize("robust", ["none", "auto", "huber", "normclip"])
def test_pca_invariances(robust):
    data = make_model("IV", 30, shape=(4, 3, 2), noise="t:2", rng=0)
    model = TensorPCA(1, robust=robust, replicates=True, solver="scaled:tol=1e-7,n_iter=2000")
    base = clone(model).fit(data.y).low_rank_
    close(clone(model).fit(-100 * data.y).low_rank_, -100 * base, 1e-5)
    close(clone(model).fit(data.y.transpose(0, 2, 3, 1)).low_rank_, base.transpose(1, 2, 0), 1e-5)
    order = np.random.default_rng(0).permutation(30)
    close(clone(model).fit(data.y[order]).low_rank_, base, 1e-5)


@pytest.mark.parametrize("init", ["auto", "decompose", "random"])
def test_pca_from_every_start(init):
    data = make_model("IV", 30, shape=(6, 5, 4), rng=0)
    best = TensorPCA(1, robust="none", replicates=True, init=data.truth).fit(data.y)
    model = TensorPCA(1, robust="none", replicates=True, init=init, random_state=1).fit(data.y)
    close(model.low_rank_, best.low_rank_, 1e-5)


def test_decision_function_of_a_softmax_of_two_classes_is_their_log_odds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3, 2))
    y = (X[:, 0, 0] + 0.5 * rng.normal(size=80) > 0).astype(int)
    model = TensorClassifier(1, loss="multinomial").fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(proba[:, 1] / proba[:, 0]))
