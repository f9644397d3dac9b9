"""Products, unfoldings and projections against their definitions."""

from __future__ import annotations

import functools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import oracle
from points import FEW, close, full, points
from tauten.tucker import products


@FEW
@given(points(), st.data())
def test_mode_dot_is_einsum(case, data):
    point, rng = case
    k = data.draw(st.integers(0, point.order - 1))
    tensor, matrix = rng.normal(size=point.shape), rng.normal(size=(3, point.shape[k]))
    letters = "abcde"[: point.order]
    subscripts = f"{letters},z{letters[k]}->{letters.replace(letters[k], 'z')}"
    close(products.mode_dot(tensor, matrix, k), np.einsum(subscripts, tensor, matrix))


@FEW
@given(points(), st.data())
def test_multi_mode_dot_leaves_modes_out(case, data):
    point, rng = case
    tensor = rng.normal(size=(2, *point.shape))
    keep = data.draw(st.integers(0, point.order - 1))
    matrices = [None if k == keep else rng.normal(size=(2, p)) for k, p in enumerate(point.shape)]
    filled = [np.eye(p) if m is None else m for m, p in zip(matrices, point.shape, strict=True)]
    expected = [oracle.full(sample, filled) for sample in tensor]
    close(products.multi_mode_dot(tensor, matrices, first=1), expected)


@FEW
@given(points())
def test_unfold_and_fold(case):
    point, rng = case
    tensor = rng.normal(size=point.shape)
    for k in range(point.order):
        matrix = products.unfold(tensor, k)
        np.testing.assert_array_equal(matrix, oracle.unfold(tensor, k))
        np.testing.assert_array_equal(products.fold(matrix, k, point.shape), tensor)


@FEW
@given(points())
def test_unfolding_of_a_tucker_tensor(case):
    """``A_(k) = U_k S_(k) (⊗_{j≠k} U_j)ᵀ``, the Kronecker product over decreasing j."""
    point, _ = case
    close(point.full(), full(point))
    for k, u in enumerate(point.factors):
        others = oracle.kronecker([v for j, v in enumerate(point.factors) if j != k])
        close(products.unfold(point.full(), k), u @ products.unfold(point.core, k) @ others.T)


@FEW
@given(points())
def test_sweep_is_every_projection(case):
    point, rng = case
    X = rng.normal(size=(3, *point.shape))
    core, partials = products.sweep(X, point.factors)
    down = [u.T for u in point.factors]
    close(core, [oracle.full(x, down) for x in X])
    for k, partial in enumerate(partials):
        kept = [np.eye(p) if j == k else down[j] for j, p in enumerate(point.shape)]
        close(partial, [oracle.full(x, kept) for x in X])


@FEW
@given(points())
def test_sweep_is_the_adjoint_of_full(case):
    point, rng = case
    X = rng.normal(size=(2, *point.shape))
    core, partials = products.sweep(X, point.factors)
    inner = [np.sum(x * point.full()) for x in X]
    close([np.sum(c * point.core) for c in core], inner)
    for k, partial in enumerate(partials):
        other = products.mode_dot(point.core, point.factors[k], k)
        close([np.sum(p * other) for p in partial], inner)


def test_sweep_of_no_modes():
    core, partials = products.sweep(np.arange(3.0), [])
    np.testing.assert_array_equal(core, np.arange(3.0))
    assert partials == []


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_sweep_reads_the_batch_at_most_twice(order, rng, monkeypatch):
    X = rng.normal(size=(4, *[3] * order))
    factors = [rng.normal(size=(3, 1)) for _ in range(order)]
    reads, product = [], products.mode_dot

    def counted(tensor, matrix, mode):
        if tensor.size == X.size:
            reads.append(mode)
            assert tensor is X  # neither a copy nor a transpose
        return product(tensor, matrix, mode)

    monkeypatch.setattr(products, "mode_dot", counted)
    products.sweep(X, factors)
    assert len(reads) == min(order, 2)


def test_mode_dot_copies_nothing(rng, monkeypatch):
    """Matrix products get views of the tensor."""
    X, used = rng.normal(size=(3, 4, 5)), []
    product = np.matmul
    xp = products.namespace(X)

    def watched(a, b):
        used.append(np.shares_memory(b, X))
        return product(a, b)

    monkeypatch.setattr(xp, "matmul", watched)
    for k, p in enumerate(X.shape):
        products.mode_dot(X, np.ones((2, p)), k)
    assert used == [True] * 3


@pytest.mark.parametrize("copies", [0, 3])
@pytest.mark.parametrize(
    ("shape", "rank"), [((5, 4, 3), (2, 2, 2)), ((4, 3), (2, 1)), ((5,), (1,))]
)
def test_coordinates_with_missing_entries_are_least_squares(rng, shape, rank, copies):
    factors = [np.linalg.qr(rng.normal(size=pair))[0] for pair in zip(shape, rank, strict=True)]
    batch = (copies,) if copies else ()
    Y = rng.normal(size=(*batch, *shape))
    whole = functools.reduce(np.kron, factors)  # rows: entries, columns: coordinates
    exact = Y.reshape(*batch, -1) @ whole
    found = products.coordinates(Y, factors, first=len(batch))
    np.testing.assert_allclose(found.reshape(*batch, -1), exact, atol=1e-12)
    Y[rng.random(Y.shape) < 0.4] = np.nan
    found = products.coordinates(Y, factors, first=len(batch)).reshape(-1, whole.shape[1])
    for y, mine in zip(Y.reshape(-1, whole.shape[0]), found, strict=True):
        seen = ~np.isnan(y)
        theirs = np.linalg.lstsq(whole[seen], y[seen], rcond=None)[0]
        np.testing.assert_allclose(mine, theirs, atol=1e-10)


def test_coordinates_of_nothing_are_zero():
    np.testing.assert_array_equal(
        products.coordinates(np.full((3, 2), np.nan), [np.eye(3), np.eye(2)]), 0
    )
