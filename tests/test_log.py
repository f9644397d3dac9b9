"""The log: silent by default, and true when asked."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import tauten as tt
from tauten import _log
from tauten.kernels import in_use


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 300, shape=(5, 4), noise="t:1.5", rng=0)


def events(caplog, name):
    return [record.facts for record in caplog.records if record.event == name]


def test_a_fit_tells_what_it_did(data, caplog):
    caplog.set_level(logging.DEBUG, "tauten")
    model = tt.TensorRegressor(rank=1, init="spectral").fit(data.X, data.y)
    assert events(caplog, "start") == [{"init": "spectral", "rank": (1, 1)}]
    last = events(caplog, "thresholds")[-1]
    assert last["robust"] == "auto"
    assert last["nu_"] == model.robust_.nu_
    (fit,) = events(caplog, "fit")
    assert fit == {
        "estimator": "TensorRegressor",
        "n": 300,
        "rank": (1, 1),
        "sweep": in_use(),
        "passes": model.result_.n_passes,
    }


def test_a_descent_tells_its_iterations_and_why_it_stopped(data, caplog):
    caplog.set_level(logging.DEBUG, "tauten")
    result = tt.robust_gradient_descent(data.X, data.y, data.truth, tau=5.0, n_iter=3)
    told = events(caplog, "iteration")
    assert [facts["value"] for facts in told] == [step.value for step in result.history]
    (stop,) = events(caplog, "stop")
    assert (stop["solver"], stop["n_iter"], stop["reason"]) == ("gd", 3, result.reason)
    assert "reason='took the 3 steps asked for'" in caplog.text


def test_iterations_are_told_at_debug_only(data, caplog):
    caplog.set_level(logging.INFO, "tauten")
    tt.robust_gradient_descent(data.X, data.y, data.truth, tau=5.0, n_iter=3)
    assert not events(caplog, "iteration")
    assert len(events(caplog, "stop")) == 1


def test_thresholds_by_block_are_told_by_their_median(data, caplog):
    caplog.set_level(logging.INFO, "tauten")
    model = tt.TensorRegressor(rank=1, robust="truncate").fit(data.X, data.y)
    entries = np.concatenate([np.ravel(block) for block in model.robust_.tau_])
    assert events(caplog, "thresholds")[-1]["tau_"] == np.median(entries)


def test_thresholds_are_of_the_factors_that_steps_move(caplog, rng):
    """However a start's factors are turned: Newton turns them before it steps."""
    truth = {"shape": (5, 4), "rank": 2, "reading": "random", "norm": 2.0}
    data = tt.datasets.make_model("I", 300, covariates="t:2.1", **truth, rng=0)
    turned = data.truth.rotate([np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2)])
    caplog.set_level(logging.INFO, "tauten")
    for start in (data.truth.canonical(), turned):
        tt.TensorRegressor(rank=2, init=start, robust="truncate").fit(data.X, data.y)
    told = [facts["tau_"] for facts in events(caplog, "thresholds")]
    assert told[:2] == pytest.approx(told[2:], rel=1e-6)


def test_silent_and_free_by_default(caplog):
    _log.tell("start", lambda: pytest.fail("facts were looked for"), logging.DEBUG)
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("tauten").handlers)
    code = (
        "import tauten as tt; d = tt.datasets.make_model('I', 200, shape=(4, 4), rng=0);"
        "tt.TensorRegressor(1).fit(d.X, d.y)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == run.stderr == ""
