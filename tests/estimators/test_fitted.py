"""What a fit tells about itself."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from tauten import TensorPCA, TensorRegressor
from tauten.datasets import make_model
from tauten.exceptions import NotConvergedWarning
from tauten.solver import GradientDescent, Newton


@pytest.mark.parametrize("model", ["I", "II"])
@pytest.mark.parametrize("kind", ["adversarial", "random"])
def test_influence_points_at_the_outliers(model, kind):
    data = make_model(model, 400, shape=(5, 4, 3), contamination=0.1, kind=kind, rng=0)
    fitted = TensorRegressor(1).fit(data.X, data.y)
    assert ((fitted.influence_ >= 0) & (fitted.influence_ <= 1)).all()
    bad, good = fitted.influence_[data.outliers], fitted.influence_[~data.outliers]
    assert bad.mean() > 2 * good.mean()
    assert roc_auc_score(data.outliers, fitted.influence_) > 0.85
    assert (TensorRegressor(1, robust="none").fit(data.X, data.y).influence_ == 0).all()


def test_influence_points_at_bad_replicates():
    data = make_model("IV", 60, shape=(5, 4, 3), rng=0)
    data.y[7] *= 40
    influence = TensorPCA(1, replicates=True).fit(data.y).influence_
    assert influence.argmax() == 7


def test_early_stop_is_said_in_words():
    data = make_model("I", 100, shape=(4, 3), noise="t:1.5", rng=0)
    model = TensorRegressor(1, solver=Newton(n_iter=1))
    words = r"TensorRegressor stopped early: not converged in 1 iterations.*larger n_iter"
    with pytest.warns(ConvergenceWarning, match=words) as record:
        model.fit(data.X, data.y)
    assert record[0].filename == __file__  # the line that called fit
    assert not model.result_.converged
    assert model.n_iter_ == 1
    assert np.isfinite(model.coef_).all()


def test_divergence_is_said_in_words():
    data = make_model("I", 100, shape=(4, 3), rng=0)
    model = TensorRegressor(1, solver=GradientDescent(step_size=1e3))
    with pytest.warns(ConvergenceWarning, match=r"diverged at iteration \d+.*smaller step"):
        model.fit(data.X, data.y)
    assert np.isfinite(model.coef_).all()


def test_verbose_writes_lines_to_standard_error(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # as if it were not installed
    data = make_model("I", 100, shape=(4, 3), rng=0)
    TensorRegressor(1).fit(data.X, data.y)
    assert capsys.readouterr() == ("", "")
    model = TensorRegressor(1, verbose=1).fit(data.X, data.y)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) >= model.n_iter_
    assert all(line.startswith("iteration") for line in lines)
    last = model.result_.history[-1]
    assert f"loss {last.value:.6g}" in lines[-1]
    TensorPCA(1, verbose=1).fit(data.X[0])
    assert "iteration    1" in capsys.readouterr().err


def test_thresholds_in_use_are_kept():
    data = make_model("I", 100, shape=(4, 3), noise="t:2", rng=0)
    model = TensorRegressor(1, robust="huber").fit(data.X, data.y)
    residuals = np.abs(data.y - model.predict(data.X))
    # 1.345 robust standard deviations of the residuals, at the fit before the last
    np.testing.assert_allclose(model.robust_.nu_, 1.345 * 1.4826 * np.median(residuals), rtol=0.05)
    assert len(TensorRegressor(1, robust="truncate").fit(data.X, data.y).robust_.tau_) == 4


@pytest.mark.parametrize("n_iter", [1, 2])
def test_influence_is_that_at_the_fit(n_iter):
    """Not where thresholds were chosen, if a long step led from there, or several."""
    data = make_model("I", 300, noise="t:1.5", rng=0)
    with warnings.catch_warnings(action="ignore", category=NotConvergedWarning):
        model = TensorRegressor(1, init="random", solver=f"newton:n_iter={n_iter}")
        model.fit(data.X, data.y)
    problem, theta = model._at_fit(data.X, data.y)
    np.testing.assert_allclose(model.influence_, problem.influence(theta), atol=1e-12)
