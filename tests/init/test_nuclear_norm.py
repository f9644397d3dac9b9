"""The nuclear-norm start against optimality conditions and closed forms, not against itself."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import tauten as tt
from tauten.data import Rows
from tauten.designs import Covariate, Direct
from tauten.init import nuclear, nuclear_literal, start
from tauten.init.matrices import Matricisation, by_response, most_square, singular_value_threshold
from tauten.init.nuclear_norm import vanishing_level, with_shrunk_covariates
from tauten.init.penalised import penalised, smoothness, whole
from tauten.losses import Loss
from tauten.problem import Problem
from tauten.robust import Adaptive

SHAPE = (4, 3, 5)
SCORES = {
    "squared": lambda eta, y: np.clip(eta - y, -0.7, 0.7),
    "logistic": lambda eta, y: 1 / (1 + np.exp(-eta)) - y,
    "poisson": lambda eta, y: np.exp(eta) - y,
}


def example(loss="squared", n=80, seed=0):
    """Covariates, vector covariates that are correlated with them, responses and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, *SHAPE))
    Z = np.column_stack([np.ones(n), X[:, 0, 0, 0] + 0.5 * rng.standard_normal(n)])
    A = 0.3 * np.einsum("i,j,k", *(rng.standard_normal(p) for p in SHAPE))
    eta = np.tensordot(X, A, 3) + Z @ [0.3, 0.5]
    weight = rng.uniform(0.5, 2.0, n)
    return X, Z, Loss.get(loss).draw(np.clip(eta, -3, 2), rng), weight


def nuclear_norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False).sum()


@pytest.mark.parametrize("shape", [(6, 4), (3, 7), (5, 5)])
@pytest.mark.parametrize("level", [0.3, 2.0, 50.0])
def test_threshold_satisfies_the_definition_of_the_proximal_point(shape, level):
    matrix = np.random.default_rng(0).standard_normal(shape)
    shrunk = singular_value_threshold(matrix, level)
    dual = (matrix - shrunk) / level
    assert np.linalg.norm(dual, 2) <= 1 + 1e-12
    assert np.sum(dual * shrunk) == pytest.approx(nuclear_norm(shrunk), abs=1e-10)


@pytest.mark.parametrize("shape", [(10, 10, 10), (2, 3, 4, 5), (7, 2), (5,), (30, 2, 3, 5)])
def test_most_square_has_the_shortest_longer_side(shape):
    split = most_square(shape)
    sides = []
    for choice in itertools.product([False, True], repeat=len(shape)):
        rows = math.prod(p for p, c in zip(shape, choice, strict=True) if c)
        sides.append(max(rows, math.prod(shape) // rows))
    assert max(split.of(np.zeros(shape)).shape) == min(sides)


@pytest.mark.parametrize("split", [Matricisation((1,), (2, 0)), Matricisation((), (0, 1, 2))])
def test_matricisation_is_undone(split):
    tensor = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(split.back(split.of(tensor), tensor.shape), tensor)


def test_rows_of_the_papers_matricisation_are_responses():
    tensor = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(by_response(tensor.shape, 1).of(tensor), tensor.reshape(6, 4).T)
    assert by_response((2, 3, 4), 0).of(tensor).shape == (1, 24)


@pytest.mark.parametrize("loss", list(SCORES))
def test_penalised_fit_satisfies_its_optimality_conditions(loss):
    X, Z, y, weight = example(loss)
    nu = 0.7 if loss == "squared" else np.inf
    robust = Adaptive(np.inf, nu, np.inf).calibrate()
    problem = Problem(Rows(X, y, Z, weight), Loss.get(loss), Covariate(), robust)
    split, level = most_square(SHAPE), 0.08
    fit = penalised(problem, level, split, whole(problem), n_iter=5000, tol=1e-11)
    score = SCORES[loss](np.tensordot(X, fit.core, 3) + Z @ fit.linear, y) * weight / weight.sum()
    gradient, matrix = split.of(np.tensordot(score, X, 1)), split.of(fit.core)
    assert nuclear_norm(matrix) > 0.1
    assert np.linalg.norm(gradient, 2) <= level * (1 + 1e-5)
    assert -np.sum(gradient * matrix) == pytest.approx(level * nuclear_norm(matrix), rel=1e-5)
    assert score @ Z == pytest.approx(np.zeros(2), abs=1e-6)


def test_on_one_row_the_penalty_is_the_euclidean_norm():
    X, _, y, _ = example()
    flat, level = X.reshape(len(X), -1), 0.2
    gram, cross = flat.T @ flat / len(X), flat.T @ y / len(X)

    def ridge(mu):
        return np.linalg.solve(gram + mu * np.eye(len(gram)), cross)

    mu = brentq(lambda m: m * np.linalg.norm(ridge(m)) - level, 1e-8, 1e4, xtol=1e-14)
    problem = Problem(Rows(X, y), Loss.get("squared"), Covariate())
    split = by_response(SHAPE, 0)
    fit = penalised(problem, level, split, whole(problem), n_iter=5000, tol=1e-12)
    assert fit.core.ravel() == pytest.approx(ridge(mu), abs=1e-8)


def test_penalty_that_leaves_nothing_of_the_tensor():
    X, _, y, _ = example()
    problem, split = Problem(Rows(X, y), Loss.get("squared"), Covariate()), most_square(SHAPE)
    zero = whole(problem)
    most = vanishing_level(problem, split, zero)
    assert np.all(penalised(problem, 1.001 * most, split, zero).core == 0)
    assert np.any(penalised(problem, 0.999 * most, split, zero).core != 0)


def test_smoothness_is_the_largest_eigenvalue():
    X, _, y, _ = example()
    problem = Problem(Rows(X, y), Loss.get("squared"), Covariate())
    flat = X.reshape(len(X), -1)
    largest = np.linalg.eigvalsh(flat.T @ flat / len(X))[-1]
    assert largest <= smoothness(problem, whole(problem)) <= 1.15 * largest


def test_covariates_are_shrunk_about_their_center_and_responses_left():
    X, Z, y, weight = example()
    center = X.mean(axis=0)
    problem = Problem(Rows(X, y, Z, weight), Loss.get("squared"), Covariate(center))
    shrunk = with_shrunk_covariates(problem, 6.0).data
    norms = np.linalg.norm((X - center).reshape(len(X), -1), axis=1)
    shrunk_norms = np.linalg.norm((shrunk.X - center).reshape(len(X), -1), axis=1)
    assert shrunk_norms == pytest.approx(np.minimum(norms, 6.0))
    assert shrunk.y is y
    assert shrunk.Z is Z
    assert shrunk.weight is weight


@pytest.mark.parametrize("init", [nuclear, nuclear_literal])
@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_start_points_to_the_truth(init, model):
    data = tt.datasets.make_model(model, 1500, rng=0)
    loss = Loss.get("logistic" if model == "III" else "squared")
    Z = np.ones((len(data.y), 1))
    theta = init(Problem(Rows(data.X, data.y, Z), loss, Covariate()), (1, 1, 1))
    fit, truth = theta.full(), data.truth.full()
    cosine = np.sum(fit * truth) / np.linalg.norm(fit) / np.linalg.norm(truth)
    assert cosine > 0.9
    assert theta.linear.shape == (1, *data.y.shape[1:])


def test_start_withstands_wild_samples():
    data = tt.datasets.make_model("I", 600, rng=0)
    X, y = data.X.copy(), data.y.copy()
    X[:20] *= 1e4
    y[10:30] = 1e6
    theta = nuclear(Problem(Rows(X, y), Loss.get("squared"), Covariate()), (1, 1, 1))
    assert tt.metrics.relative_error(theta, data.truth) < 0.4


def test_the_most_square_matricisation_starts_nearer():
    data = tt.datasets.make_model("I", 500, rng=1)
    problem = Problem(Rows(data.X, data.y), Loss.get("squared"), Covariate())
    square, literal = (f(problem, (1, 1, 1)) for f in (nuclear, nuclear_literal))
    near, far = (tt.metrics.relative_error(t, data.truth) for t in (square, literal))
    assert near < 0.5 * far


@pytest.mark.parametrize("name", ["nuclear", "nuclear-literal", "restarts", "iht"])
def test_starts_of_regression_are_refused_to_pca(name):
    problem = Problem(Rows(None, np.ones((1, 3, 3))), Loss.get("squared"), Direct())
    with pytest.raises(ValueError, match="decompose, pseudo-huber, random for this model"):
        start(name, problem, (1, 1), np.random.default_rng(0))
