"""Algorithm 1 against its naive loop; its callback, history, divergence and bad input."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
import tauten as tt

SHAPE, RANK = (4, 2, 3), (2, 2, 3)
# Name: order of the covariates (None: PCA), loss, threshold.
CASES = {
    "scalar response": (3, "squared", 0.4),
    "scalar response, vanilla": (3, "squared", np.inf),
    "tensor response": (1, "squared", 0.2),
    "tensor response, vanilla": (2, "squared", np.inf),
    "scalar covariate": (0, "squared", 0.5),
    "logistic": (3, "logistic", 0.1),
    "logistic, vanilla": (3, "logistic", np.inf),
    "poisson, a threshold per block": (2, "poisson", [0.5, 0.2, 0.3, 0.1]),
    "multinomial": (2, "multinomial", 0.1),
    "pca": (None, "squared", 0.5),
    "pca, vanilla": (None, "squared", np.inf),
    "pca, missing": (None, "squared", 0.5),
    "pca, multinomial": (None, "multinomial", 0.5),
}


@pytest.fixture
def case(rng, make_theta, make_y):
    def make(name, n=12):
        d0, loss, tau = CASES[name]
        X = None if d0 is None else rng.normal(size=(n, *SHAPE[:d0]))
        y = make_y(tt.losses.Loss.get(loss), (n, *SHAPE[d0 or 0 :]))
        if "missing" in name:
            y[rng.random(y.shape) < 0.2] = np.nan
        return X, y, make_theta(SHAPE, RANK), loss, tau

    return make


@pytest.mark.parametrize("name", CASES)
def test_five_iterations_of_the_naive_loop(name, case):
    X, y, theta, loss, tau = case(name)
    settings = {"tau": tau, "step": 0.05, "a": 0.7, "b": 1.3, "n_iter": 5}
    seen = []
    result = tt.robust_gradient_descent(
        X, y, theta, loss=loss, callback=lambda *args: seen.append(args), **settings
    )
    iterates, gradients = oracle.algorithm1(theta.blocks, X, y, oracle.LOSSES[loss], **settings)

    for mine, theirs in zip(result.theta.blocks, iterates[-1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
    assert (result.n_iter, result.converged) == (5, True)
    assert result.reason == "took the 5 steps asked for"
    assert [record for record, _ in seen] == result.history
    assert len(result.history) == 5
    for t, (record, point) in enumerate(seen, start=1):
        for mine, theirs in zip(point.blocks, iterates[t], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
        old, new = (oracle.full(blocks[0], blocks[1:]) for blocks in iterates[t - 1 : t + 1])
        change = np.linalg.norm(new - old) / np.linalg.norm(new)
        np.testing.assert_allclose(record.change, change, rtol=1e-8)
        np.testing.assert_allclose(record.value, gradients[t - 1].value, rtol=1e-10)
        np.testing.assert_allclose(record.truncated, gradients[t - 1].truncated, atol=1e-12)
        assert record.t == t
    bound = not np.all(np.isinf(np.asarray(tau)))
    assert bound == (max(result.history[0].truncated) > 0)


def test_a_true_callback_stops(case):
    X, y, theta, *_ = case("tensor response")
    calls = []

    def third(record, point):
        calls.append(record.t)
        return record.t == 3

    result = tt.robust_gradient_descent(X, y, theta, tau=1.0, n_iter=50, callback=third)
    assert calls == [1, 2, 3]
    assert (result.n_iter, result.converged, len(result.history)) == (3, False, 3)
    assert "callback" in result.reason


def test_another_robustifier_in_place_of_truncation(case):
    X, y, theta, *_ = case("tensor response")
    run = {"tau": 9.0, "n_iter": 3, "step": 0.05}
    mine = tt.robust_gradient_descent(X, y, theta, robust="huber:nu=0.3", **run)
    other = tt.robust_gradient_descent(X, y, theta, robust=tt.robust.Truncate(0.2), **run)
    plain = tt.robust_gradient_descent(X, y, theta, tau=np.inf, n_iter=3, step=0.05)
    truncated = tt.robust_gradient_descent(X, y, theta, tau=0.2, n_iter=3, step=0.05)
    assert mine.theta.distance(plain.theta) > 1e-6
    assert other.theta.distance(truncated.theta) < 1e-12


def test_the_start_is_not_changed(case):
    X, y, theta, *_ = case("tensor response")
    before = [block.copy() for block in theta.blocks]
    tt.robust_gradient_descent(X, y, theta, tau=1.0, n_iter=3)
    for block, copy in zip(theta.blocks, before, strict=True):
        np.testing.assert_array_equal(block, copy)


@pytest.mark.parametrize("name", ["scalar response", "poisson, a threshold per block", "pca"])
@pytest.mark.parametrize("step", [1.0, 1e3, 1e100, 1e300])
def test_divergence_is_reported_not_raised(name, step, case):
    X, y, theta, loss, _ = case(name)
    result = tt.robust_gradient_descent(X, y, theta, loss=loss, tau=np.inf, step=step)
    assert not result.converged
    assert result.reason.startswith("diverged at iteration ")
    assert result.n_iter == len(result.history) < 300
    for block in result.theta.blocks:
        assert np.all(np.isfinite(block))


def test_truncation_outlives_wild_data(case):
    X, y, theta, *_ = case("tensor response")
    y[0], X[1] = 1e300, 1e150
    result = tt.robust_gradient_descent(X, y, theta, tau=0.1, n_iter=20)
    assert result.converged


def edited(array, value):
    out = np.array(array, dtype=object if isinstance(value, (str, dict)) else None)
    out[(0,) * out.ndim] = value
    return out


# Name: what is passed instead, the error, and what its message must name.
BAD = {
    "nan in X": ({"X": lambda X: edited(X, np.nan)}, ValueError, r"\bX\b"),
    "inf in X": ({"X": lambda X: edited(X, np.inf)}, ValueError, r"\bX\b"),
    "both infs in X": ({"X": lambda X: X * np.inf}, ValueError, r"\bX\b"),
    "nan in Y": ({"Y": lambda Y: edited(Y, np.nan)}, ValueError, r"\bY\b"),
    "inf in Y": ({"Y": lambda Y: edited(Y, -np.inf)}, ValueError, r"\bY\b"),
    "no samples in X": ({"X": lambda X: X[:0]}, ValueError, r"\bX\b"),
    "no samples": ({"X": lambda X: X[:0], "Y": lambda Y: Y[:0]}, ValueError, r"\bY\b"),
    "no entries": ({"X": lambda X: X[:, :0]}, ValueError, r"\bX\b"),
    "a number for X": ({"X": lambda X: 3.0}, ValueError, r"\bX\b"),
    "no Y": ({"Y": lambda Y: None}, ValueError, r"\bY\b"),
    "other lengths": ({"X": lambda X: X[:-1]}, ValueError, r"X and Y .* 11 and 12"),
    "X of another order": ({"X": lambda X: X[:, 0]}, ValueError, "theta0"),
    "Y of another order": ({"Y": lambda Y: Y[:, 0]}, ValueError, "theta0"),
    "strings": ({"X": lambda X: edited(X, "a")}, ValueError, r"\bX\b"),
    "strings in Y": ({"Y": lambda Y: Y.astype(str)[:, :1] + "a"}, ValueError, r"\bY\b"),
    "objects": ({"X": lambda X: edited(X, {})}, TypeError, r"\bX\b"),
    "complex": ({"X": lambda X: X + 1j}, ValueError, r"\bX\b"),
    "ragged": ({"Y": lambda Y: [[1.0], [1.0, 2.0]]}, ValueError, r"\bY\b"),
    "theta0 of another shape": ({"theta0": lambda t: t.with_blocks(
        [t.core, t.factors[0][:-1], *t.factors[1:]])}, ValueError, "theta0"),
    "theta0 of another order": (
        {"theta0": lambda t: tt.Tucker(t.core[0], t.factors[1:])}, ValueError, "theta0"
    ),
    "theta0 full": ({"theta0": lambda t: t.full()}, TypeError, "theta0"),
    "theta0 with nan": ({"theta0": lambda t: t.map(lambda b: b * np.nan)}, ValueError, "theta0"),
    "zero tau": ({"tau": lambda _: 0.0}, ValueError, "tau"),
    "negative tau": ({"tau": lambda _: -1.0}, ValueError, "tau"),
    "nan tau": ({"tau": lambda _: np.nan}, ValueError, "tau"),
    "no tau": ({"tau": lambda _: None}, TypeError, "tau"),
    "a word for tau": ({"tau": lambda _: "large"}, TypeError, "tau"),
    "an array for tau": ({"tau": lambda _: np.ones(4)}, TypeError, "tau"),
    "tau for other blocks": ({"tau": lambda _: [1.0, 1.0]}, ValueError, "tau .* 4 here; got 2"),
    "a negative tau": ({"tau": lambda _: [1.0, 1.0, -1.0, 1.0]}, ValueError, "tau"),
    "zero step": ({"step": lambda _: 0.0}, ValueError, "step"),
    "negative step": ({"step": lambda _: -1.0}, ValueError, "step"),
    "nan step": ({"step": lambda _: np.nan}, ValueError, "step"),
    "a word for step": ({"step": lambda _: "small"}, TypeError, "step"),
    "negative a": ({"a": lambda _: -1.0}, ValueError, "a must"),
    "zero b": ({"b": lambda _: 0.0}, ValueError, "b must"),
    "no iterations": ({"n_iter": lambda _: 0}, ValueError, "n_iter"),
    "half an iteration": ({"n_iter": lambda _: 1.5}, TypeError, "n_iter"),
    "no such loss": ({"loss": lambda _: "logistics"}, ValueError, "loss .*did you mean 'logistic'"),
    "no labels": ({"loss": lambda _: "logistic"}, ValueError, "y must hold 0 or 1"),
    "no shares": ({"loss": lambda _: "multinomial"}, ValueError, "y must hold class shares"),
    "no counts": ({"loss": lambda _: "poisson"}, ValueError, "y must hold counts"),
    "no positives": ({"loss": lambda _: "gamma"}, ValueError, "y must hold numbers > 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name, case):
    changes, error, message = BAD[name]
    X, y, theta, *_ = case("tensor response")
    arguments = {"X": X, "Y": y, "theta0": theta, "tau": 1.0}
    for key, change in changes.items():
        arguments[key] = change(arguments.get(key))
    with pytest.raises(error, match=message):
        tt.robust_gradient_descent(**arguments)


def test_pca_of_infinite_data_is_rejected(case):
    _, y, theta, *_ = case("pca")
    with pytest.raises(ValueError, match=r"\bY\b"):
        tt.robust_gradient_descent(None, y * np.inf, theta, tau=1.0)


def test_lists_and_integers_are_taken(case):
    X, y, theta, *_ = case("tensor response")
    X, y = np.round(3 * X), np.round(3 * y)
    mine = tt.robust_gradient_descent(X.astype(int).tolist(), y.astype(int), theta, tau=1, n_iter=2)
    theirs = tt.robust_gradient_descent(X, y, theta, tau=1.0, n_iter=2)
    assert mine.theta.distance(theirs.theta) < 1e-12
