"""The scikit-learn protocol."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from fits import NO_CONVERGENCE
from tauten import TensorClassifier, TensorRegressor
from tauten.datasets import make_model, simulate, truth
from tauten.robust import Truncate
from tauten.solver import Newton


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
