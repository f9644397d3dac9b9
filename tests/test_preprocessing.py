"""Scaling against naive loops and scikit-learn; tensorizing against slicing by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import RobustScaler

import tauten as tt
from tauten.robust.thresholds import MAD


def data(n=41, shape=(4, 3, 2), seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_t(1.5, size=(n, *shape)) * rng.uniform(0.1, 10, size=shape) + 7


def naive(values):
    """Centre and scale of a list of numbers, nan left out."""
    seen = sorted(v for v in values if not np.isnan(v))
    middle = np.median(seen)
    return middle, MAD * np.median([abs(v - middle) for v in seen])


# ------------------------------------------------- TensorScaler


@pytest.mark.parametrize("missing", [False, True])
def test_each_entry_against_a_loop(missing):
    X = data()
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    scaler = tt.TensorScaler().fit(X)
    for index in np.ndindex(4, 3, 2):
        center, scale = naive(X[(slice(None), *index)])
        assert scaler.center_[index] == center
        assert scaler.scale_[index] == pytest.approx(scale, rel=1e-14)
    scaled = scaler.transform(X)
    np.testing.assert_array_equal(np.isnan(scaled), np.isnan(X))
    np.testing.assert_allclose(scaler.inverse_transform(scaled), X, rtol=1e-12)


@pytest.mark.parametrize(
    ("per", "modes"),
    [(1, [1]), (2, [2]), ([3], [3]), ((1, 3), [1, 3]), ("tensor", []), ((1, 2, 3), [1, 2, 3])],
)
def test_each_mode_against_a_loop(per, modes):
    X = data()
    scaler = tt.TensorScaler(per).fit(X)
    assert scaler.center_.shape == tuple(
        p if k in modes else 1 for k, p in ((1, 4), (2, 3), (3, 2))
    )
    for index in np.ndindex(scaler.center_.shape):
        rows = [index[k - 1] if k in modes else slice(None) for k in (1, 2, 3)]
        center, scale = naive(X[(slice(None), *rows)].ravel())
        assert (scaler.center_[index], scaler.scale_[index]) == pytest.approx((center, scale))
    np.testing.assert_allclose(
        scaler.transform(X), (X - scaler.center_) / scaler.scale_, rtol=1e-14
    )


def test_tables_against_robust_scaler():
    """The quartiles of symmetric data are their median plus and minus the deviation."""
    half = np.random.default_rng(0).exponential(size=(100, 3))
    X = np.concatenate([-half, half, np.zeros((1, 3))]) * [1, 5, 0.1] + [3, 0, -2]
    theirs = RobustScaler(unit_variance=True).fit(X)
    mine = tt.TensorScaler().fit(X)
    np.testing.assert_allclose(mine.center_, theirs.center_, atol=1e-13)
    np.testing.assert_allclose(mine.scale_, theirs.scale_, rtol=1e-5)  # 1.4826 has five digits


@pytest.mark.parametrize("centering", [True, False])
@pytest.mark.parametrize("scaling", [True, False])
def test_parts_can_be_switched_off(centering, scaling):
    X = data()
    scaled = tt.TensorScaler(with_centering=centering, with_scaling=scaling).fit_transform(X)
    whole = tt.TensorScaler().fit(X)
    expected = (X - centering * whole.center_) / (whole.scale_ if scaling else 1)
    np.testing.assert_allclose(scaled, expected, rtol=1e-14)


def test_wild_values_move_nothing_far():
    X = np.random.default_rng(0).normal(size=(201, 3, 2))
    wild = X.copy()
    wild[:60] = 1e12
    found = tt.TensorScaler().fit_transform(wild)[60:]
    assert 0.2 < found.std() < 1


def test_values_that_are_mostly_equal():
    """The scale of the rest, so that they neither explode nor vanish."""
    X = np.zeros((100, 2))
    X[:7, 0] = [1, -2, 3, -4, 5, -6, 7]
    scaler = tt.TensorScaler().fit(X)
    assert scaler.scale_.tolist() == [pytest.approx(4 * MAD), 1]
    np.testing.assert_array_equal(scaler.transform(X)[:, 1], 0)


@pytest.mark.parametrize("value", [0.0, 5.0, -1e300, 1e-300, 0.1])
def test_constants_become_zero(value):
    X = np.full((10, 2, 2), value)
    scaled = tt.TensorScaler().fit(X)
    np.testing.assert_array_equal(scaled.transform(X), 0)
    np.testing.assert_array_equal(scaled.inverse_transform(np.zeros_like(X)), X)


def test_rounding_errors_of_a_constant_are_not_blown_up():
    X = np.where(np.arange(30)[:, None] % 2, 0.3, 0.1 + 0.2)
    assert np.abs(tt.TensorScaler().fit_transform(X)).max() < 1e-15


def test_entries_never_seen_stay_finite():
    X = data()
    X[:, 0, 0, 0] = np.nan
    scaler = tt.TensorScaler().fit(X)
    assert (scaler.center_[0, 0, 0], scaler.scale_[0, 0, 0]) == (0, 1)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32]),
        hnp.array_shapes(min_dims=2, max_dims=4, max_side=5),
        elements=st.integers(-(10**9), 10**9).map(lambda v: v / 64)
        | st.sampled_from([0.0, 1.0, float("nan")]),
    ),
    st.sampled_from(["entry", "tensor", 1]),
)
def test_finite_in_finite_out(X, per):
    scaler = tt.TensorScaler(per).fit(X)
    scaled = scaler.transform(X)
    assert scaled.dtype == X.dtype
    assert (scaler.scale_ > 0).all()
    np.testing.assert_array_equal(np.isfinite(scaled), np.isfinite(X))


@pytest.mark.parametrize(
    ("per", "error"),
    [
        (0, ValueError), (4, ValueError), ([1, 9], ValueError), ([], ValueError),
        ("mode", TypeError), (None, TypeError), (1.5, TypeError), (True, TypeError),
    ],
)  # fmt: skip
def test_what_per_may_be(per, error):
    with pytest.raises(error, match=r"^per must .*; got"):
        tt.TensorScaler(per).fit(data())


def test_scaler_refuses_other_samples():
    with pytest.raises(NotFittedError):
        tt.TensorScaler().transform(data())
    scaler = tt.TensorScaler().fit(data())
    with pytest.raises(ValueError, match=r"X must have samples of shape \(4, 3, 2\), as in fit"):
        scaler.transform(data(shape=(4, 2, 3)))
    with pytest.raises(ValueError, match=r"X must .*infinity"):
        scaler.fit([[np.inf, 1.0]])


# ------------------------------------------------- Tensorize


@pytest.mark.parametrize("shape", [(4, 3, 2), [4, -1, 2], (-1, 2), (24,), -1])
def test_rows_are_read_as_numpy_reads_them(shape):
    X = data().reshape(41, 24)
    np.testing.assert_array_equal(
        tt.Tensorize(shape).fit_transform(X), X.reshape(41, *np.atleast_1d(shape))
    )


@pytest.mark.parametrize("lags", [1, 2, 5])
def test_lags_against_slices(lags):
    series = data(n=9, shape=(3, 2))
    windows = tt.Tensorize(lags=lags).fit_transform(series)
    assert windows.shape == (9 - lags + 1, lags, 3, 2)
    for i, window in enumerate(windows):
        np.testing.assert_array_equal(window, series[i : i + lags][::-1])


@pytest.mark.parametrize("lags", [None, 1, 3])
@pytest.mark.parametrize("horizon", [1, 2])
def test_pairs_are_samples_and_what_follows(lags, horizon):
    time = np.arange(20.0)
    step = tt.Tensorize(lags=lags)
    X, y = step.pairs(time[:, None], horizon=horizon)
    newest = X[:, 0] if lags is None else X[:, 0, 0]
    np.testing.assert_array_equal(y[:, 0], newest.ravel() + horizon)
    assert y[-1, 0] == 19
    assert len(X) == 20 - (lags or 1) + 1 - horizon
    other = step.pairs(time[:, None], list(-time), horizon=horizon)
    np.testing.assert_array_equal(other[1], -y[:, 0])


def test_autoregression_is_recovered():
    """X_t = A X_{t-1} B + 0.3 X_{t-2} + noise, fitted at full rank."""
    rng = np.random.default_rng(0)
    A, B = 0.5 * np.eye(3), np.array([[0.6, 0.3], [0.0, 0.6]])
    series = np.zeros((2000, 3, 2))
    for t in range(2, 2000):
        series[t] = A @ series[t - 1] @ B + 0.3 * series[t - 2] + rng.normal(size=(3, 2))
    X, y = tt.Tensorize(lags=2).pairs(series)
    coef = tt.TensorRegressor((2, 3, 2, 3, 2), robust="none").fit(X, y).coef_
    np.testing.assert_allclose(coef[0], np.einsum("ik,lj->klij", A, B), atol=0.1)
    identity = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(2))
    np.testing.assert_allclose(coef[1], 0.3 * identity, atol=0.1)


@pytest.mark.parametrize("shape", [(5, 5), (-1, -1), (0, 24), (-1, 5), "ab", (2.0, 12), (), None])
def test_shapes_that_do_not_fit(shape):
    X = data().reshape(41, 24)
    if shape is None:
        assert tt.Tensorize(shape).fit_transform(X).shape == (41, 24)
        return
    with pytest.raises(ValueError, match=r"^shape must"):
        tt.Tensorize(shape).fit(X)


@pytest.mark.parametrize("lags", [0, -1, 1.5, "two", True])
def test_lags_that_are_none(lags):
    with pytest.raises((TypeError, ValueError), match=r"^lags must"):
        tt.Tensorize(lags=lags).fit(data())


def test_series_that_are_too_short():
    with pytest.raises(ValueError, match="at least lags=5 samples; got 4"):
        tt.Tensorize(lags=5).fit_transform(data(n=4))
    with pytest.raises(ValueError, match=r"more than lags - 1 \+ horizon = 4 samples; got 4"):
        tt.Tensorize(lags=3).pairs(data(n=4), horizon=2)
    with pytest.raises(ValueError, match="target"):
        tt.Tensorize(lags=2).pairs(data(n=9), np.ones(8))
    with pytest.raises((TypeError, ValueError), match="horizon"):
        tt.Tensorize(lags=2).pairs(data(n=9), horizon=0)
