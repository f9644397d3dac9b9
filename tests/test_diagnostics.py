"""Local moments, kurtosis and tail index, against brute force, duality, closed forms and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from tauten.datasets import directional_covariance, sample
from tauten.diagnostics import gaussian_local_moment, kurtosis_map, local_moment, tail_index


def random_covariance(rng, p):
    root = rng.normal(size=(p, p))
    return root @ root.T


def circle(basis, size):
    """Unit vectors of a space of dimension 1 or 2, as rows (up to sign)."""
    if basis.shape[1] == 1:
        return basis.T
    angles = np.linspace(0, np.pi, size, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)]) @ basis.T


def cap_grid(u, radius, size):
    """A fine grid of the cap, for p - r and r of at most 2."""
    q = np.linalg.qr(np.hstack([u, np.eye(len(u))]))[0][:, : len(u)]
    inner, outer = circle(q[:, : u.shape[1]], size), circle(q[:, u.shape[1] :], size)
    tilts = np.linspace(-np.arcsin(radius), np.arcsin(radius), size)[:, None, None, None]
    return (np.cos(tilts) * inner[:, None] + np.sin(tilts) * outer).reshape(-1, len(u))


def dual_bound(M, u, radius):
    """min_μ λ_max(M - μ (I - P)) + μ δ², an upper bound by weak duality."""
    complement = np.eye(len(M)) - u @ np.linalg.pinv(u)

    def bound(mu):
        return np.linalg.eigvalsh(M - mu * complement)[-1] + mu * radius**2

    upper = 10 * np.linalg.norm(M, 2) / radius
    best = minimize_scalar(bound, bounds=(0, upper), method="bounded", options={"xatol": 1e-12})
    return min(best.fun, bound(0.0))


@pytest.mark.parametrize(("p", "r"), [(2, 1), (3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize("radius", [0.0, 0.1, 0.6, 1.0])
def test_maximum_over_a_cap_by_brute_force(p, r, radius):
    rng = np.random.default_rng(10 * p + r)
    for _ in range(4):
        M, u = random_covariance(rng, p), rng.normal(size=(p, r))
        vectors = cap_grid(u, radius, size=90 if p == 4 else 400)
        brute = float(np.max(np.einsum("ni,ij,nj->n", vectors, M, vectors, optimize=True)))
        exact = gaussian_local_moment([M], [u], radius=radius)
        assert brute <= exact * (1 + 1e-10)
        assert brute >= exact * (1 - 3e-3)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(2, 8),
    r=st.integers(1, 7),
    radius=st.floats(0.01, 1.0),
)
def test_maximum_over_a_cap_meets_its_dual(seed, p, r, radius):
    rng = np.random.default_rng(seed)
    M, u = random_covariance(rng, p), rng.normal(size=(p, min(p - 1, r)))
    value = gaussian_local_moment([M], [u], radius=radius)
    assert value == pytest.approx(dual_bound(M, u, radius), rel=1e-6)


E1 = np.eye(3)[:, :1]


@pytest.mark.parametrize("radius", [0.0, 1e-9, 0.3, 0.999, 1.0])
@pytest.mark.parametrize(
    "spectrum", [(1, 5, 2), (1, 5, 5), (5, 5, 1), (5, 1, 1), (0, 0, 0), (0, 4, 1)]
)
def test_maximum_over_a_cap_when_the_matrix_ignores_the_factor(spectrum, radius):
    """The hard case: no coupling between the space and its complement."""
    inner, outer = spectrum[0], max(spectrum[1:])
    expected = max(inner, (1 - radius**2) * inner + radius**2 * outer)
    value = gaussian_local_moment([np.diag(np.array(spectrum, float))], [E1], radius=radius)
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.3, 0.6])
def test_maximum_over_a_cap_when_two_blocks_compete(seed, radius):
    """The other hard case: the maximum mixes two blocks, each coupled in itself."""
    rng = np.random.default_rng(seed)
    M = np.zeros((4, 4))
    for block, size in (([0, 2], [9, 1]), ([1, 3], [1, 30])):
        M[np.ix_(block, block)] = random_covariance(rng, 2) + np.diag(size)
    u = np.eye(4)[:, :2]
    value = gaussian_local_moment([M], [u], radius=radius)
    assert value == pytest.approx(dual_bound(M, u, radius), rel=1e-8)


def test_maximum_over_a_tiny_cap_has_the_right_slope():
    M = random_covariance(np.random.default_rng(0), 5)
    value = gaussian_local_moment([M], [np.eye(5)[:, :1]], radius=1e-6)
    assert (value - M[0, 0]) / 2e-6 == pytest.approx(np.linalg.norm(M[1:, 0]), rel=1e-4)


def test_only_the_column_space_of_a_factor_counts():
    rng = np.random.default_rng(0)
    M, u = random_covariance(rng, 5), rng.normal(size=(5, 2))
    redundant = np.hstack([u @ rng.normal(size=(2, 2)), u, 0 * u])
    values = [gaussian_local_moment([M], [f], radius=0.4) for f in (u, redundant)]
    assert values[0] == pytest.approx(values[1])
    everything = gaussian_local_moment([M], [rng.normal(size=(5, 7))], radius=0.0)
    assert everything == pytest.approx(np.linalg.eigvalsh(M)[-1])


def equicorrelated(p):
    """The paper's Example: covariance ½ I + ½ 1 1ᵀ of p³ entries, factors e_1."""
    sigma = (np.eye(p**3) + np.ones((p**3, p**3))) / 2
    return sigma, [np.eye(p)[:, :1]] * 3


def tilt(p, radius):
    """The largest 1ᵀv in a cap around e_1 that does not reach 1/√p."""
    return math.sqrt(1 - radius**2) + radius * math.sqrt(p - 1)


@pytest.mark.parametrize("p", [3, 4, 5, 6])
def test_example_of_the_paper(p):
    sigma, factors = equicorrelated(p)
    total = gaussian_local_moment(sigma, factors, radius=1.0, rng=0)
    assert total == pytest.approx((p**3 + 1) / 2)
    radius = p**-1.5
    all_modes = gaussian_local_moment(sigma, factors, radius=radius, rng=0)
    assert all_modes == pytest.approx(0.5 + 0.5 * tilt(p, radius) ** 6)
    for k in range(3):
        excluded = gaussian_local_moment(sigma, factors, radius=1 / p, exclude=k, rng=0)
        assert excluded == pytest.approx(0.5 + 0.5 * tilt(p, 1 / p) ** 4)


def test_bound_of_the_example_holds_from_p_5_and_p_9_on():
    """The paper states it for every p; the largest value, at p = 3, is 2.5."""
    all_modes = {
        p: gaussian_local_moment(*equicorrelated(p), radius=p**-1.5, n_starts=2, rng=0)
        for p in (4, 5)
    }
    assert all_modes[5] <= 2 < all_modes[4]
    excluded = {
        p: gaussian_local_moment(*equicorrelated(p), radius=1 / p, exclude=0, n_starts=1, rng=0)
        for p in (3, 8, 9)
    }
    assert excluded[9] <= 2 < excluded[8]
    assert excluded[3] == pytest.approx(2.5)


@pytest.mark.parametrize(("theta", "single"), [(0.0, 0.5), (np.pi / 2, 5.5)])
def test_covariates_of_experiment_3(theta, single):
    sigma, ones = directional_covariance(10, theta), np.ones((10, 1))
    for d in (1, 3):
        value = gaussian_local_moment([sigma] * d, [ones] * d, radius=0.0)
        assert value == pytest.approx(single**d)
        assert gaussian_local_moment([sigma] * d, [ones] * d) == pytest.approx(5.5**d)


@pytest.mark.parametrize("exclude", [None, 0, 1, 2])
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.0])
def test_dense_covariance_in_the_papers_order_equals_the_kronecker_one(radius, exclude):
    rng = np.random.default_rng(0)
    sigmas = [random_covariance(rng, p) for p in (2, 3, 4)]
    factors = [rng.normal(size=(p, 1)) for p in (2, 3, 4)]
    dense = np.kron(sigmas[2], np.kron(sigmas[1], sigmas[0]))
    options = {"radius": radius, "exclude": exclude}
    kronecker = gaussian_local_moment(sigmas, factors, **options)
    assert gaussian_local_moment(dense, factors, rng=0, **options) == pytest.approx(kronecker)


def moment_on_grid(samples, factors, order, radius, exclude=None):
    """Brute force for matrices of two columns and rows."""
    grids = [cap_grid(u, radius, size=181) for u in factors]
    if exclude is not None:
        grids[exclude] = np.eye(2)
    projections = np.einsum("nab,ia,jb->nij", samples, *grids, optimize=True)
    return float(np.max(np.mean(np.abs(projections) ** order, axis=0)))


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, 4.5])
@pytest.mark.parametrize("radius", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("exclude", [None, 0, 1])
def test_local_moment_of_samples_by_brute_force(order, radius, exclude):
    rng = np.random.default_rng(7)
    samples = rng.standard_t(2.5, size=(25, 2, 2))
    factors = list(rng.normal(size=(2, 2, 1)))
    options = {"order": order, "radius": radius, "exclude": exclude}
    brute = moment_on_grid(samples, factors, **options)
    value = local_moment(samples, factors, n_starts=10, rng=0, **options)
    assert brute <= value * (1 + 1e-6)
    assert brute >= value * (1 - 2e-3)


def test_local_second_moment_of_samples_equals_that_of_their_covariance():
    rng = np.random.default_rng(1)
    samples = rng.standard_t(3, size=(40, 2, 3, 4))
    factors = [rng.normal(size=(p, 2)) for p in (2, 3, 4)]
    vectors = np.stack([np.ravel(x, order="F") for x in samples])
    second = vectors.T @ vectors / len(samples)
    for exclude in (None, 1):
        options = {"radius": 0.5, "exclude": exclude, "rng": 0}
        expected = gaussian_local_moment(second, factors, **options)
        assert local_moment(samples, factors, **options) == pytest.approx(expected, rel=1e-6)


def test_local_moment_on_the_column_spaces_has_a_closed_form():
    rng = np.random.default_rng(2)
    samples = rng.normal(size=(30, 3, 4))
    u, v = np.array([[1.0], [2.0], [2.0]]), np.array([[1.0], [1.0], [1.0], [1.0]])
    projections = samples @ v[:, 0] / 2 @ u[:, 0] / 3
    for order in (1.2, 2.0, 4.0):
        value = local_moment(samples, [u, v], order=order, radius=0.0, rng=0)
        assert value == pytest.approx(np.mean(np.abs(projections) ** order))
        rows = np.mean(np.abs(samples @ v[:, 0] / 2) ** order, axis=0)
        excluded = local_moment(samples, [u, v], order=order, radius=0.0, exclude=0, rng=0)
        assert excluded == pytest.approx(np.max(rows))
    vectors = samples[:, :, 0]
    alone = local_moment(vectors, [u], order=3.0, exclude=0, rng=0)
    assert alone == pytest.approx(np.max(np.mean(np.abs(vectors) ** 3, axis=0)))


@pytest.mark.parametrize("seed", range(8))
def test_first_start_finds_the_larger_of_two_spikes(seed):
    """Orthogonal spikes of height 3 and 2: a start near the smaller one would stay there."""
    spikes = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 2)))[0].T
    samples = np.stack(
        [h * np.einsum("i,j,k", v, v, v) for h, v in zip((3, 2), spikes, strict=True)]
    )
    factors = [np.ones((4, 1))] * 3
    assert local_moment(samples, factors, n_starts=1, rng=0) == pytest.approx(9 / 2)
    second = np.einsum("nabc,ndef->abcdef", samples, samples) / 2
    second = np.reshape(second, (64, 64), order="F")
    value = gaussian_local_moment(second, factors, n_starts=1, rng=0)
    assert value == pytest.approx(9 / 2)


def test_local_moment_grows_with_the_radius_and_scales_with_the_data():
    rng = np.random.default_rng(3)
    samples, factors = rng.standard_t(3, size=(50, 4, 3)), [np.ones((4, 1)), np.ones((3, 1))]
    values = [local_moment(samples, factors, order=3, radius=r, rng=0) for r in (0, 0.2, 0.5, 1)]
    assert np.all(np.diff(values) > 0)
    doubled = local_moment(2 * samples, factors, order=3, radius=0.2, rng=0)
    assert doubled == pytest.approx(8 * values[1])
    assert local_moment(0 * samples, factors, order=3, rng=0) == 0
    assert local_moment(0 * samples, factors, order=1, radius=0.5, rng=0) == 0


def test_sampled_local_moment_approaches_the_gaussian_one():
    theta, ones = 1.1, [np.ones((4, 1)), np.ones((3, 1))]
    samples = sample(f"kronecker:{theta}", (20_000, 4, 3), rng=0)
    sigmas = [directional_covariance(p, theta) for p in (4, 3)]
    expected = gaussian_local_moment(sigmas, ones, radius=0.2)
    assert local_moment(samples, ones, radius=0.2, rng=0) == pytest.approx(expected, rel=0.05)


def test_kurtosis_map_equals_scipy():
    X = np.random.default_rng(0).standard_t(5, size=(30, 4, 3))
    np.testing.assert_allclose(kurtosis_map(X), stats.kurtosis(X, fisher=False))
    np.testing.assert_allclose(kurtosis_map(1e120 * X), stats.kurtosis(X, fisher=False))
    assert kurtosis_map(np.random.default_rng(0).normal(size=50_000)) == pytest.approx(3, abs=0.1)


def test_kurtosis_of_a_constant_is_nan():
    X = np.random.default_rng(0).normal(size=(7, 2))
    X[:, 1] = 0.1  # a mean of seven of these is not exactly 0.1
    np.testing.assert_array_equal(np.isnan(kurtosis_map(X)), [False, True])


def test_tail_index_by_hand():
    alpha, stderr = tail_index(np.array([-1.0, math.e, 1.0, -(math.e**2), 1.0]), share=0.4)
    assert alpha == pytest.approx(2 / 3)  # logs above the third largest: 1 and 2
    assert stderr == pytest.approx(2 / 3 / math.sqrt(2))
    assert tail_index(np.ones(100)).alpha == math.inf


@pytest.mark.parametrize("index", [0.8, 1.5, 3.0])
def test_tail_index_of_pareto_and_student_samples(index):
    rng = np.random.default_rng(0)
    pareto = (1 + rng.pareto(index, size=(200, 100))) * rng.choice([-7, 7], size=(200, 100))
    alpha, stderr = tail_index(pareto, share=0.2)
    assert abs(alpha - index) < 3 * stderr
    assert stderr < 0.05 * index
    student = tail_index(rng.standard_t(index, size=200_000), share=0.002)
    assert abs(student.alpha - index) < 4 * student.stderr


EYE, LINES = np.eye(2), [np.ones((2, 1))]
PAIR = np.ones((5, 2))
SPOILT = np.array([[1.0, np.nan]] * 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: local_moment(SPOILT, LINES, rng=0), "samples must be finite"),
        (lambda: local_moment(np.ones(5), [], rng=0), "samples must have shape"),
        (lambda: local_moment(np.ones((0, 2)), LINES, rng=0), "samples must have shape"),
        (lambda: local_moment(PAIR, [], rng=0), r"factors must be matrices with \(2,\) rows"),
        (lambda: local_moment(PAIR, [np.ones((3, 1))], rng=0), "factors must be matrices"),
        (lambda: local_moment(PAIR, [np.ones(2)], rng=0), "factors must be matrices"),
        (lambda: local_moment(PAIR, [np.zeros((2, 1))], rng=0), "factors must not be zero"),
        (lambda: local_moment(PAIR, [SPOILT[:2]], rng=0), "factors must be finite"),
        (lambda: local_moment(PAIR, LINES, order=0.5, rng=0), "order must be at least 1"),
        (lambda: local_moment(PAIR, LINES, order=math.nan, rng=0), "order must be at least 1"),
        (lambda: local_moment(PAIR, LINES, radius=1.1, rng=0), r"radius must lie in \[0, 1\]"),
        (lambda: local_moment(PAIR, LINES, radius=-0.1, rng=0), r"radius must lie in \[0, 1\]"),
        (lambda: local_moment(PAIR, LINES, radius=math.nan, rng=0), r"radius must lie"),
        (lambda: local_moment(PAIR, LINES, exclude=1, rng=0), "a mode from 0 to 0; got 1"),
        (lambda: local_moment(PAIR, LINES, n_starts=0, rng=0), "n_starts and n_iter"),
        (lambda: gaussian_local_moment([np.eye(3)], LINES), "covariance must be one square matrix"),
        (lambda: gaussian_local_moment([EYE, EYE], LINES), "covariance must be one square matrix"),
        (lambda: gaussian_local_moment([EYE * np.nan], LINES), "covariance must be finite"),
        (lambda: gaussian_local_moment([-EYE], LINES), "positive semidefinite"),
        (lambda: gaussian_local_moment([np.array([[1, 1e-3], [0, 1]])], LINES), "symmetric"),
        (lambda: gaussian_local_moment(EYE, LINES), "rng must be"),
        (lambda: kurtosis_map(np.ones((3, 2))), "at least 4 samples"),
        (lambda: kurtosis_map(np.array(1.0)), "at least 4 samples"),
        (lambda: kurtosis_map(SPOILT), "X must be finite"),
        (lambda: tail_index(SPOILT), "x must be finite"),
        (lambda: tail_index(np.ones(9), share=0.0), "share must lie between 0 and 1"),
        (lambda: tail_index(np.ones(9), share=1.0), "share must lie between 0 and 1"),
        (lambda: tail_index(np.ones(9)), "x must be long enough"),
        (lambda: tail_index(np.eye(9), share=0.5), "x must have fewer zeros"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
