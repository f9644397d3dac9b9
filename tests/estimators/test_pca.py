"""PCA against TensorLy's HOOI and the naive minimum."""

from __future__ import annotations

import numpy as np
import pytest
import tensorly as tl
from scipy.optimize import least_squares
from sklearn.base import clone
from tensorly.decomposition import tucker

from fits import close, flat, naive_full
from tauten import TensorPCA
from tauten.datasets import make_model, truth
from tauten.metrics import relative_error
from tauten.robust import Huber
from tauten.tucker import multi_mode_dot


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


@pytest.mark.parametrize("replicates", [False, True])
def test_data_are_not_copied(replicates, rng):
    Y = rng.normal(size=(5, 4, 3))
    data = TensorPCA(rank=1, replicates=replicates)._problem(Y, 0.0).data
    assert np.shares_memory(data.y, Y)


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
