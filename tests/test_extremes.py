"""Numerical extremes: the right answer or a clear error, and no warning from deep inside.

Warnings are errors here, so every fit below is also a fit without one.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tauten import TensorClassifier, TensorPCA, TensorRegressor

REFUSALS = {"", "rank", "y", "X", "sample_weight", "Sample", "n_blocks"}  # how they begin
A = np.outer([1.0, 0.0, -1.0, 2.0], [1.0, 0.5, 0.0])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4, 3))
    return X, np.tensordot(X, A, 2) + 0.1 * rng.normal(size=80)


def error(X, y, **options):
    return np.linalg.norm(TensorRegressor(rank=1, **options).fit(X, y).coef_ - A)


@pytest.mark.parametrize("size", [1e-30, 1e-10, 1e10, 1e30])
def test_units_do_not_matter(data, size):
    X, y = data
    plain = TensorRegressor(rank=1).fit(X, y).coef_
    np.testing.assert_allclose(
        TensorRegressor(rank=1).fit(size * X, y).coef_ * size, plain, rtol=1e-5
    )
    np.testing.assert_allclose(
        TensorRegressor(rank=1).fit(X, size * y).coef_ / size, plain, rtol=1e-5
    )


@pytest.mark.parametrize("size", [1e-310, 1e-150, 1e-100, 1e100, 1e150, 1e300])
def test_sizes_whose_powers_are_no_numbers_are_refused(data, size):
    X, y = data
    for name, fit in {
        "X": lambda: TensorRegressor(rank=1).fit(size * X, y),
        "y": lambda: TensorRegressor(rank=1).fit(X, size * y),
        "Y": lambda: TensorPCA(rank=1).fit(size * X),
    }.items():
        with pytest.raises(
            ValueError, match=rf"^{name} must have entries of a size between .*Rescale {name}"
        ):
            fit()
    with pytest.raises(ValueError, match=r"^X must have entries of a size"):
        TensorClassifier(rank=1).fit(size * X, y > 0)


def test_single_precision_has_a_smaller_range(data):
    X, y = (a.astype(np.float32) for a in data)
    with pytest.raises(ValueError, match=r"between 2e-10 and 4e\+09"):
        TensorRegressor(rank=1).fit(np.float32(1e12) * X, y)


@pytest.mark.parametrize("size", [1e50, 1e200, 1e300])
def test_a_few_entries_may_have_any_size(data, size):
    X, y = data
    wild = y.copy()
    wild[3] = size
    assert error(X, wild) < 0.1
    far = X.copy()
    far[5] = size
    assert error(far, y) < 0.1


@pytest.mark.parametrize(
    "change",
    [
        np.zeros_like,
        np.ones_like,
        lambda X: np.repeat(X[:, :, :1], 3, axis=2),
        lambda X: np.repeat(X[:, :1], 4, axis=1),
        lambda X: np.where(np.arange(4)[:, None] == 1, 0.0, X),
    ],
    ids=["zero", "constant", "collinear", "collinear in the first mode", "one slice zero"],
)
def test_degenerate_covariates(data, change):
    X, y = change(data[0]), data[1]
    assert np.isfinite(TensorRegressor(rank=1).fit(X, y).predict(X)).all()
    assert np.isfinite(TensorClassifier(rank=1).fit(X, y > 0).decision_function(X)).all()


@pytest.mark.parametrize("y", [np.zeros(80), np.ones(80)], ids=["zero", "constant"])
def test_constant_responses_are_all_intercept(data, y):
    model = TensorRegressor(rank=1).fit(data[0], y)
    np.testing.assert_allclose(model.predict(data[0]), y, atol=1e-8)


@pytest.mark.parametrize("rank", [1, "auto"])
def test_no_noise(data, rank):
    X, _ = data
    model = TensorRegressor(rank=rank).fit(X, np.tensordot(X, A, 2))
    np.testing.assert_allclose(model.coef_, A, atol=1e-6)
    assert model.rank_ == (1, 1)


@pytest.mark.parametrize("robust", ["auto", "none", "huber"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_noise_in_decompositions(robust, dtype):
    """A few large entries of a tensor that has the ranks exactly are no outliers."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        factors = [rng.normal(size=(4, r)) for r in (2, 2, 1)]
        Y = np.einsum("abc,ia,jb,kc->ijk", rng.normal(size=(2, 2, 1)), *factors).astype(dtype)
        model = TensorPCA(rank=(2, 2, 1), robust=robust).fit(Y)
        np.testing.assert_allclose(model.low_rank_, Y, atol=1e-4 * np.abs(Y).max())


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("rank", [1, "auto"])
def test_hardly_any_samples(data, n, rank):
    X, y = data[0][:n], data[1][:n]
    assert np.isfinite(TensorRegressor(rank=rank).fit(X, y).predict(data[0])).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_samples_than_parameters(data):
    X, y = data[0][:10], data[1][:10]
    assert np.isfinite(TensorRegressor(rank=3).fit(X, y).predict(data[0])).all()


def test_full_rank_is_least_squares(data):
    X, y = data
    Z = np.column_stack([np.ones(80), X.reshape(80, 12)])
    expected = np.linalg.lstsq(Z, y, rcond=None)[0][1:].reshape(4, 3)
    model = TensorRegressor(rank=(3, 3), robust="none").fit(X, y)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (4, 1), (1, 3), (1, 1, 1, 1, 1)])
def test_modes_of_one_entry(shape, rng):
    X = rng.normal(size=(60, *shape))
    y = X.reshape(60, -1).sum(axis=1) + 0.01 * rng.normal(size=60)
    np.testing.assert_allclose(TensorRegressor(rank=1).fit(X, y).coef_, 1.0, atol=0.02)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.float16),
        lambda X: np.round(8 * X).astype(np.int8),
        lambda X: X > 0,
        lambda X: X.astype(">f8"),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[::-1][::-1],
    ],
    ids=["float32", "float16", "int8", "bool", "big-endian", "fortran", "strided", "reversed"],
)
def test_types_and_layouts_are_those_of_doubles(data, change):
    X, y = change(data[0]), data[1]
    X.setflags(write=False)
    expected = TensorRegressor(rank=1).fit(np.array(X, dtype=np.float64), y)
    tolerance = 1e-3 if X.dtype == np.float32 else 1e-7
    np.testing.assert_allclose(
        TensorRegressor(rank=1).fit(X, y).coef_, expected.coef_, rtol=tolerance, atol=tolerance
    )


def test_ties(data):
    X, y = data
    assert error(X, np.round(y)) < 0.3


def test_refits_are_identical_to_the_bit(data):
    X, y = data
    first, second = (TensorRegressor().fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.predict(X), second.predict(X))


@st.composite
def fits(draw):
    """Any small problem: shapes, ranks, types, tails, weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    n = draw(st.integers(1, 30))
    tail = draw(st.sampled_from([np.inf, 3.0, 1.0]))
    draws = rng.normal if np.isinf(tail) else lambda size: rng.standard_t(tail, size=size)
    X = draws(size=(n, *shape)).astype(draw(st.sampled_from([np.float64, np.float32])))
    rank = draw(st.sampled_from(["auto", 1, 2]))
    robust = draw(st.sampled_from(["auto", "none", "truncate", "huber", "mom", "normclip"]))
    weight = rng.integers(0, 3, size=n).astype(float) if draw(st.booleans()) else None
    return X, draws(size=n), rank, robust, weight


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=fits(), classify=st.booleans())
def test_every_fit_is_finite_or_refused_in_words(problem, classify):
    X, y, rank, robust, weight = problem
    model = (
        TensorClassifier(rank, robust=robust) if classify else TensorRegressor(rank, robust=robust)
    )
    try:
        model.fit(X, y > 0 if classify else y, sample_weight=weight)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict(X).astype(float)).all()
    assert refusal.partition(" ")[0] in REFUSALS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    share=st.sampled_from([0.0, 0.3, 0.9]),
    seed=st.integers(0, 2**32),
)
def test_every_decomposition_is_finite_or_refused_in_words(shape, share, seed):
    rng = np.random.default_rng(seed)
    Y = rng.standard_t(1.5, size=shape)
    Y[rng.random(size=shape) < share] = np.nan
    if np.isnan(Y).all():
        with pytest.raises(ValueError, match="Y must hold at least one observed entry"):
            TensorPCA(rank=1).fit(Y)
    else:
        assert np.isfinite(TensorPCA(rank=1).fit(Y).low_rank_).all()


def test_the_warning_of_a_fit_says_what_to_try(data):
    with pytest.warns(ConvergenceWarning, match="Try a larger n_iter"):
        TensorRegressor(rank=2, solver="newton:n_iter=1").fit(*data)
