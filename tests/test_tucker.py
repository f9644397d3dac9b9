"""The algebra of Tucker tensors against its definitions."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import oracle
from tauten import tucker
from tauten.tucker import Affine, Tucker, coordinates

FEW = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def points(draw, max_rank=4):
    """A random point: up to five modes, ranks from one to full, feasible or not."""
    order = draw(st.integers(1, 5))
    shape = draw(st.lists(st.integers(1, 4), min_size=order, max_size=order))
    rank = [draw(st.integers(1, min(p, max_rank))) for p in shape]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    return Tucker(rng.normal(size=rank), factors), rng


def close(mine, theirs, tol=1e-10):
    np.testing.assert_allclose(mine, theirs, rtol=tol, atol=tol * max(1, np.abs(theirs).max()))


def rotation(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def rotations(rng, ranks):
    return [rotation(rng, r) for r in ranks]


def full(point):
    return oracle.full(point.core, point.factors)


@FEW
@given(points(), st.data())
def test_mode_dot_is_einsum(case, data):
    point, rng = case
    k = data.draw(st.integers(0, point.order - 1))
    tensor, matrix = rng.normal(size=point.shape), rng.normal(size=(3, point.shape[k]))
    letters = "abcde"[: point.order]
    subscripts = f"{letters},z{letters[k]}->{letters.replace(letters[k], 'z')}"
    close(tucker.mode_dot(tensor, matrix, k), np.einsum(subscripts, tensor, matrix))


@FEW
@given(points(), st.data())
def test_multi_mode_dot_leaves_modes_out(case, data):
    point, rng = case
    tensor = rng.normal(size=(2, *point.shape))
    keep = data.draw(st.integers(0, point.order - 1))
    matrices = [None if k == keep else rng.normal(size=(2, p)) for k, p in enumerate(point.shape)]
    filled = [np.eye(p) if m is None else m for m, p in zip(matrices, point.shape, strict=True)]
    expected = [oracle.full(sample, filled) for sample in tensor]
    close(tucker.multi_mode_dot(tensor, matrices, first=1), expected)


@FEW
@given(points())
def test_unfold_and_fold(case):
    point, rng = case
    tensor = rng.normal(size=point.shape)
    for k in range(point.order):
        matrix = tucker.unfold(tensor, k)
        np.testing.assert_array_equal(matrix, oracle.unfold(tensor, k))
        np.testing.assert_array_equal(tucker.fold(matrix, k, point.shape), tensor)


@FEW
@given(points())
def test_unfolding_of_a_tucker_tensor(case):
    """``A_(k) = U_k S_(k) (⊗_{j≠k} U_j)ᵀ``, the Kronecker product over decreasing j."""
    point, _ = case
    close(point.full(), full(point))
    for k, u in enumerate(point.factors):
        others = oracle.kronecker([v for j, v in enumerate(point.factors) if j != k])
        close(tucker.unfold(point.full(), k), u @ tucker.unfold(point.core, k) @ others.T)


@FEW
@given(points())
def test_sweep_is_every_projection(case):
    point, rng = case
    X = rng.normal(size=(3, *point.shape))
    core, partials = tucker.sweep(X, point.factors)
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
    core, partials = tucker.sweep(X, point.factors)
    inner = [np.sum(x * point.full()) for x in X]
    close([np.sum(c * point.core) for c in core], inner)
    for k, partial in enumerate(partials):
        other = tucker.mode_dot(point.core, point.factors[k], k)
        close([np.sum(p * other) for p in partial], inner)


def test_sweep_of_no_modes():
    core, partials = tucker.sweep(np.arange(3.0), [])
    np.testing.assert_array_equal(core, np.arange(3.0))
    assert partials == []


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_sweep_reads_the_batch_at_most_twice(order, rng, monkeypatch):
    X = rng.normal(size=(4, *[3] * order))
    factors = [rng.normal(size=(3, 1)) for _ in range(order)]
    reads, product = [], tucker.mode_dot

    def counted(tensor, matrix, mode):
        if tensor.size == X.size:
            reads.append(mode)
            assert tensor is X  # neither a copy nor a transpose
        return product(tensor, matrix, mode)

    monkeypatch.setattr(tucker, "mode_dot", counted)
    tucker.sweep(X, factors)
    assert len(reads) == min(order, 2)


def test_mode_dot_copies_nothing(rng, monkeypatch):
    """Matrix products get views of the tensor."""
    X, used = rng.normal(size=(3, 4, 5)), []
    product = np.matmul
    xp = tucker.namespace(X)

    def watched(a, b):
        used.append(np.shares_memory(b, X))
        return product(a, b)

    monkeypatch.setattr(xp, "matmul", watched)
    for k, p in enumerate(X.shape):
        tucker.mode_dot(X, np.ones((2, p)), k)
    assert used == [True] * 3


@FEW
@given(points())
def test_gauges_keep_the_tensor(case):
    point, rng = case
    same = [
        point.orthonormal(),
        point.canonical(),
        point.balance(),
        point.balance(2.5),
        point.rotate(rotations(rng, point.rank)),
        point.align(point.rotate(rotations(rng, point.rank))),
    ]
    for other in same:
        assert (other.shape, other.rank) == (point.shape, point.rank)
        close(full(other), full(point))


@FEW
@given(points(), st.floats(0.1, 10))
def test_balance_and_orthonormal_factors(case, b):
    point, _ = case
    for u in point.balance(b).factors:
        close(u.T @ u, b**2 * np.eye(u.shape[1]))
    for u in (*point.orthonormal().factors, *point.canonical().factors):
        close(u.T @ u, np.eye(u.shape[1]))
    for pull in point.balance(b).imbalance(b):
        close(pull, 0 * pull, 1e-8 * b**3)


@FEW
@given(points())
def test_canonical_core_is_all_orthogonal_and_ordered(case):
    point, _ = case
    core = point.canonical().core
    for k in range(point.order):
        rows = oracle.unfold(core, k)
        gram = rows @ rows.T
        scale = np.abs(gram).max()
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10 * scale)
        assert np.all(np.diff(np.diag(gram)) <= 1e-10 * scale)
        A = np.linalg.svd(oracle.unfold(full(point), k), compute_uv=False)
        expected = np.zeros(len(gram))
        expected[: len(A)] = A[: len(gram)]
        np.testing.assert_allclose(np.diag(gram), expected**2, atol=1e-10 * scale)


@FEW
@given(points())
def test_imbalance_is_the_derivative_of_the_penalty(case):
    """``U (UᵀU - b² I)`` is the gradient of ``¼ ‖UᵀU - b² I‖²``."""
    point, rng = case
    for u, pull in zip(point.factors, point.imbalance(1.5), strict=True):
        direction = rng.normal(size=u.shape)

        def penalty(t, u=u, direction=direction):
            v = u + t * direction
            return np.sum((v.T @ v - 1.5**2 * np.eye(v.shape[1])) ** 2) / 4

        slope = (8 * (penalty(1e-3) - penalty(-1e-3)) - penalty(2e-3) + penalty(-2e-3)) / 12e-3
        close(np.sum(pull * direction), slope, 1e-7)


@FEW
@given(points(), st.sampled_from([1.0, 1e-3, 1e-8, 1e-12]))
def test_norm_and_distance(case, size):
    point, rng = case
    close(point.norm(), np.linalg.norm(full(point)))
    moved = point.with_blocks(
        [block + size * rng.normal(size=block.shape) for block in point.blocks]
    )
    expected = np.linalg.norm(full(moved) - full(point))
    # What is left of 16 digits when all but `size` of two tensors cancels.
    rounding = 1e-14 * (1 + np.prod([np.linalg.norm(b) for b in point.blocks]))
    assert abs(point.distance(moved) - expected) <= 1e-10 * expected + rounding
    assert point.distance(moved.rotate(rotations(rng, point.rank))) <= expected * 1.01 + rounding


def test_a_distance_of_1e_12_is_seen(rng):
    """As a difference of squared norms it would be lost at 1e-8."""
    point = Tucker(rng.normal(size=(2, 2)), [rng.normal(size=(30, 2)), rng.normal(size=(20, 2))])
    near = dataclasses.replace(point, core=point.core * (1 + 1e-12))
    relative = near.distance(point) / point.norm()
    assert relative == pytest.approx(1e-12, rel=0.01)


def gap(point, target):
    return sum(np.sum((a - b) ** 2) for a, b in zip(point.blocks, target.blocks, strict=True))


@FEW
@given(points())
def test_align_undoes_a_rotation(case):
    point, rng = case
    turned = point.rotate(rotations(rng, point.rank))
    assert gap(turned.align(point), point) <= 1e-8 * (1 + gap(turned, point))


@settings(FEW, max_examples=15)
@given(points())
def test_align_never_moves_apart(case):
    point, rng = case
    target = point.with_blocks([rng.normal(size=block.shape) for block in point.blocks])
    before = gap(point, target)
    assert gap(point.align(target), target) <= before * (1 + 1e-10)
    few, more = (gap(point.align(target, n_iter=n), target) for n in (1, 5))
    assert more <= few * (1 + 1e-10)


@FEW
@given(points(max_rank=1))
def test_align_finds_the_best_signs(case):
    """With ranks of one the rotations are signs, and there are few enough to try them all."""
    point, rng = case
    target = point.map(lambda block: rng.normal(size=block.shape))
    signs = itertools.product(*[[np.eye(1), -np.eye(1)]] * point.order)
    best = min(gap(point.rotate(turn), target) for turn in signs)
    assert gap(point.align(target), target) <= best * (1 + 1e-10)


def test_align_keeps_a_point_that_no_descent_improves():
    rng = np.random.default_rng(346)  # every start ends further away than the point is already
    point = Tucker(rng.normal(size=(2, 2)), [rng.normal(size=(3, 2)) for _ in range(2)])
    target = point.map(lambda block: block + 0.5 * rng.normal(size=block.shape))
    assert gap(point.align(target), target) <= gap(point, target)


def error(point, tensor):
    return np.linalg.norm(full(point) - tensor)


@pytest.mark.parametrize(
    ("shape", "rank"),
    [
        ((5, 6), (2, 2)),
        ((5, 4, 3), (2, 3, 2)),
        ((4, 3, 3, 2), (2, 2, 3, 1)),
        ((6, 2, 3), (3, 2, 2)),
    ],
)
def test_hosvd_and_hooi_are_as_good_as_tensorly(shape, rank, rng):
    from tensorly.decomposition import tucker as tensorly_tucker

    low = Tucker(
        rng.normal(size=rank), [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    )
    noisy = low.full() + rng.normal(size=shape)
    core, factors = tensorly_tucker(noisy, rank, n_iter_max=200, tol=1e-12, init="svd")
    best = np.linalg.norm(oracle.full(core, factors) - noisy)
    found = error(tucker.hooi(noisy, rank, n_iter=200, tol=1e-14), noisy)
    assert found == pytest.approx(best, rel=1e-6)
    assert found <= error(tucker.hosvd(noisy, rank), noisy) * (1 + 1e-10)
    bound = sum(
        np.sum(np.linalg.svd(oracle.unfold(noisy, k), compute_uv=False)[r:] ** 2)
        for k, r in enumerate(rank)
    )
    assert error(tucker.hosvd(noisy, rank), noisy) ** 2 <= bound * (1 + 1e-10)
    assert error(tucker.hooi(low.full(), rank), low.full()) < 1e-10 * low.norm()


@FEW
@given(points())
def test_full_rank_decompositions_are_exact(case):
    point, rng = case
    tensor = rng.normal(size=point.shape)
    for decompose in (tucker.hosvd, tucker.hooi):
        found = decompose(tensor, point.shape)
        close(full(found), tensor)
        for u in found.factors:
            close(u.T @ u, np.eye(u.shape[1]))


def test_points_are_frozen(make_theta):
    point = make_theta((3, 4), (2, 1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.core = point.core
    assert isinstance(point.factors, tuple)


@pytest.mark.parametrize(
    "factors",
    [[(3, 2)], [(3, 2), (4, 2)], [(3, 2), (4, 1), (5, 1)], [(3, 2), (4,)], [(2, 3), (1, 4)]],
)
def test_pieces_that_do_not_fit_raise(factors):
    with pytest.raises(ValueError, match=r"factors must be matrices with \(2, 1\) columns"):
        Tucker(np.ones((2, 1)), [np.ones(shape) for shape in factors])


def test_a_rank_beyond_its_dimension_raises():
    point = Tucker(np.ones((3, 3)), [np.ones((2, 3)), np.ones((4, 3))])
    with pytest.raises(ValueError, match="rank 3 of mode 1 is larger than its dimension 2"):
        point.orthonormal()


def test_properties(make_theta):
    point = make_theta((3, 4, 5), (2, 1, 2))
    assert (point.order, point.shape, point.rank) == (3, (3, 4, 5), (2, 1, 2))
    assert point.d_eff == 3 * 2 + 4 * 1 + 5 * 2 + 2 * 1 * 2
    assert [b.shape for b in point.blocks] == [(2, 1, 2), (3, 2), (4, 1), (5, 2)]
    doubled = point.map(lambda a, b: a + b, point)
    np.testing.assert_array_equal(doubled.core, 2 * point.core)


def test_affine_carries_its_linear_block(rng, make_theta):
    point = make_theta((3, 4), (2, 2), linear=(2, 4))
    assert [b.shape for b in point.blocks] == [(2, 2), (3, 2), (4, 2), (2, 4)]
    for other in (
        point.canonical(),
        point.balance(2.0),
        point.rotate(rotations(rng, point.rank)),
        point.align(point.tucker),
        point.map(lambda block: block),
        point.with_blocks(point.blocks),
    ):
        assert type(other) is Affine
        np.testing.assert_array_equal(other.linear, point.linear)
        close(full(other), full(point))
    assert type(point.tucker) is Tucker
    assert point.distance(point.tucker) < 1e-12


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
    found = coordinates(Y, factors, first=len(batch))
    np.testing.assert_allclose(found.reshape(*batch, -1), exact, atol=1e-12)
    Y[rng.random(Y.shape) < 0.4] = np.nan
    found = coordinates(Y, factors, first=len(batch)).reshape(-1, whole.shape[1])
    for y, mine in zip(Y.reshape(-1, whole.shape[0]), found, strict=True):
        seen = ~np.isnan(y)
        theirs = np.linalg.lstsq(whole[seen], y[seen], rcond=None)[0]
        np.testing.assert_allclose(mine, theirs, atol=1e-10)


def test_coordinates_of_nothing_are_zero():
    np.testing.assert_array_equal(coordinates(np.full((3, 2), np.nan), [np.eye(3), np.eye(2)]), 0)


@FEW
@given(points())
def test_split_cuts_what_flat_joins(case):
    point, rng = case
    point = Affine(point.core, point.factors, rng.normal(size=(2, 3)))
    flat = point.flat()
    entries = [value for block in point.blocks for value in np.nditer(block, order="C")]
    np.testing.assert_array_equal(flat, entries)
    for mine, block in zip(point.split(flat), point.blocks, strict=True):
        np.testing.assert_array_equal(mine, block)
