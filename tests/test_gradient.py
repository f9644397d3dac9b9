"""The gradient, curvature and influence of a problem against their definitions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.linalg import block_diag

import oracle
from tauten import TensorRegressor
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.losses import Huber as HuberLoss
from tauten.losses import Loss, Squared
from tauten.problem import Asked, Kernel, PilotFit, Problem, block_gradients, gradients
from tauten.robust import (
    Adaptive,
    Catoni,
    HodgesLehmann,
    Huber,
    MedianOfMeans,
    NormClip,
    Robustifier,
    Shrink,
    Truncate,
)
from tauten.tucker import Affine

SHAPES = {  # order: dimensions, ranks
    1: ((4,), (2,)),
    2: ((3, 4), (2, 3)),
    3: ((4, 2, 3), (2, 2, 3)),
    4: ((2, 3, 2, 3), (2, 1, 2, 2)),
    5: ((2, 3, 2, 2, 3), (1, 2, 2, 1, 2)),
}
# Orders of A and of its covariates; for PCA the order, the copies and the share of missing entries.
DESIGNS = {
    "covariate": [(d, d0) for d in SHAPES for d0 in range(d + 1)],
    "one tensor": [(d, 1, 0.0) for d in SHAPES],
    "many tensors": [(d, 6, 0.0) for d in SHAPES],
    "missing entries": [(d, n, 0.3) for d in SHAPES for n in (1, 6)],
}


def agree(mine, theirs):
    np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


def robustifiers(name, theta, n, rng):
    """Settings of a robustifier, each with its definition."""
    per_block = [0.1 + 0.1 * k for k in range(len(theta.blocks))]
    per_entry = [rng.uniform(0.05, 0.5, size=block.shape) for block in theta.blocks]
    taus = [0.2, per_block, per_entry, np.inf]
    blocks = sorted({min(n, K) for K in (1, 3, 4)})
    settings = {
        "none": [(Robustifier(), oracle.Steps())],
        "truncate": [(Truncate(tau), oracle.truncate(tau)) for tau in taus],
        "huber": [(Huber(nu), oracle.residual_truncation(nu)) for nu in (0.3, np.inf)],
        "shrink": [(Shrink(w), oracle.Steps(oracle.shrinkage(w))) for w in (1.0, np.inf)],
        "normclip": [(NormClip(tau), oracle.normclip(tau)) for tau in (0.4, per_block, np.inf)],
        "mom": [(MedianOfMeans(K), oracle.median_of_means(K)) for K in blocks],
        "rank": [(HodgesLehmann(K), oracle.hodges_lehmann(K)) for K in blocks],
        "catoni": [(Catoni(tau), oracle.catoni(tau)) for tau in taus],
        "auto": [
            (Adaptive(omega, 0.4, tau), oracle.adaptive(omega, 0.4, tau))
            for omega, tau in ((np.inf, per_entry), (1.0, 0.2))
        ],
    }
    return [(robust.calibrate(), steps) for robust, steps in settings[name]]


def known(registry, definitions):
    """Names to compare; one without a definition is still held to the conformance checks."""
    return [name for name in registry if name in definitions]


LOSSES = known(Loss.registry, oracle.LOSSES)
ROBUST = ["none", "truncate", "huber", "shrink", "normclip", "mom", "rank", "catoni", "auto"]


def test_the_definitions_cover_what_the_library_came_with():
    assert set(LOSSES) >= {"squared", "huber", "logistic", "multinomial", "poisson", "gamma"}
    assert set(ROBUST) <= set(Robustifier.registry)


@pytest.fixture
def problems(rng, make_theta, make_y):
    """Make (problem, point) for every case of a design."""

    def make(loss, design, n=7, cases=None):
        for d, *case in cases or DESIGNS[design]:
            shape, rank = SHAPES[d]
            theta = make_theta(shape, rank)
            if design == "covariate":
                (d0,) = case
                if loss.name == "multinomial" and d0 == d:
                    continue  # no mode is left for the classes
                X, y = rng.normal(size=(n, *shape[:d0])), make_y(loss, (n, *shape[d0:]))
                yield Problem(Rows(X, y), loss, Covariate()), theta
            else:
                copies, share = case
                y = make_y(loss, (copies, *shape))
                # A response is missing with all its classes.
                unit = (*y.shape[:-1], 1) if loss.name == "multinomial" else y.shape
                y[np.broadcast_to(rng.random(unit) < share, y.shape)] = np.nan
                yield Problem(Rows(None, y), loss, Direct(), missing=share > 0), theta

    return make


def check_against_definition(problem, theta, steps, **extra):
    data = problem.data
    mine = problem.gradient(theta)
    theirs = oracle.gradient(
        theta.blocks, data.X, data.y, oracle.LOSSES[problem.loss.name], steps, **extra
    )
    for block, expected in zip(mine.blocks.blocks, theirs.blocks, strict=True):
        agree(block, expected)
    agree(mine.value, theirs.value)
    agree(mine.truncated, theirs.truncated)
    return theirs


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("robust", ROBUST)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_its_definition(loss, robust, design, problems, rng):
    cases = list(problems(Loss.get(loss), design))
    for i, (problem, theta) in enumerate(cases):
        settings = robustifiers(robust, theta, problem.data.n, rng)
        component, steps = settings[i % len(settings)]
        check_against_definition(replace(problem, robust=component), theta, steps)
    assert i >= 3  # every setting had its turn


@pytest.mark.parametrize("robust", ROBUST)
def test_influence_is_its_definition(robust, problems, rng):
    for loss in ("squared", "poisson"):
        for design in ("covariate", "many tensors", "missing entries"):
            cases = {"covariate": [(2, 1), (3, 3), (4, 2)]}.get(design, DESIGNS[design][1:3])
            for problem, theta in problems(Loss.get(loss), design, cases=cases):
                plain = check_against_definition(problem, theta, oracle.Steps())
                for component, steps in robustifiers(robust, theta, problem.data.n, rng):
                    robustified = replace(problem, robust=component)
                    bent = check_against_definition(robustified, theta, steps)
                    agree(robustified.influence(theta), oracle.influence(bent, plain))


def test_thresholds_bind_somewhere_in_these_tests(problems, rng):
    """Else the comparisons above would say nothing about them."""
    for name in ("truncate", "normclip", "catoni", "auto", "huber", "shrink"):
        ((problem, theta),) = problems(Squared(), "covariate", cases=[(3, 2)])
        component, _ = robustifiers(name, theta, problem.data.n, rng)[0]
        share = replace(problem, robust=component).influence(theta).mean()
        assert 0.05 < share < 0.99, name


@pytest.mark.parametrize("robust", ROBUST)
@pytest.mark.parametrize("loss", LOSSES)
def test_vector_covariates_and_weights(loss, robust, rng, make_theta, make_y):
    loss = Loss.get(loss)
    for d, d0 in ((1, 1), (2, 1), (3, 0), (4, 2)):
        if loss.name == "multinomial" and d0 == d:
            continue
        shape, rank = SHAPES[d]
        theta = make_theta(shape, rank, linear=(2, *shape[d0:]))
        X, Z = rng.normal(size=(9, *shape[:d0])), rng.normal(size=(9, 2))
        y, weight = make_y(loss, (9, *shape[d0:])), rng.uniform(0.5, 2.0, size=9)
        for component, steps in robustifiers(robust, theta, 9, rng):
            problem = Problem(Rows(X, y, Z, weight), loss, Covariate(), component)
            check_against_definition(problem, theta, steps, Z=Z, weight=weight)
            agree(problem.predictors(theta), predictors(theta, X, Z))


def predictors(theta, X, Z):
    A = oracle.full(theta.core, theta.factors)
    return np.array(
        [
            np.tensordot(x, A, axes=x.ndim) + np.tensordot(z, theta.linear, 1)
            for x, z in zip(X, Z, strict=True)
        ]
    )


@pytest.mark.parametrize("robust", ROBUST)
def test_centre_is_subtracted_from_the_covariates(robust, rng, make_theta):
    for d, d0 in ((1, 1), (2, 0), (3, 2), (4, 3)):
        shape, rank = SHAPES[d]
        theta = make_theta(shape, rank)
        X, y = rng.normal(3.0, size=(8, *shape[:d0])), rng.normal(size=(8, *shape[d0:]))
        center = np.asarray(X.mean(axis=0))
        for component, steps in robustifiers(robust, theta, 8, rng):
            problem = Problem(Rows(X, y), Squared(), Covariate(center), component)
            check_against_definition(problem, theta, steps, center=center)
            centred = replace(problem, data=Rows(X - center, y), design=Covariate())
            agree(problem.influence(theta), centred.influence(theta))
            agree(problem.curvature(theta), centred.curvature(theta))
            agree(problem.predictors(theta), centred.predictors(theta))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("robust", ROBUST)
def test_chunks_do_not_matter(robust, design, problems, rng):
    cases = {"covariate": [(2, 1), (3, 3)]}.get(design, DESIGNS[design][1:2])
    for problem, theta in problems(Squared(), design, cases=cases):
        for component, _ in robustifiers(robust, theta, problem.data.n, rng):
            whole = replace(problem, robust=component)
            for chunk in (1, 4):
                cut = replace(whole, data=Rows(problem.data.X, problem.data.y, chunk=chunk))
                same_answers(cut, whole, theta)


def same_answers(one, other, theta):
    mine, theirs = one.gradient(theta), other.gradient(theta)
    for a, b in zip(mine.blocks.blocks, theirs.blocks.blocks, strict=True):
        agree(a, b)
    agree(mine.value, theirs.value)
    agree(one.curvature(theta), other.curvature(theta))
    agree(one.entry_curvature(theta), other.entry_curvature(theta))


@pytest.mark.parametrize("robust", sorted(set(ROBUST) - {"mom", "rank"}))
def test_order_of_samples_does_not_matter_and_weights_are_repetitions(
    robust, rng, make_theta, make_y
):
    shape, rank = SHAPES[3]
    theta = make_theta(shape, rank, linear=(1, 3))
    X, y, Z = rng.normal(size=(8, 4, 2)), rng.normal(size=(8, 3)), rng.normal(size=(8, 1))
    weight = rng.integers(1, 4, size=8).astype(float)
    order, rows = rng.permutation(8), np.repeat(np.arange(8), weight.astype(int))
    for component, _ in robustifiers(robust, theta, 8, rng):
        problem = Problem(Rows(X, y, Z), Squared(), Covariate(), component)
        permuted = replace(problem, data=Rows(X[order], y[order], Z[order]))
        same_answers(permuted, problem, theta)
        agree(permuted.influence(theta), problem.influence(theta)[order])
        weighted = replace(problem, data=Rows(X, y, Z, weight))
        repeated = replace(problem, data=Rows(X[rows], y[rows], Z[rows]))
        for a, b in zip(
            weighted.gradient(theta).blocks.blocks,
            repeated.gradient(theta).blocks.blocks,
            strict=True,
        ):
            agree(a, b)
        agree(weighted.gradient(theta).value, repeated.gradient(theta).value)
        agree(weighted.curvature(theta), repeated.curvature(theta))


def nudged(theta, k, index, h):
    blocks = [block.copy() for block in theta.blocks]
    blocks[k][index] += h
    return theta.with_blocks(blocks)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_the_derivative_of_the_mean_loss(loss, design, problems):
    cases = {"covariate": [(1, 1), (3, 0), (3, 2)]}.get(design, DESIGNS[design][2:3])
    for problem, theta in problems(Loss.get(loss), design, cases=cases):
        exact = flat(problem.gradient(theta).blocks.blocks)
        slope, finer = (slopes(problem, theta, h) for h in (2e-3, 1e-3))
        smooth = np.abs(slope - finer) < 1e-7 * (
            1 + np.abs(finer)
        )  # else a kink of the Huber loss lies in between
        assert smooth.mean() > (0.5 if loss == "huber" else 0.99)
        np.testing.assert_allclose(exact[smooth], finer[smooth], rtol=1e-7, atol=1e-7)


def slopes(problem, theta, h):
    """Central differences of fourth order of the mean loss, in every parameter."""
    out = []
    for k, block in enumerate(theta.blocks):
        for index in np.ndindex(block.shape):
            low2, low, high, high2 = (
                problem.gradient(nudged(theta, k, index, t * h)).value for t in (-2, -1, 1, 2)
            )
            out.append((8 * (high - low) - (high2 - low2)) / (12 * h))
    return np.array(out)


def jacobian(problem, theta):
    """Derivatives (n, entries, parameters) of the predictors; exact, as η is linear in each one."""

    def eta(point):
        out = problem.design.linearise(point, problem.data.X, problem.data.Z)[0]
        return np.broadcast_to(out, problem.data.y.shape).reshape(problem.data.n, -1)

    columns = [
        (eta(nudged(theta, k, index, 1.0)) - eta(nudged(theta, k, index, -1.0))) / 2
        for k, block in enumerate(theta.blocks)
        for index in np.ndindex(block.shape)
    ]
    return np.stack(columns, axis=-1)


def flat(blocks):
    return np.concatenate([np.ravel(block) for block in blocks])


@pytest.mark.parametrize("robust", ["none", "truncate", "huber", "catoni", "auto"])
@pytest.mark.parametrize("loss", LOSSES)
def test_curvature_is_the_gauss_newton_matrix(loss, robust, problems, rng):
    """Its weights: the loss's, and what bending left of each score and each gradient entry."""
    definition = oracle.LOSSES[loss]
    for design in ("covariate", "one tensor", "many tensors", "missing entries"):
        cases = {"covariate": [(1, 1), (3, 2), (3, 0)]}.get(design, DESIGNS[design][1:2])
        for problem, theta in problems(Loss.get(loss), design, cases=cases):
            component, steps = robustifiers(robust, theta, problem.data.n, rng)[0]
            data, J = problem.data, jacobian(problem, theta)
            plain = oracle.gradient(theta.blocks, data.X, data.y, definition)
            bent = oracle.gradient(theta.blocks, data.X, data.y, definition, steps)
            expected = 0.0
            for i, (raw, new) in enumerate(zip(plain.samples, bent.samples, strict=True)):
                weight = np.ravel(definition.weight(raw.eta, data.y[i]))
                weight = np.where(np.isnan(np.ravel(data.y[i])), 0.0, weight)
                weight = weight * left(steps.score, np.ravel(raw.score))
                kept = [left(partial(steps.sample, k=k), g) for k, g in enumerate(new.raw)]
                W = np.diag(weight)
                if loss == "multinomial":
                    p = definition.weight(raw.eta, data.y[i])
                    W -= coupling(p, data.y[i], weight) * flat(kept).min()
                expected = expected + flat(kept)[:, None] * (J[i].T @ W @ J[i])
            mine = replace(problem, robust=component).curvature(theta)
            np.testing.assert_allclose(mine, expected / data.n, rtol=1e-6, atol=1e-6)


def coupling(p, y, weight):
    """``P(true class) p pᵀ`` in each group of classes; the last axis holds the classes."""
    blocks = [
        np.outer(w, row) * np.nansum(row * true)
        for w, row, true in zip(
            weight.reshape(-1, p.shape[-1]),
            p.reshape(-1, p.shape[-1]),
            y.reshape(-1, p.shape[-1]),
            strict=True,
        )
    ]
    return block_diag(*blocks)


def left(bend, raw):
    """Ratio of bent to raw."""
    with np.errstate(invalid="ignore"):
        return np.where(raw == 0, 1.0, bend(raw) / raw)


def test_curvature_is_the_derivative_of_the_gradient_where_residuals_vanish(rng, make_theta):
    shape, rank = SHAPES[3]
    theta = make_theta(shape, rank, linear=(2, 3))
    X, Z = rng.normal(size=(9, 4, 2)), rng.normal(size=(9, 2))
    y = predictors(theta, X, Z)
    problem = Problem(Rows(X, y, Z), Squared(), Covariate())
    matrix = problem.curvature(theta)
    h, row = 1e-4, 0
    for k, block in enumerate(theta.blocks):
        for index in np.ndindex(block.shape):
            high, low = (
                flat(problem.gradient(nudged(theta, k, index, t)).blocks.blocks) for t in (h, -h)
            )
            np.testing.assert_allclose(matrix[row], (high - low) / (2 * h), rtol=1e-6, atol=1e-6)
            row += 1
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_entry_curvature_is_its_definition(loss, problems):
    definition = oracle.LOSSES[loss]
    for design in ("many tensors", "missing entries"):
        for problem, theta in problems(Loss.get(loss), design):
            y = problem.data.y
            eta = np.broadcast_to(oracle.full(theta.core, theta.factors), y.shape)
            weight = np.where(np.isnan(y), 0.0, definition.weight(eta, y))
            agree(problem.entry_curvature(theta), weight.mean(axis=0))


@pytest.mark.parametrize("robust", ["none", "huber", "shrink"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_of_the_full_tensor(loss, robust, problems, rng):
    for problem, theta in problems(Loss.get(loss), "covariate"):
        component, steps = robustifiers(robust, theta, problem.data.n, rng)[0]
        data = problem.data
        samples = oracle.gradient(theta.blocks, data.X, data.y, oracle.LOSSES[loss], steps).samples
        tensor, linear = replace(problem, robust=component).tensor_gradient(theta)
        agree(tensor, sum(sample.tensor for sample in samples) / data.n)
        assert linear is None


def test_gradient_of_the_full_tensor_with_centre_weights_and_vector_covariates(rng, make_theta):
    shape, rank = SHAPES[3]
    theta = make_theta(shape, rank, linear=(2, 3))
    X, Z = rng.normal(1.0, size=(9, 4, 2)), rng.normal(size=(9, 2))
    y, weight, center = rng.normal(size=(9, 3)), rng.uniform(0.5, 2.0, size=9), X.mean(axis=0)
    residual = predictors(theta, X - center, Z) - y
    weighted = Problem(Rows(X, y, Z, weight, chunk=4), Squared(), Covariate(center))
    tensor, _ = weighted.tensor_gradient(theta)
    agree(tensor, np.einsum("n,nab,nc->abc", weight, X - center, residual) / weight.sum())

    problem = replace(weighted, data=Rows(X, y, Z))
    _, step = problem.tensor_gradient(theta)  # of least squares: the whole way
    agree(step, np.linalg.lstsq(Z, residual, rcond=None)[0])
    for posed in (
        problem,
        weighted,
        replace(weighted, robust=Adaptive(3.0, 0.4, np.inf).calibrate()),
    ):
        blocks, step = block_gradients([posed], [theta])[0]
        agree(step, posed.tensor_gradient(theta)[1])
        for mine, theirs in zip(blocks.blocks, posed.gradient(theta).blocks.blocks, strict=True):
            agree(mine, theirs)
    direction = rng.normal(size=shape)
    moved = np.tensordot(X - center, direction, axes=2)
    agree(
        problem.pilot(theta).tensor_curvature(Robustifier(), direction),
        np.mean(np.sum(moved**2, axis=1)),
    )
    omega, nu = 3.0, 0.4  # samples shrink as a whole, then weights are what is left of residuals
    scale = np.minimum(1.0, omega / np.linalg.norm((X - center).reshape(9, -1), axis=1))[:, None]
    left = np.minimum(1.0, nu / np.abs(scale * residual))
    agree(
        problem.pilot(theta).tensor_curvature(Adaptive(omega, nu, np.inf).calibrate(), direction),
        np.mean(np.sum(left * (scale * moved) ** 2, axis=1)),
    )


def test_missing_entries_are_as_if_absent(problems):
    """The gradient of one tensor with holes is that of its observed entries alone."""
    for problem, theta in problems(Squared(), "missing entries"):
        y, A = problem.data.y, oracle.full(theta.core, theta.factors)
        filled = replace(problem, data=Rows(None, np.where(np.isnan(y), A, y)), missing=False)
        for a, b in zip(
            problem.gradient(theta).blocks.blocks,
            filled.gradient(theta).blocks.blocks,
            strict=True,
        ):
            agree(a, b)


@pytest.mark.parametrize("chunk", [None, 2])
def test_predictors_of_pca_are_the_tensor(chunk, problems):
    for problem, theta in problems(Squared(), "missing entries"):
        y, A = problem.data.y, oracle.full(theta.core, theta.factors)
        cut = replace(problem, data=Rows(None, y, chunk=chunk))
        agree(cut.predictors(theta), np.broadcast_to(A, y.shape))


def test_huber_loss_with_another_threshold(problems):
    for problem, theta in problems(HuberLoss(nu=0.4), "covariate"):
        data, definition = problem.data, oracle.huber(0.4)
        expected = oracle.gradient(theta.blocks, data.X, data.y, definition)
        mine = problem.gradient(theta)
        for a, b in zip(mine.blocks.blocks, expected.blocks, strict=True):
            agree(a, b)
        agree(mine.value, expected.value)


def test_gradient_has_the_type_of_its_point(rng, make_theta):
    X, Z, y = rng.normal(size=(5, 3)), np.ones((5, 1)), rng.normal(size=5)
    affine = make_theta((3,), (2,), linear=(1,))
    problem = Problem(Rows(X, y, Z), Squared(), Covariate())
    assert type(problem.gradient(affine).blocks) is Affine
    assert [b.shape for b in problem.gradient(affine).blocks.blocks] == [(2,), (3, 2), (1,)]


@pytest.mark.parametrize("robust", ROBUST)
def test_single_precision_is_kept(robust, rng, make_theta):
    theta = make_theta((4, 2, 3), (2, 2, 3)).map(lambda block: block.astype(np.float32))
    X, y = rng.normal(size=(9, 4, 2)).astype("f4"), rng.normal(size=(9, 3)).astype("f4")
    for component, _ in robustifiers(robust, theta, 9, rng):
        problem = Problem(Rows(X, y), Squared(), Covariate(), component)
        blocks = problem.gradient(theta).blocks.blocks
        assert {block.dtype for block in blocks} == {np.dtype("f4")}
        assert problem.curvature(theta).dtype == np.dtype("f4")


def test_curvatures_are_of_those_problems_that_are_asked(rng, make_theta):
    X, y = rng.normal(size=(40, 4, 3)), rng.normal(size=40)
    problem = Problem(Rows(X, y, chunk=15), Squared(), Covariate(), Truncate(0.5).calibrate())
    thetas = [make_theta((4, 3), (2, 2)) for _ in range(3)]
    asked = [Asked(), Asked(curvature=True, correction=True, tensor=True), Asked(curvature=True)]
    for mine, theta, one in zip(
        gradients([problem] * 3, thetas, curvature=asked), thetas, asked, strict=True
    ):
        alone = problem.gradient(theta, curvature=True)
        agree(mine.blocks.flat(), alone.blocks.flat())
        for name in ("curvature", "correction", "tensor"):
            found = getattr(mine, name)
            assert (found is not None) is getattr(one, name)
            if found is not None:
                agree(found, getattr(alone, name))


@pytest.mark.parametrize("correction", [False, True])
def test_a_second_matrix_is_made_where_a_correction_is_asked_for(
    correction, rng, make_theta, monkeypatch
):
    made, normal = [], Kernel._normal_matrices

    def watched(kernel, line, pairs, **options):
        made.append(len(pairs))
        return normal(kernel, line, pairs, **options)

    monkeypatch.setattr(Kernel, "_normal_matrices", watched)
    X, y = rng.normal(size=(40, 4, 3)), rng.normal(size=40)
    problem = Problem(Rows(X, y), Squared(), Covariate(), Truncate(0.5).calibrate())
    gradients([problem], [make_theta((4, 3), (2, 2))], curvature=[Asked(True, correction)])
    assert made == [1 + correction]


def knows(problem, theta):
    return problem.swept is not None and problem.swept.theta is theta


def known(robust, loss="squared", response=(), rng=None, weight=None):
    """A problem that has chosen its thresholds, where, and how often it had read its samples."""
    X, Z = rng.normal(size=(90, 5, 4)), np.ones((90, 1))
    y = rng.standard_t(2, size=(90, *response))
    y = np.floor(np.abs(y)) if loss == "poisson" else y
    data = Rows(X, y, Z, weight)
    problem = Problem(data, Loss.get(loss), Covariate(rng.normal(size=(5, 4))), robust)
    factors = [np.linalg.qr(rng.normal(size=(p, 2)))[0] for p in (5, 4, *response)]
    core = rng.normal(size=(2,) * len(factors))
    theta = Affine(core, factors, rng.normal(size=(1, *response))).canonical()
    problem = problem.calibrate(theta)
    return problem, theta, data.reads.passes


@pytest.mark.parametrize(
    ("robust", "options"),
    [
        (Adaptive(), {}),
        (Adaptive(), {"loss": "poisson"}),  # shrunk
        (Adaptive(omega=2.0), {}),
        (Adaptive(), {"response": (3,)}),
        (Adaptive(), {"weight": np.linspace(0.1, 2, 90)}),
        (Truncate("auto"), {}),
        (NormClip("auto"), {}),
    ],
)
def test_where_thresholds_were_chosen_samples_need_no_other_sweep(robust, options, rng):
    problem, theta, before = known(robust, rng=rng, **options)
    anew = replace(problem)
    assert knows(problem, theta)
    assert not knows(anew, theta)
    mine, theirs = problem.gradient(theta, curvature=True), anew.gradient(theta, curvature=True)
    agree(mine.blocks.flat(), theirs.blocks.flat())
    for name in ("value", "truncated", "curvature", "correction", "tensor"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), atol=1e-12)
    assert problem.data.reads.passes == before + 1  # that of the one that did not know


@pytest.mark.parametrize(
    ("robust", "options"),
    [
        (Adaptive(tau=0.5), {}),
        (Adaptive(), {"loss": "poisson"}),
        (Adaptive(omega=2.0), {}),
        (Adaptive(nu=0.1), {"response": (3,)}),
    ],
)
def test_nor_to_tell_who_was_cut_there(robust, options, rng):
    problem, theta, before = known(robust, rng=rng, **options)
    found = problem.influence(theta)
    assert problem.data.reads.passes == before
    assert found.max() > 0
    np.testing.assert_allclose(found, replace(problem).influence(theta), atol=1e-12)


def test_a_fit_looks_who_was_cut_where_it_swept_its_samples_last(rng, monkeypatch):
    """A step of less than a two-hundredth of A before its end, where they look about the same."""
    X = rng.normal(size=(600, 6, 5))
    y = 3 * X[:, 0, 0] + 2 * X[:, 1, 2] + rng.normal(size=600)
    y[:20] += 30
    points, influence = [], Problem.influence

    def watched(problem, theta):
        points.append((problem, theta))
        return influence(problem, theta)

    monkeypatch.setattr(Problem, "influence", watched)
    model = TensorRegressor(2).fit(X, y)
    ((problem, theta),) = points
    last = [step.change for step in model.result_.history]
    end = model.result_.theta
    assert len(last) == 1
    assert last[0] < 5e-3
    assert knows(problem, theta)
    assert model.influence_.max() > 0.5
    np.testing.assert_allclose(model.influence_, influence(problem, end), atol=0.01)
    monkeypatch.setattr("tauten.estimators.base.NEAR", last[0] / 2)  # a longer step
    longer = TensorRegressor(2).fit(X, y)
    assert points[-1][1] is longer.result_.theta
    monkeypatch.setattr("tauten.estimators.base.NEAR", 5e-3)
    exact = TensorRegressor(2, solver="newton:tol=1e-12").fit(X, y)
    assert points[-1][1] is exact.result_.theta
    assert len(exact.result_.history) > 1
    monkeypatch.setattr(PilotFit, "swept", lambda pilot, robust: None)  # as where they are many
    many = TensorRegressor(2).fit(X, y)
    assert len(many.result_.history) == 1
    assert points[-1][1] is many.result_.theta


def test_elsewhere_or_with_anything_else_they_do(rng):
    problem, theta, _ = known(Truncate("auto"), rng=rng)
    near = theta.map(lambda block: block + 1e-3)
    agree(problem.gradient(near).blocks.flat(), replace(problem).gradient(near).blocks.flat())
    for change in (
        {"robust": Truncate(0.1).calibrate()},
        {"data": problem.data.reweight(rng.random(90))},
        {"loss": HuberLoss(0.1)},
    ):
        assert not knows(replace(problem, **change), theta)


@pytest.mark.parametrize("robust", [Truncate(1.0), Shrink("auto"), Robustifier()])
def test_thresholds_that_need_no_sweep_make_none(robust, rng):
    """Cross-validation has many of them, and goes on from elsewhere."""
    problem, theta, _ = known(robust, rng=rng)
    assert not knows(problem, theta)


def test_samples_that_are_not_all_tell_nothing(rng, monkeypatch):
    monkeypatch.setattr("tauten.problem.problem.PILOT_SIZE", 45)
    problem, theta, _ = known(Truncate("auto"), rng=rng)
    assert not knows(problem, theta)
