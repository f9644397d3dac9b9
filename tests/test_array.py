"""Array libraries: the strict reference implementation of the standard gives numpy's answers."""

from __future__ import annotations

import tracemalloc

import array_api_strict as strict
import numpy as np
import pytest

from tauten import _array
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Loss, Squared
from tauten.problem import Problem
from tauten.robust import Robustifier, Truncate
from tauten.solver import Solver
from tauten.testing.robustifiers import OFF
from tauten.tucker import Tucker, hooi, hosvd, unfold

SHAPE, RANK = (3, 2, 2), (2, 1, 2)


def same(mine, theirs, tol=1e-10):
    assert _array.namespace(mine) is not np
    np.testing.assert_allclose(_array.to_numpy(mine), theirs, rtol=tol, atol=tol)


def strictly(theta):
    return theta.map(strict.asarray)


def strict_problem(problem):
    arrays = (problem.data.X, problem.data.y, problem.data.Z, problem.data.weight)
    data = Rows(*(None if a is None else strict.asarray(a) for a in arrays), chunk=9)
    design, center = problem.design, problem.design.center
    if center is not None:
        design = type(design)(strict.asarray(center))
    return Problem(data, problem.loss, design, problem.robust, problem.missing)


@pytest.fixture
def problem_and_point(rng, make_theta, make_y):
    def make(loss, design, robust=None, n=17):
        loss = Loss.get(loss)
        d0 = {"covariate": 2, "scalar covariate": 0, "affine": 1}.get(design)
        theta = make_theta(SHAPE, RANK, linear=(2, *SHAPE[1:]) if design == "affine" else None)
        y = make_y(loss, (n, *SHAPE[d0 or 0 :]))
        robust = Robustifier() if robust is None else robust
        if d0 is None:
            y[rng.random(n) < 0.2] = np.nan
            return Problem(Rows(None, y), loss, Direct(), robust, missing=True), theta
        X = rng.normal(size=(n, *SHAPE[:d0]))
        if design == "affine":
            data = Rows(X, y, rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, size=n))
            return Problem(data, loss, Covariate(X.mean(axis=0)), robust), theta
        return Problem(Rows(X, y), loss, Covariate(), robust), theta

    return make


DESIGNS = ["covariate", "scalar covariate", "affine", "direct"]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("robust", Robustifier.registry)
@pytest.mark.parametrize("loss", Loss.registry)
def test_gradient(loss, robust, design, problem_and_point):
    problem, theta = problem_and_point(loss, design)
    component = Robustifier.get(robust)
    if design == "direct" and robust == "shrink":
        component.set_params(omega=1.0)  # PCA has no covariates to choose it from
    problem = Problem(problem.data, problem.loss, problem.design, component, problem.missing)
    problem = problem.calibrate(theta)  # thresholds are numpy arrays or floats
    mine, theirs = strict_problem(problem).gradient(strictly(theta)), problem.gradient(theta)
    for a, b in zip(mine.blocks.blocks, theirs.blocks.blocks, strict=True):
        same(a, b)
    assert mine.value == pytest.approx(theirs.value, rel=1e-10)
    assert mine.truncated == pytest.approx(theirs.truncated)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("loss", Loss.registry)
def test_curvature(loss, design, problem_and_point):
    robust = Robustifier.get("auto:omega=1,nu=0.5,tau=0.5").calibrate()
    problem, theta = problem_and_point(loss, design, robust)
    same(strict_problem(problem).curvature(strictly(theta)), problem.curvature(theta))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("robust", Robustifier.registry)
def test_thresholds_influence_and_predictors(robust, design, problem_and_point):
    component = Robustifier.get(robust)
    if design == "direct" and robust == "shrink":
        component.set_params(omega=1.0)
    problem, theta = problem_and_point("squared", design, component)
    mine, theirs = strict_problem(problem).calibrate(strictly(theta)), problem.calibrate(theta)
    for name in ("tau_", "nu_", "omega_", "n_blocks_"):
        if hasattr(theirs.robust, name):
            chosen = getattr(mine.robust, name), getattr(theirs.robust, name)
            for a, b in zip(*(c if isinstance(c, list) else [c] for c in chosen), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(mine.influence(strictly(theta)), theirs.influence(theta))
    same(mine.entry_curvature(strictly(theta)), theirs.entry_curvature(theta))
    same(mine.predictors(strictly(theta)), theirs.predictors(theta))


@pytest.mark.parametrize("robust", Robustifier.registry)
def test_switched_off_thresholds(robust, problem_and_point):
    component = Robustifier.get(robust)
    component.set_params(**{k: v for k, v in OFF.items() if k in component.get_params()})
    problem, theta = problem_and_point("squared", "covariate", component)
    mine = strict_problem(problem.calibrate(theta)).gradient(strictly(theta))
    plain = Problem(problem.data, Squared(), Covariate()).gradient(theta)
    for a, b in zip(mine.blocks.blocks, plain.blocks.blocks, strict=True):
        same(a, b)


@pytest.mark.parametrize("solver", Solver.registry)
def test_solvers(solver, problem_and_point):
    for design in ("covariate", "affine", "direct"):
        problem, theta = problem_and_point("squared", design, Truncate(tau=5.0).calibrate())
        solve = Solver.get(solver).set_params(n_iter=3, tol=0.0)
        mine = solve.run(strict_problem(problem), strictly(theta))
        theirs = solve.run(problem, theta)
        same(mine.theta.full(), theirs.theta.full(), 1e-7)
        assert mine.reason == theirs.reason


@pytest.mark.parametrize("loss", Loss.registry)
def test_losses(loss, rng):
    loss = Loss.get(loss)
    for eta in (rng.normal(size=(6, 3)), np.array([[800.0, -800.0, 800.0]] * 6)):
        y = np.asarray(loss.draw(rng.normal(size=(6, 3)), rng), dtype=float)
        for method in ("value", "score", "curvature", "weight"):
            mine = getattr(loss, method)(strict.asarray(eta), strict.asarray(y))
            same(mine, getattr(loss, method)(eta, y))
        same(loss.mean(strict.asarray(eta)), loss.mean(eta))
        means = loss.mean(rng.normal(size=(6, 3)))
        same(loss.link(strict.asarray(means)), loss.link(means))
        loss.check(strict.asarray(y))
        y[0, 0] = np.nan
        loss.check(strict.asarray(y[1:]), missing=True)
        with pytest.raises(ValueError, match="y must hold"):
            loss.check(strict.asarray(y))


def test_algebra(rng, make_theta):
    theta = make_theta(SHAPE, RANK)
    mine, other = strictly(theta), make_theta(SHAPE, RANK)
    same(mine.full(), theta.full())
    assert mine.norm() == pytest.approx(theta.norm())
    assert mine.distance(strictly(other)) == pytest.approx(theta.distance(other))
    same(mine.canonical().full(), theta.full())
    same(mine.balance(2.0).full(), theta.full())
    same(mine.align(strictly(other)).core, theta.align(other).core, 1e-6)
    for a, b in zip(mine.imbalance(1.5), theta.imbalance(1.5), strict=True):
        same(a, b)
    tensor = rng.normal(size=SHAPE)
    same(unfold(strict.asarray(tensor), 1), unfold(tensor, 1))
    for decompose in (hosvd, hooi):
        same(
            decompose(strict.asarray(tensor), (2, 2, 2)).full(), decompose(tensor, (2, 2, 2)).full()
        )


def test_clip_is_entrywise_truncation(rng):
    x, bounds = rng.normal(size=(5, 3)), rng.uniform(0.1, 1.0, size=3)
    for bound in (0.5, bounds, np.inf):
        expected = np.sign(x) * np.minimum(np.abs(x), bound)
        np.testing.assert_array_equal(_array.clip(x, bound), expected)
        same(_array.clip(strict.asarray(x), bound), expected)


def test_clip_keeps_single_precision():
    x = np.ones((2, 2), np.float32)
    for bound in (0.5, np.full(2, 0.5), np.inf):
        assert _array.clip(x, bound).dtype == np.float32
        assert _array.clip(strict.asarray(x), bound).dtype == strict.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_safe_exp_is_a_tangent_line_beyond_its_limit(dtype):
    limit = np.log(np.finfo(dtype).max) / 2
    x = np.array([-1e4, -1.0, 0.0, limit - 1, limit + 1, 1e4], dtype)
    with np.errstate(over="raise"):
        value, first, second = _array.safe_exp(x)
    inside = x < limit
    for part in (value, first, second):
        assert part.dtype == dtype
        assert np.all(np.isfinite(part))
        np.testing.assert_allclose(part[inside], np.exp(x[inside]), rtol=1e-5)
    top = np.exp(limit)
    np.testing.assert_allclose(value[~inside], top * (1 + x[~inside] - limit), rtol=1e-3)
    np.testing.assert_allclose(first[~inside], top, rtol=1e-4)
    np.testing.assert_array_equal(second[~inside], 0)


def test_conversions():
    reference = strict.asarray([1.0], dtype=strict.float32)
    made = _array.like([1, 2], reference)
    assert made.dtype == strict.float32
    assert _array.to_numpy(made).dtype == np.float32
    array = np.ones(3)
    assert _array.to_numpy(array) is array
    assert _array.namespace(None, array, None) is _array.namespace(array)


def test_points_of_mixed_libraries_are_refused():
    with pytest.raises(TypeError, match="Multiple namespaces"):
        Tucker(strict.ones((1,)), [np.ones((3, 1))]).full()


@pytest.mark.parametrize("fastest", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("batches", [(5, 5), (5, 1), (1, 5)])
def test_products_of_pairs_do_not_depend_on_the_layout(fastest, batches, rng):
    left, right = (
        rng.normal(size=(rows, m, n)).transpose(2, 0, 1) if first else rng.normal(size=(n, rows, m))
        for rows, m, n, first in zip((3, 2), (4, 4), batches, fastest, strict=True)
    )
    pairs = zip(np.resize(left, (5, 3, 4)), np.resize(right, (5, 2, 4)), strict=True)
    expected = [[[sum(a * b) for b in R] for a in L] for L, R in pairs]
    np.testing.assert_allclose(_array.pair_products(left, right), expected, rtol=1e-13)
    both = _array.flat_pair_products([(left, right), (left[:, 1:, :], right[:, :1, :])])
    every = np.asarray(expected)
    beside = [every.reshape(5, 6), every[:, 1:, :1].reshape(5, 2)]
    np.testing.assert_allclose(both, np.hstack(beside), rtol=1e-13)
    mixed = _array.flat_pair_products([(left.astype("f4"), right.astype("f4")), (left, right)])
    assert mixed.dtype == np.float64


@pytest.mark.parametrize("otherwise", [1.0, np.array([7.0, 8.0, 9.0])])
def test_a_ratio_where_there_is_nothing_to_divide_by_is_another(otherwise):
    above, below = np.array([1.0, 0.0, -3.0]), np.array([2.0, 0.0, 0.0])
    expected = np.where(below == 0, otherwise, 0.5)
    found = _array.ratio(above, below, otherwise=otherwise)
    np.testing.assert_array_equal(found, expected)
    other = otherwise if np.isscalar(otherwise) else strict.asarray(otherwise)
    same(_array.ratio(*map(strict.asarray, (above, below)), otherwise=other), expected)


@pytest.mark.parametrize("size", [1, 63, 64, 150])
@pytest.mark.parametrize("make", ["numpy", "torch", "strict"], indirect=True)
def test_root_of_the_inverse(make, size, rng):
    rows = rng.normal(size=(size, size + 5))
    matrix = rows @ rows.T
    root = _array.to_numpy(_array.inverse_root(make(matrix)))
    np.testing.assert_allclose(root @ matrix @ root.T, np.eye(size), atol=1e-8)


@pytest.mark.parametrize("make", ["numpy", "torch", "strict"], indirect=True)
def test_no_root_of_what_is_not_positive(make):
    for matrix in (np.diag([1.0, -1.0]), np.full((2, 2), np.nan)):
        root = _array.to_numpy(_array.inverse_root(make(matrix)))
        assert np.all(np.isnan(root))


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("columns", [(), (1,), (4,)], ids=["vector", "column", "matrix"])
def test_products_copy_no_samples(columns, step, rng):
    """What lies apart is left to an operator that takes it as it is."""
    X, matrix = rng.normal(size=(300, 2000))[::step], rng.normal(size=(2000, *columns))
    expected = np.einsum("np,p...->n...", X, matrix)
    tracemalloc.start()
    found = _array.matmul(X, matrix)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert peak < X.nbytes / 10
