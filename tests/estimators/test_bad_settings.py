"""Bad ranks, names, thresholds and starts are refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from broken import LABELS, MODELS, SHAPE, WRONG, N, X, Y, fit, settled
from tauten import TensorClassifier, TensorRegressor, Tucker
from tauten.losses import Huber as HuberLoss
from tauten.robust import Adaptive, Catoni, Huber, MedianOfMeans, NormClip, Shrink, Truncate
from tauten.solver import GradientDescent, Newton
from tauten.tucker import Affine


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (0, "rank must be at least 1; got 0"),
        (-2, "rank must be at least 1; got -2"),
        ((5, 1), "rank of mode 1 must be .* from 1 to its dimension 4; got 5"),
        ((1, 4), "rank of mode 2 (must be .* dimension 3; got 4|is 4, larger)"),
        ((2, 1), "rank of mode 1 is 2, larger than the product 1 of the others"),
        ((1, 3), "rank of mode 2 is 3, larger than the product 1 of the others"),
        ((1,), r"rank must have one entry per mode .* \(4, 3\)"),
        ((1, 1, 1), r"rank must have one entry per mode .* \(4, 3\)"),
        ((), r"rank must have one entry per mode"),
        ((0, 1), "rank of mode 1 must be"),
        ((1, 0), "rank of mode [12] "),
        ((1, -1), "rank of mode [12] "),
        (1.0, "rank must be an int"),
        (1.5, "rank must be an int"),
        (np.nan, "rank must be an int"),
        ((1.5, 1), "rank must be an int or one int per mode"),
        ((np.nan, 1), "rank must be an int or one int per mode"),
        ((np.inf, 1), "rank must be an int or one int per mode"),
        ("2", "rank must be an int"),
        (("1", "1"), "rank must be an int or one int per mode"),
        ((None, 1), "rank must be an int or one int per mode"),
        ([[1, 1], [1, 1]], "rank must be an int or one int per mode"),
        (None, "rank must be an int"),
        (True, "rank must be an int"),
        ({1, 2}, "rank must be an int"),
    ],
    ids=str,
)
def test_rank(model, rank, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        fit(model, X[0] if model == "pca" else X, rank=rank)


def test_rank_counts_the_modes_of_the_responses():
    with pytest.raises(ValueError, match=r"one entry per mode .* \(4, 3, 2\) .*response modes"):
        TensorRegressor((1, 1)).fit(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"robust": "trunkate"}, "robust.* 'trunkate'.*did you mean 'truncate'"),
        ({"robust": None}, "robust.* must be a name .*NoneType"),
        ({"robust": 3}, "robust.* must be a name .*int"),
        ({"robust": Truncate}, "robust.* must be a name .* or a Robustifier instance; got type"),
        ({"robust": "truncate:tou=1"}, "'tou=1' is not a parameter of 'truncate'.*tau"),
        ({"robust": "truncate:tau"}, "'tau' is not a parameter of 'truncate'.*key=value"),
        ({"init": "ihtt"}, "init must be .*'ihtt'"),
        ({"init": None}, "init must be .*None"),
        ({"init": ["iht"]}, "init must be"),
        ({"init": np.ones(SHAPE)}, "init must be"),
        ({"solver": "newtn"}, "solver 'newtn'.*did you mean 'newton'"),
        ({"solver": None}, "solver must be a name .*NoneType"),
        ({"solver": Newton}, "solver must be a name .* or a Solver instance; got type"),
    ],
    ids=str,
)
def test_unknown_names(model, parameters, message):
    with pytest.raises(WRONG, match=f"(?s){message}"):
        fit(model, X[0] if model == "pca" else X, **parameters)


@pytest.mark.parametrize("model", ["regressor", "classifier"])
@pytest.mark.parametrize("loss", ["sqared", None, 3])
def test_unknown_losses(model, loss):
    with pytest.raises(WRONG, match=r"loss.*squared"):
        fit(model, X, loss=loss)


def test_losses_of_the_other_kind():
    with pytest.raises(ValueError, match="loss 'logistic' is for classes: use TensorClassifier"):
        TensorRegressor(1, loss="logistic").fit(X, LABELS)
    with pytest.raises(ValueError, match="loss 'logistic' takes two classes; y holds 3"):
        TensorClassifier(1, loss="logistic").fit(X, np.arange(N) % 3)
    for loss in ("squared", "poisson", "gamma", "huber"):
        with pytest.raises(ValueError, match=r"loss.*(class|TensorRegressor)"):
            TensorClassifier(1, loss=loss).fit(X, LABELS)


@pytest.mark.parametrize(
    ("robust", "message"),
    [
        (Truncate(-1.0), "tau must be positive .*got -1"),
        (Truncate(0), "tau must be positive .*got 0"),
        (Truncate(np.nan), "tau must be positive .*got nan"),
        (Truncate("small"), "tau must be .*'small'"),
        (Truncate(None), "tau must be a positive number.*None"),
        (Truncate([1.0, 2.0]), "tau must be .*one entry per block .*4 here; got 2"),
        (Truncate([1.0, 1.0, 1.0, -1.0]), "tau must be positive in every block; got -1"),
        ("truncate:tau=-1", "tau must be positive .*got -1"),
        (NormClip(-1.0), "tau must be positive"),
        (Catoni(0.0), "tau must be positive"),
        (Huber(-1.0), "nu must be positive .*got -1"),
        (Huber("x"), "nu must be a positive number"),
        (Shrink(0.0), "omega must be positive .*got 0"),
        (Adaptive(nu=-1.0), "nu must be positive"),
        (Adaptive(tau=-1.0), "tau must be positive"),
        (Adaptive(omega=-1.0), "omega must be positive"),
        (MedianOfMeans(0), "n_blocks must be .* from 1 to the number of samples, 60; got 0"),
        (MedianOfMeans(61), "n_blocks must be .* from 1 to the number of samples, 60; got 61"),
        (MedianOfMeans(2.5), "n_blocks must be a whole number .*2.5"),
        (MedianOfMeans("a"), "n_blocks must be a whole number"),
    ],
    ids=str,
)
def test_thresholds(robust, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        TensorRegressor(1, robust=robust).fit(X, Y)


def test_threshold_of_the_huber_loss():
    with pytest.raises(ValueError, match="nu must be positive"):
        TensorRegressor(1, loss=HuberLoss(-1.0), robust="none").fit(X, Y)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (Newton(n_iter=-1), "n_iter must"),
        (Newton(n_iter=2.5), "n_iter must"),
        (Newton(n_iter="many"), "n_iter must"),
        (Newton(tol=-1.0), "tol must"),
        (Newton(tol="tiny"), "tol must"),
        (GradientDescent(step_size=-1.0), "step_size must"),
        (GradientDescent(step_size=0.0), "step_size must"),
        (GradientDescent(b=0.0), "b must"),
        (GradientDescent(a=-1.0), "a must"),
    ],
    ids=str,
)
def test_solver_settings(solver, message):
    with pytest.raises(WRONG, match=f"^{message}"):
        TensorRegressor(1, solver=solver).fit(X, Y)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 4), r"init must have the shape \(4, 3\) .*got \(3, 4\)"),
        ((4, 3, 2), r"init must have the shape \(4, 3\) .*got \(4, 3, 2\)"),
    ],
)
def test_start_of_another_shape(shape, message):
    start = Tucker(np.ones((1,) * len(shape)), [np.ones((p, 1)) for p in shape])
    for model in MODELS:
        with pytest.raises(ValueError, match=f"^{message}"):
            fit(model, X[0] if model == "pca" else X, init=start)


def test_start_with_nan_or_too_many_columns():
    nan = Tucker(np.full((1, 1), np.nan), [np.ones((4, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match="init must be finite"):
        TensorRegressor(1, init=nan).fit(X, Y)
    wide = Tucker(np.ones((5, 1)), [np.ones((4, 5)), np.ones((3, 1))])
    with pytest.raises(ValueError, match=r"init must have the ranks asked for, .*got .5, 1"):
        TensorRegressor(1, init=wide).fit(X, Y)


def test_start_at_zero_or_of_lower_rank_is_left():
    """Neither is a point to stay at, and neither may divide by zero."""
    expected = TensorRegressor(1, robust="none").fit(X, Y).coef_
    zero = Tucker(np.zeros((1, 1)), [np.ones((4, 1)), np.ones((3, 1))])
    fitted = TensorRegressor(1, robust="none", init=zero).fit(X, Y)
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-3)
    flat = Tucker(np.ones((2, 2)), [np.ones((4, 2)), np.ones((3, 2))])
    assert settled(TensorRegressor(2, robust="none", init=flat).fit(X, Y))


@pytest.mark.parametrize(("intercept", "rows"), [(True, 3), (False, 1)])
def test_vector_coefficients_of_a_start_that_do_not_fit(intercept, rows):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4, 3)), rng.normal(size=30)
    start = Affine(np.ones((1, 1)), (np.ones((4, 1)), np.ones((3, 1))), np.zeros(rows))
    with pytest.raises(ValueError, match="init must have vector coefficients"):
        TensorRegressor(1, init=start, fit_intercept=intercept).fit(X, y)
