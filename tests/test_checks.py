"""What users may pass in, and what errors say."""

from __future__ import annotations

import numpy as np
import pytest

from tauten import TensorPCA, TensorRegressor, _checks
from tauten._checks import (
    check_generator,
    check_number,
    check_rank,
    check_same_length,
    check_size,
    check_tensor,
    check_theta,
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_floats_are_not_copied(dtype):
    array = np.ones((3, 2, 2), dtype)
    assert check_tensor("X", array) is array


@pytest.mark.parametrize("value", [[[1, 2], [3, 4]], np.array([[1, 0]], bool), np.ones(2, np.int8)])
def test_other_numbers_become_floats(value):
    array = check_tensor("X", value)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.asarray(value))


def test_objects_that_are_numbers_become_floats():
    assert check_tensor("X", np.array([[1, 2.5]], dtype=object)).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, ValueError, "X must be an array of numbers; got None"),
        (3.0, ValueError, "X must have at least 1 axes"),
        ([], ValueError, r"X must hold at least one sample .*shape=\(0,\)"),
        (np.ones((0, 3)), ValueError, r"0 sample\(s\)"),
        (np.ones((3, 0)), ValueError, "at least one sample and one entry"),
        ([np.nan], ValueError, "X contains NaN. Fill in or leave out such entries"),
        ([np.inf, -np.inf], ValueError, "X contains infinity .*. Fill in or leave out"),
        (np.array([1j]), ValueError, "X must be an array of numbers: Complex data not supported"),
        (np.array(["a"]), ValueError, "X must be .*: could not convert string to float: 'a'. Code"),
        ([{}], TypeError, "X must be an array of numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "X must be an array of numbers"),
    ],
)
def test_bad_arrays(value, error, message):
    with pytest.raises(error, match=message):
        check_tensor("X", value)


def test_sparse_arrays_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        check_tensor("X", sparse.eye_array(3).tocsr())


def test_missing_entries_where_they_are_allowed():
    array = np.array([1.0, np.nan])
    assert check_tensor("Y", array, missing=True) is array
    for bad in (np.inf, -np.inf):
        with pytest.raises(ValueError, match="Y contains inf"):
            check_tensor("Y", np.array([bad, np.nan]), missing=True)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("sample", [0, 8])  # of either thread's half
def test_numbers_that_are_not_finite_are_found_on_threads(n_jobs, sample, monkeypatch):
    monkeypatch.setattr(_checks, "WORTH_THREADS", 0)
    large = np.full((9, 2, 2), 1e308)  # a sum that is infinite is not an entry that is
    assert check_tensor("X", large, n_jobs=n_jobs) is large
    X = np.ones((9, 2, 2))
    for wrong, what in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        X[sample, 1, 0] = wrong
        with pytest.raises(ValueError, match=f"X must be an array of numbers: .*{what}.*Fill in"):
            check_tensor("X", X, n_jobs=n_jobs)
    X[sample, 1, 0] = np.nan
    assert check_tensor("X", X, n_jobs=n_jobs, missing=True) is X


def test_threads_are_as_many_as_asked_for(monkeypatch):
    monkeypatch.setattr(_checks, "WORTH_THREADS", 0)
    asked = []
    monkeypatch.setattr(_checks, "available_threads", lambda n_jobs: asked.append(n_jobs) or 1)
    X, y = np.random.default_rng(0).normal(size=(40, 3, 2)), np.arange(40.0)
    model = TensorRegressor(rank=1, n_jobs=1).fit(X, y, covariates=X[:, :, 0])
    model.predict(X, covariates=X[:, :, 0])
    model.score(X, y, covariates=X[:, :, 0])
    PCA = TensorPCA(rank=1, n_jobs=1).fit(X)
    PCA.inverse_transform(PCA.transform(X))
    TensorPCA(rank=1, replicates=True, n_jobs=1).fit(X)
    assert len(asked) >= 9
    assert set(asked) == {1}


def test_a_wrong_number_of_threads_is_not_blamed_on_the_array(monkeypatch):
    monkeypatch.setattr(_checks, "WORTH_THREADS", 0)
    with pytest.raises(ValueError, match=r"^n_jobs must be"):
        check_tensor("X", np.ones((3, 2)), n_jobs=0)


def test_numbers_too_large_for_a_float_are_infinite():
    with pytest.raises(ValueError, match=r"X must be an array of numbers: .*infinity"):
        check_tensor("X", np.full((3, 2), np.longdouble("1e4000")))


def test_the_typical_size_is_that_of_all_channels():
    """Of 16 images of three channels, the last two of which are of a size that can be had."""
    images = np.ones((16, 64, 64, 3), np.float32)
    images[..., 0] = 1e10
    check_size("X", images)
    images[..., 1] = 1e10
    with pytest.raises(ValueError, match="X must have entries of a size"):
        check_size("X", images)


def test_fewest_axes():
    with pytest.raises(ValueError, match=r"X must have at least 2 axes; got shape \(3,\)"):
        check_tensor("X", np.ones(3), min_ndim=2)


def test_lengths():
    check_same_length(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match=r"X and covariates must have .* 3 and 2"):
        check_same_length(np.ones(3), np.ones(2), "covariates")


@pytest.mark.parametrize(
    ("rank", "shape", "expected"),
    [
        (4, (10, 10, 3), (4, 4, 3)),
        (2, (5,), (2,)),
        (9, (5, 2), (2, 2)),
        (5, (9, 2, 2), (4, 2, 2)),
        (3, (7, 1, 1), (1, 1, 1)),
        (3, (7, 7, 1), (3, 3, 1)),
        (np.int64(2), (4, 4), (2, 2)),
        ((2, 2), (4, 4), (2, 2)),
        ([4, 2, 2], (4, 4, 4), (4, 2, 2)),
        (np.array([1, 1]), (4, 4), (1, 1)),
        ((2.0, 2), (4, 4), (2, 2)),
        ((3,), (4,), (3,)),
    ],
)
def test_ranks(rank, shape, expected):
    assert check_rank(rank, shape) == expected
    assert all(type(r) is int for r in check_rank(rank, shape))


@pytest.mark.parametrize(
    ("rank", "error", "message"),
    [
        (0, ValueError, "rank must be at least 1; got 0"),
        (-1, ValueError, "rank must be at least 1"),
        (True, TypeError, "rank must be an int or one int per mode"),
        ("two", TypeError, "rank must be an int or one int per mode"),
        (None, TypeError, "rank must be an int"),
        (1.5, TypeError, "rank must be an int"),
        ((2,), ValueError, r"rank must have one entry per mode .* \(4, 3, 2\)"),
        ((2, 2, 2, 1), ValueError, "rank must have one entry per mode"),
        ((0, 1, 1), ValueError, "rank of mode 1 must be a whole number from 1 to its dimension 4"),
        ((1, 4, 1), ValueError, "rank of mode 2 must be .* dimension 3; got 4"),
        ((1.5, 1, 1), TypeError, "rank must be an int or one int per mode"),
        (("a", 1, 1), TypeError, "rank must be an int or one int per mode"),
        ((np.nan, 1, 1), TypeError, "rank must be an int or one int per mode"),
        ((1, 2, 1), ValueError, "rank of mode 2 is 2, larger than the product 1 of the others"),
    ],
)
def test_bad_ranks(rank, error, message):
    with pytest.raises(error, match=message):
        check_rank(rank, (4, 3, 2))


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), np.inf])
def test_positive_numbers(value):
    check_number("step", value)


@pytest.mark.parametrize(
    ("value", "options", "error", "message"),
    [
        (0, {}, ValueError, "step must be positive; got 0"),
        (-1.0, {}, ValueError, "step must be positive"),
        (np.nan, {}, ValueError, "step must be positive"),
        (-1.0, {"zero": True}, ValueError, "step must not be negative"),
        (np.nan, {"zero": True}, ValueError, "step must not be negative"),
        (1.0, {"integer": True}, TypeError, "step must be an integer; got 1.0"),
        ("1", {}, TypeError, "step must be a number; got '1'"),
        (None, {}, TypeError, "step must be a number"),
        (True, {}, TypeError, "step must be a number"),
        (1j, {}, TypeError, "step must be a number"),
        (np.ones(1), {}, TypeError, "step must be a number"),
    ],
)
def test_bad_numbers(value, options, error, message):
    with pytest.raises(error, match=message):
        check_number("step", value, **options)


def test_zero_where_it_is_allowed():
    check_number("a", 0.0, zero=True)
    check_number("n_iter", 3, integer=True)


def test_starting_points(make_theta):
    theta = make_theta((3, 4), (2, 1))
    check_theta(theta, (3, 4))
    check_theta(make_theta((3, 4), (2, 1), linear=(1, 4)), (3, 4))
    with pytest.raises(ValueError, match=r"init must have the shape \(4, 3\) .* got \(3, 4\)"):
        check_theta(theta, (4, 3), "init")
    with pytest.raises(TypeError, match=r"theta0 must be a tauten.Tucker; got ndarray"):
        check_theta(theta.full(), (3, 4))
    with pytest.raises(ValueError, match="theta0 must be finite"):
        check_theta(theta.map(lambda block: block * np.inf), (3, 4))


def test_random_states_are_named():
    assert check_generator(None).integers(9**9) == check_generator(0).integers(9**9)
    assert check_generator(given := np.random.default_rng(3)) is given
    with pytest.raises(ValueError, match=r"random_state must be a whole number from 0 on.* got -1"):
        check_generator(-1)
    with pytest.raises(TypeError, match=r"random_state must be .* got 'a'"):
        check_generator("a")
