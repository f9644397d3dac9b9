"""The algebra of Tucker points against its definitions."""

from __future__ import annotations

import dataclasses
import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import oracle
from points import FEW, close, full, points
from tauten.tucker import Affine, Tucker


def rotation(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def rotations(rng, ranks):
    return [rotation(rng, r) for r in ranks]


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
def test_canonical_point_knows_its_norm(case):
    point, _ = case
    assert point.canonical().norm() == pytest.approx(np.linalg.norm(full(point)), rel=1e-12)


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
    many = rng.normal(size=(3, 2, flat.size))
    for batch, one in zip(point.split(many), point.split(many[2, 1]), strict=True):
        assert batch.shape[:2] == (3, 2)
        np.testing.assert_array_equal(batch[2, 1], one)
