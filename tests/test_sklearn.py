"""scikit-learn citizenship: its own checks, pipelines, searches, routing, tables, labels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import xarray as xr
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import tauten as tt
from tauten.datasets import make_model
from tauten.robust import Adaptive, Truncate
from tauten.solver import Newton, ScaledDescent

DAY = np.timedelta64(1, "D")
NO_CONVERGENCE = "ignore::sklearn.exceptions.ConvergenceWarning"

# ------------------------------------------------- scikit-learn's own checks

# The check leaves about as many samples as coefficients, and 'auto' chooses thresholds from samples
# each counted once: a weight is a sample's importance, not a count. On data that determine the fit,
# weights equal repetitions: estimators.test_weights.test_integer_weights_are_repeated_rows.
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "weights are not counts for thresholds"}
# One tensor is decomposed: its first axis is a mode like the others, there are no samples.
NO_SAMPLES = dict.fromkeys(
    [
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit_idempotent",
        "check_fit2d_predict1d",
    ],
    "without replicates, axis 0 is a mode of the one tensor, so other numbers of rows are refused",
) | {"check_fit1d": "a vector is a tensor of order 1"}
ONE_TENSOR = {"check_fit2d_predict1d": "one tensor without its axis of samples may be transformed"}

ESTIMATORS = [
    (tt.TensorRegressor(), WEIGHTS),
    (tt.TensorClassifier(solver=Newton(n_iter=5)), WEIGHTS),
    (tt.TensorPCA(), NO_SAMPLES),
    (tt.TensorPCA(replicates=True, solver=ScaledDescent(n_iter=20)), ONE_TENSOR),
    (tt.TensorScaler(), {}),
    (tt.TensorScaler("tensor"), {}),
    (tt.Tensorize(), {}),
]
# To convergence, on clusters that are separable and centred at zero: many iterations.
SLOW = [(tt.TensorClassifier(), WEIGHTS), (tt.TensorPCA(replicates=True), ONE_TENSOR)]


def failures(pairs):
    expected = {repr(estimator): known for estimator, known in pairs}
    return lambda estimator: expected[repr(estimator)]


@pytest.mark.filterwarnings(NO_CONVERGENCE)
@parametrize_with_checks(
    [estimator for estimator, _ in ESTIMATORS], expected_failed_checks=failures(ESTIMATORS)
)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings(NO_CONVERGENCE)
@parametrize_with_checks(
    [estimator for estimator, _ in SLOW], expected_failed_checks=failures(SLOW)
)
def test_checks_of_the_defaults(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [e for e, _ in ESTIMATORS], ids=lambda e: type(e).__name__)
def test_notebooks_show_the_estimator(estimator):
    assert type(estimator).__name__ in estimator._repr_html_()


def test_notebooks_show_what_was_set():
    page = tt.TensorRegressor(rank=3, robust="truncate:tau=2")._repr_html_()
    assert "rank" in page
    assert "truncate:tau=2" in page


def test_tags():
    tags = tt.TensorRegressor().__sklearn_tags__()
    assert (tags.estimator_type, tags.target_tags.multi_output) == ("regressor", True)
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.allow_nan
    assert tt.TensorClassifier().__sklearn_tags__().estimator_type == "classifier"
    assert tt.TensorPCA().__sklearn_tags__().input_tags.allow_nan


# ------------------------------------------------- pipelines and searches


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=2, return_X_y=True)
    return X[:200], y[:200]


@pytest.mark.filterwarnings(NO_CONVERGENCE)  # zeros and ones are separable
def test_pipeline_from_a_table_of_images(digits):
    X, y = digits
    steps = make_pipeline(tt.Tensorize((8, 8)), tt.TensorScaler("tensor"), tt.TensorClassifier(1))
    scores = cross_val_score(steps, X, y, cv=3)
    assert scores.min() > 0.95
    assert clone(steps).fit(X, y)[-1].coef_.shape == (8, 8)


def test_grid_search_reaches_into_a_pipeline():
    data = make_model("I", 150, shape=(4, 3), noise="normal", rng=0)
    steps = make_pipeline(tt.TensorScaler(), tt.TensorRegressor(1, robust=Truncate(), init="iht"))
    grid = {"tensorregressor__rank": [1, 2], "tensorregressor__robust__tau": [0.01, 50.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the absurd threshold
        search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(data.X, data.y)
    assert len(set(search.cv_results_["mean_test_score"])) == 4  # each setting is another fit
    assert search.best_params_["tensorregressor__robust__tau"] == 50.0
    assert search.best_estimator_[-1].robust_.tau_ == 50.0


def test_grid_search_reaches_into_parts_that_are_named():
    data = make_model("I", 60, shape=(3, 2), rng=0)
    model = tt.TensorRegressor(1, robust="truncate:tau=7")
    grid = [
        {"robust__tau": [0.05, 50.0]},
        {"robust": ["auto"], "robust__tau": [20.0], "solver": ["newton"], "solver__n_iter": [9]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the absurd threshold
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(data.X, data.y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1  # settings are other fits
    assert model.robust == "truncate:tau=7"
    given = clone(model).set_params(robust__tau=3.0, rank=2)
    assert (given.robust.name, given.robust.tau, given.rank) == ("truncate", 3.0, 2)
    with pytest.raises(ValueError, match="unknown solver 'auto': choose from"):
        model.set_params(solver__n_iter=3)
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(nothing__tau=3)


def test_default_robustness_as_an_instance_nests():
    model = tt.TensorRegressor(1, robust=Adaptive())
    assert model.set_params(robust__tau=2.0).robust.tau == 2.0
    assert clone(model).get_params()["robust__tau"] == 2.0


def test_features_of_pca_feed_another_model():
    data = make_model("IV", 60, shape=(5, 4), rng=0)
    signs = np.sign(data.y[:, 0, 0])
    steps = make_pipeline(
        tt.TensorPCA(2, replicates=True), tt.Tensorize((-1,)), LogisticRegression()
    )
    assert steps.fit(data.y, signs).score(data.y, signs) > 0.6


# ------------------------------------------------- weights and covariates by name


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def covariate_data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, 3, 2)), rng.normal(size=(n, 2))
    y = X[:, 0, 0] + Z @ [3.0, -2.0] + 0.1 * rng.normal(size=n)
    return X, Z, y, rng.uniform(0.5, 2, size=n)


def routed(model):
    model = model.set_fit_request(covariates=True, sample_weight=True)
    model = model.set_predict_request(covariates=True)
    return model.set_score_request(covariates=True, sample_weight=True)


def test_covariates_and_weights_are_routed(routing):
    """Through a pipeline and a search, to fit, predict and score; against doing it by hand."""
    X, Z, y, weight = covariate_data()
    model = routed(tt.TensorRegressor(1))
    steps = make_pipeline(tt.TensorScaler(), model)
    steps.fit(X, y, covariates=Z, sample_weight=weight)
    scaled = tt.TensorScaler().fit_transform(X)
    alone = clone(model).fit(scaled, y, covariates=Z, sample_weight=weight)
    np.testing.assert_array_equal(steps.predict(X, covariates=Z), alone.predict(scaled, Z))
    mine = steps.score(X, y, covariates=Z, sample_weight=weight)
    assert mine == alone.score(scaled, y, weight, covariates=Z)
    search = GridSearchCV(model, {"rank": [1, 2]}, cv=3, error_score="raise")
    search.fit(X, y, covariates=Z, sample_weight=weight)
    assert search.best_score_ > 0.98
    assert search.best_estimator_.covariate_coef_ == pytest.approx([3, -2], abs=0.1)


def test_covariates_are_routed_to_classifiers(routing):
    X, Z, y, weight = covariate_data()
    model = routed(tt.TensorClassifier(1, robust="none", solver="newton:n_iter=5,tol=0"))
    found = cross_validate(
        model, X, y > 0, params={"covariates": Z, "sample_weight": weight}, cv=3,
        error_score="raise",
    )  # fmt: skip
    without = cross_val_score(
        tt.TensorClassifier(1, robust="none", solver="newton:n_iter=5,tol=0"),
        X,
        y > 0,
        params={},
        cv=3,
    )
    assert found["test_score"].mean() > without.mean() + 0.2


def test_unrequested_covariates_are_refused(routing):
    X, Z, y, _ = covariate_data()
    with pytest.raises(ValueError, match="covariates"):
        make_pipeline(tt.TensorScaler(), tt.TensorRegressor(1)).fit(X, y, covariates=Z)


# ------------------------------------------------- tables


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=n)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # the plain copy's
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_tables_give_names_to_features(frame):
    X, y = table()
    named = frame(dict(zip("abc", X.T, strict=True)))
    responses = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}[frame](y)
    model = tt.TensorRegressor().fit(named, responses)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    np.testing.assert_allclose(model.coef_, tt.TensorRegressor().fit(X, y).coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(named), model.predict(named.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(named[["b", "a", "c"]])


def test_names_go_when_a_refit_has_none():
    X, y = table()
    model = tt.TensorRegressor().fit(pd.DataFrame(X, columns=list("abc")), y).fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.filterwarnings(NO_CONVERGENCE)
def test_tables_of_labels_responses_and_covariates():
    X, y = table()
    Z = np.random.default_rng(1).normal(size=(80, 2))
    frames = pd.DataFrame(X), pd.DataFrame({"y": y, "z": -y}), pl.DataFrame(Z)
    model = tt.TensorRegressor(1).fit(*frames[:2], covariates=frames[2])
    same = tt.TensorRegressor(1).fit(X, np.column_stack([y, -y]), covariates=Z)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9)
    names = pd.Series(np.where(y + Z[:, 0] > 0, "up", "down"), dtype="category")
    found = tt.TensorClassifier(1, robust="none").fit(frames[0], names).predict(frames[0])
    assert set(found) == {"up", "down"}


def test_scaler_keeps_tables():
    X, _ = table()
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(80) + 5)
    scaler = tt.TensorScaler().set_output(transform="pandas").fit(frame)
    scaled = scaler.transform(frame)
    assert list(scaled.columns) == ["a", "b", "c"]
    assert list(scaled.index) == list(frame.index)
    np.testing.assert_array_equal(scaled, tt.TensorScaler().fit_transform(X))
    tensors = tt.TensorScaler().set_output(transform="pandas").fit_transform(np.ones((5, 2, 2)))
    assert type(tensors) is np.ndarray  # there is no table of tensors
    polars = tt.TensorScaler().set_output(transform="polars").fit_transform(pl.DataFrame(X))
    assert isinstance(polars, pl.DataFrame)


# ------------------------------------------------- labelled arrays


def labelled(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = xr.DataArray(
        rng.normal(size=(n, 3, 2)),
        dims=("day", "site", "depth"),
        coords={
            "day": np.datetime64("2020-01-01", "ns") + np.arange(n) * DAY,
            "site": ["north", "mid", "south"],
            "depth": [0.5, 2.0],
            "region": ("site", ["a", "a", "b"]),
            "level": (("site", "depth"), np.arange(6).reshape(3, 2)),
            "wet": ("day", rng.integers(0, 2, n)),
        },
    )
    y = X.sel(site="north", drop=True) * 2 + 0.1 * rng.normal(size=(n, 2))
    return X, y


def test_coefficients_keep_the_labels():
    X, y = labelled()
    one = y.isel(depth=0, drop=True)
    model = tt.TensorRegressor(1).fit(X, one)
    plain = tt.TensorRegressor(1).fit(X.values, one.values)
    assert isinstance(model.coef_, xr.DataArray)
    assert model.coef_.dims == ("site", "depth")
    assert set(model.coef_.coords) == {"site", "depth", "region", "level"}
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    xr.testing.assert_equal(model.coef_.level, X.level.drop_vars("wet", errors="ignore"))
    assert model.coef_.sel(site="north", depth=0.5) == pytest.approx(2, abs=0.1)
    assert type(plain.coef_) is np.ndarray
    assert type(model.predict(X)) is np.ndarray
    np.testing.assert_array_equal(model.predict(X), plain.predict(X.values))
    assert type(model.fit(X.values, one.values).coef_) is np.ndarray  # labels go with a refit


def test_modes_of_the_same_name_are_told_apart():
    X, y = labelled()
    coef = tt.TensorRegressor(1).fit(X, y).coef_
    assert coef.dims == ("site", "depth", "response_depth")
    assert coef.response_depth.values.tolist() == [0.5, 2.0]


def test_modes_without_names_are_numbered():
    X, y = labelled()
    assert tt.TensorRegressor(1).fit(X.values, y).coef_.dims == (
        "covariate_1", "covariate_2", "depth",
    )  # fmt: skip
    assert tt.TensorRegressor(1).fit(X, y.values).coef_.dims == ("site", "depth", "response_1")


@pytest.mark.filterwarnings(NO_CONVERGENCE)
def test_classes_are_a_mode():
    X, y = labelled()
    kinds = np.digitize(y.values[:, 0], [-1, 1])
    model = tt.TensorClassifier(1, robust="none").fit(X, np.array(["lo", "mid", "hi"])[kinds])
    assert model.coef_.dims == ("site", "depth", "class")
    assert model.coef_["class"].values.tolist() == ["hi", "lo", "mid"]
    binary = tt.TensorClassifier(1, robust="none").fit(X, kinds > 0)
    assert binary.coef_.dims == ("site", "depth")


def test_pca_keeps_the_labels():
    X, _ = labelled()
    model = tt.TensorPCA(1, replicates=True).fit(X)
    assert model.low_rank_.dims == ("site", "depth")
    assert tt.TensorPCA(1).fit(X).low_rank_.dims == ("day", "site", "depth")
    assert model.transform(X).shape == (100, 1, 1)
    assert model.transform(X[0]).shape == (1, 1)
    with pytest.raises(ValueError, match="Y must have the coordinates of fit along 'site'"):
        model.transform(X.isel(site=[1, 0, 2]))


def test_labels_must_be_those_of_the_fit():
    X, y = labelled()
    model = tt.TensorRegressor(1).fit(X, y)
    with pytest.raises(ValueError, match=r"modes \('site', 'depth'\) .*Transpose or rename"):
        model.predict(X.rename(site="place"))
    with pytest.raises(ValueError, match="coordinates of fit along 'site'"):
        model.predict(X.isel(site=[1, 0, 2]))
    unnamed = X.drop_vars("site")  # nothing to compare
    np.testing.assert_array_equal(model.predict(unnamed), model.predict(X))


def test_labels_go_through_a_pipeline():
    X, y = labelled()
    steps = make_pipeline(tt.TensorScaler(), tt.TensorRegressor(1)).fit(X, y[:, 0])
    assert steps[-1].coef_.dims == ("site", "depth")
    back = steps[0].inverse_transform(steps[0].transform(X))
    xr.testing.assert_allclose(back, X)
    assert back.coords.keys() == X.coords.keys()


def test_lags_of_a_labelled_series():
    X, _ = labelled()
    lagged, following = tt.Tensorize(lags=2).pairs(X)
    assert lagged.dims == ("day", "lag", "site", "depth")
    assert (following.day - lagged.day.values == DAY).all()
    xr.testing.assert_equal(lagged.sel(lag=0, drop=True), X[1:-1])
    coef = tt.TensorRegressor(1).fit(lagged, following).coef_
    assert coef.dims == ("lag", "site", "depth", "response_site", "response_depth")


def test_labelled_intercept_and_linear_regression_agree():
    X, y = labelled()
    model = tt.TensorRegressor((3, 2, 2), robust="none").fit(X, y)
    flat = LinearRegression().fit(X.values.reshape(100, -1), y.values)
    np.testing.assert_allclose(model.coef_.values.reshape(6, 2).T, flat.coef_, atol=1e-6)
