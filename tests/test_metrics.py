"""Errors and distances, against brute force and constructions with known answers."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tauten.metrics import (
    estimation_error,
    frobenius_error,
    has_converged,
    relative_error,
    subspace_distance,
)
from tauten.tucker import Affine, Tucker


def random_tucker(rng, shape, rank):
    return Tucker(
        rng.normal(size=rank), [rng.normal(size=s) for s in zip(shape, rank, strict=True)]
    )


def orthogonal(rng, r):
    return np.linalg.qr(rng.normal(size=(r, r)))[0]


def perturb(rng, point, size):
    return point.map(lambda block: block + size * rng.normal(size=block.shape))


def error_at(theta, truth, rotations):
    """What Err minimises, written with einsum for order 2."""
    core = np.einsum("ab,ai,bj->ij", truth.core, *rotations)
    gaps = [u - v @ q for u, v, q in zip(theta.factors, truth.factors, rotations, strict=True)]
    return sum(float(np.sum(gap**2)) for gap in [theta.core - core, *gaps])


def plane_rotation(angle, sign):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -sign * s], [s, sign * c]])


def brute_force_error(theta, truth):
    """Best of a grid over O(2) x O(2), polished."""

    def objective(angles, signs):
        rotations = [plane_rotation(*pair) for pair in zip(angles, signs, strict=True)]
        return error_at(theta, truth, rotations)

    grid = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    signs = list(itertools.product((1, -1), repeat=2))
    best = min(
        (
            (objective(angles, s), angles, s)
            for angles in itertools.product(grid, grid)
            for s in signs
        ),
        key=lambda entry: entry[0],
    )
    polished = minimize(objective, best[1], args=(best[2],), method="BFGS", options={"gtol": 1e-9})
    return polished.fun


@pytest.mark.parametrize("seed", range(5))
def test_estimation_error_is_the_brute_force_minimum(seed):
    rng = np.random.default_rng(seed)
    truth = random_tucker(rng, (4, 5), (2, 2)).balance(1.0)
    theta = perturb(rng, truth, 0.1).rotate([orthogonal(rng, 2) for _ in range(2)])
    assert estimation_error(theta, truth) == pytest.approx(
        brute_force_error(theta, truth), rel=1e-6
    )


@pytest.mark.parametrize("seed", range(5))
def test_estimation_error_of_rank_one_tries_all_signs(seed):
    rng = np.random.default_rng(seed)
    truth = random_tucker(rng, (4, 5), (1, 1)).balance(1.0)
    theta = perturb(rng, truth, 0.2).rotate([np.array([[-1.0]]), np.array([[1.0]])])
    signs = [
        [np.array([[float(s)]]) for s in pair] for pair in itertools.product((1, -1), repeat=2)
    ]
    assert estimation_error(theta, truth) == pytest.approx(
        min(error_at(theta, truth, pair) for pair in signs)
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rank=st.tuples(*[st.integers(1, 3)] * 3))
def test_estimation_error_ignores_a_rotation_of_each_mode(seed, rank):
    rng = np.random.default_rng(seed)
    truth = random_tucker(rng, (4, 5, 6), rank)
    theta = perturb(rng, truth, 0.01)
    turned = theta.rotate([orthogonal(rng, r) for r in rank])
    assert estimation_error(truth.rotate([orthogonal(rng, r) for r in rank]), truth) < 1e-18
    assert estimation_error(turned, truth) == pytest.approx(
        estimation_error(theta, truth), rel=1e-6
    )
    assert estimation_error(truth, turned) == pytest.approx(
        estimation_error(theta, truth), rel=1e-6
    )


def test_estimation_error_sees_scale_and_leaves_out_the_linear_block():
    rng = np.random.default_rng(0)
    truth = random_tucker(rng, (3, 4), (1, 1)).balance(1.0)
    rescaled = truth.balance(2.0)  # the same tensor: core / 4, unit factors doubled
    core = float(truth.core[0, 0])
    assert estimation_error(rescaled, truth) == pytest.approx((core - core / 4) ** 2 + 2)
    affine = Affine(truth.core, truth.factors, np.ones(3))
    assert estimation_error(affine, truth) == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("as_arrays", list(itertools.product((False, True), repeat=2)))
def test_frobenius_error_of_arrays_and_tucker_tensors(as_arrays):
    rng = np.random.default_rng(1)
    a, b = random_tucker(rng, (3, 4, 5), (2, 2, 2)), random_tucker(rng, (3, 4, 5), (1, 1, 1))
    gap = np.sqrt(np.sum((a.full() - b.full()) ** 2))
    a, b = (x.full() if full else x for x, full in zip((a, b), as_arrays, strict=True))
    assert frobenius_error(a, b) == pytest.approx(gap)
    assert frobenius_error(a, b, squared=True) == pytest.approx(gap**2)
    assert frobenius_error(a, b, squared=True, log=True) == pytest.approx(2 * np.log(gap))
    norm = np.sqrt(np.sum(np.square(b if isinstance(b, np.ndarray) else b.full())))
    assert relative_error(a, b) == pytest.approx(gap / norm)


def test_error_of_a_perfect_and_of_a_diverged_estimate():
    truth = Tucker(np.ones((1, 1)), [np.ones((2, 1)), np.ones((3, 1))])
    diverged = Tucker(np.full((1, 1), np.nan), truth.factors)
    assert frobenius_error(truth.full(), truth.full(), log=True) == -math.inf
    assert estimation_error(diverged, truth) == math.inf
    assert frobenius_error(diverged, truth) == math.inf
    assert frobenius_error(diverged.full(), truth, squared=True, log=True) == math.inf


@pytest.mark.parametrize("angle", [1e-12, 1e-7, 0.3, np.pi / 2 - 1e-7])
def test_subspace_distance_of_lines_at_a_known_angle(angle):
    u, v = np.array([[5.0], [0.0]]), np.array([[-np.cos(angle)], [-np.sin(angle)]])
    for kind, expected in [
        ("chordal", np.sin(angle)),
        ("spectral", np.sin(angle)),
        ("projection", np.sqrt(2) * np.sin(angle)),
        ("geodesic", angle),
    ]:
        assert subspace_distance(u, v, kind=kind) == pytest.approx(expected, rel=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=st.integers(3, 8), r=st.integers(1, 3))
def test_subspace_distance_by_projectors(seed, p, r):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, p, r))
    gap = u @ np.linalg.pinv(u) - v @ np.linalg.pinv(v)
    mixed = u @ (orthogonal(rng, r) * 3)  # other columns of the same space
    assert subspace_distance(mixed, v, kind="spectral") == pytest.approx(np.linalg.norm(gap, 2))
    assert subspace_distance(mixed, v, kind="projection") == pytest.approx(np.linalg.norm(gap))
    assert subspace_distance(u, v) == pytest.approx(np.linalg.norm(gap) / np.sqrt(2))


def test_subspace_distance_of_a_space_inside_another_is_zero():
    u = np.random.default_rng(0).normal(size=(6, 3))
    assert subspace_distance(u[:, :1], u) == pytest.approx(0, abs=1e-12)


def test_has_converged_compares_the_last_errors_with_the_threshold():
    rng = np.random.default_rng(0)
    tail = list(5 + rng.normal(size=50))
    n, p = 100, 10
    threshold = p * math.log(p) / (100 * n)
    for factor, expected in [(0.999, True), (1.001, False)]:
        scaled = [factor * threshold / statistics.stdev(tail) * x for x in tail]
        assert has_converged([*rng.normal(size=250), *scaled], n=n, p_max=p) is expected


def test_has_converged_is_false_for_a_diverged_run():
    assert not has_converged([1.0] * 49 + [math.inf], n=10, p_max=10)
    assert not has_converged([math.nan] * 50, n=10, p_max=10)


def tucker(core, *factors):
    return Tucker(np.array(core, dtype=float), [np.array(u, dtype=float) for u in factors])


LINE = tucker([1], [[1], [2]])
PLANE = tucker([1, 1], [[1, 0], [0, 1]])
SPOILT = tucker([1], [[1], [np.nan]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimation_error(PLANE, LINE), "theta must have the shape and rank"),
        (lambda: estimation_error(LINE, SPOILT), "truth must be finite"),
        (lambda: frobenius_error(np.ones(2), np.ones(3)), r"shape of truth, \(3,\)"),
        (lambda: frobenius_error(np.ones(2), np.array([1, np.nan])), "truth must be finite"),
        (lambda: frobenius_error(LINE, SPOILT), "truth must be finite"),
        (lambda: relative_error(np.ones(2), np.zeros(2)), "truth must not be zero"),
        (lambda: subspace_distance(np.eye(2), np.eye(2), kind="angle"), "kind must be one of"),
        (lambda: subspace_distance(np.eye(2), np.eye(3)), "same number of rows"),
        (lambda: subspace_distance(np.ones(2), np.eye(2)), "u must be a matrix"),
        (lambda: subspace_distance(np.eye(2), np.zeros((2, 1))), "v must be a matrix"),
        (lambda: subspace_distance(np.eye(2), np.full((2, 1), np.nan)), "v must be finite"),
        (lambda: has_converged([1.0] * 49, n=10, p_max=10), "errors must be a flat sequence"),
        (lambda: has_converged([1.0] * 50, n=0, p_max=10), "n must be at least 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_estimation_error_needs_tucker_tensors():
    with pytest.raises(TypeError, match="theta must be a Tucker tensor; got ndarray"):
        estimation_error(np.ones(2), LINE)
