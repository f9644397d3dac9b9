"""The declarations, number by number against the paper."""

import math

import numpy as np
import pytest

from tauten.datasets import truth
from tauten.experiments import EXPERIMENTS, Settings
from tauten.experiments.base import theory_threshold

# cells, models, sample sizes, methods, start, measure
PAPER = {
    "exp01": (60, "I II", [20, 40, 80, 160, 320], "RGD", "truth", "settled"),
    "exp02": (120, "I II", [400, 800, 1600, 3200, 6400], "RGD", "truth", "-log error"),
    "exp03": (50, "I II", [300, 400, 500, 600, 700], "RGD", "truth", "error"),
    "exp04": (8, "I II", [500], "VGD RGD HUB", "data", "log error"),
    "exp05": (30, "III", [20, 40, 80, 160, 320], "RGD", "truth", "settled"),
    "exp06": (25, "III", [300, 400, 500, 600, 700], "RGD", "truth", "error"),
    "exp07": (2, "III", [500], "VGD RGD", "data", "log error"),
    "exp08": (30, "IV", [400, 800, 1600, 3200, 6400], "RGD", "truth", "-log error"),
    "exp09": (25, "IV", [300, 400, 500, 600, 700], "RGD", "truth", "error"),
    "exp10": (2, "IV", [500], "VGD RGD HUB", "data", "log error"),
}


def test_all_ten_are_there():
    assert list(EXPERIMENTS) == list(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_grid(name):
    experiment = EXPERIMENTS[name]
    cells, models, sizes, methods, start, measure = PAPER[name]
    assert len(experiment.grid) == cells == len({cell.key for cell in experiment.grid})
    assert sorted({cell.model for cell in experiment.grid}) == models.split()
    assert sorted({cell.n for cell in experiment.grid}) == sizes
    assert experiment.methods == tuple(methods.split())
    assert (experiment.start, experiment.measure) == (start, measure)
    assert Settings().replications == 200
    assert experiment.chosen(Settings())[-1] == "auto"


@pytest.mark.parametrize("name", PAPER)
def test_quick_is_a_part_of_the_grid_with_every_claim_testable(name):
    experiment = EXPERIMENTS[name]
    quick = experiment.cells(Settings(quick=True))
    assert set(quick) <= set(experiment.grid)
    if name in {"exp02", "exp08"}:
        series = {cell.series for cell in quick}
        assert {s for s in series if s >= 1} != {1.0}
        assert len({cell.x for cell in quick}) >= 3


def find(name, **wanted):
    cells = EXPERIMENTS[name].grid
    return [c for c in cells if all(getattr(c, k) == v for k, v in wanted.items())]


def test_distributions():
    assert {c.covariates for c in find("exp01", series=0.4)} == {"t:2.8"}
    assert {c.noise for c in find("exp01")} == {"t:1.5"}
    assert {c.covariates for c in find("exp02")} == {"normal", "t:3"}
    assert {c.noise for c in find("exp02", series=1.6)} == {"t:2.6"}
    assert {c.noise for c in find("exp08", series=0.1)} == {"t:1.1"}
    assert {(c.covariates, c.noise) for c in find("exp04", x="t2.1/t1.2")} == {("t:2.1", "t:1.2")}
    assert [c.covariates for c in find("exp07")] == ["normal", "t:2.1"]
    assert [c.noise for c in find("exp10")] == ["normal", "t:1.2"]


@pytest.mark.parametrize("name", ["exp03", "exp06", "exp09"])
def test_angles(name):
    for theta0 in range(5):
        for cell in find(name, series=theta0):
            spec = cell.noise if cell.model == "IV" else cell.covariates
            assert float(spec.partition(":")[2]) == pytest.approx(theta0 * math.pi / 8)


def test_model_two_has_correlated_noise_in_experiment_three_and_model_one_has_not():
    for cell in find("exp03"):
        assert cell.noise == ("normal" if cell.model == "I" else cell.covariates)


def test_thresholds():
    n, log = 400, math.log(10)
    assert {c.tau for c in find("exp02", n=n, series=0.4)} == {(n / log) ** (1 / 1.4)}
    assert {c.tau for c in find("exp02", n=n, series=1.6)} == {math.sqrt(n / log)}
    assert {c.tau for c in find("exp01", n=20)} == {math.sqrt(20 / log)}
    assert {c.tau for c in find("exp04")} == {None}
    assert theory_threshold(100, 5.0) == theory_threshold(100)


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("reading", ["ones", "unit"])
def test_data_have_the_declared_model(name, reading):
    experiment = EXPERIMENTS[name]
    settings = Settings(reading=reading)
    cells = next(iter(experiment.groups(settings).values()))
    data = experiment.draw(cells, settings, 3)
    assert len(data) == len(cells)
    want = truth(reading=reading).full()
    for cell, simulated in zip(cells, data, strict=True):
        assert len(simulated.y) == cell.n
        np.testing.assert_array_equal(simulated.truth.full(), want)
        if simulated.X is not None:
            np.testing.assert_array_equal(simulated.X, data[0].X)


def test_draws_depend_on_seed_and_replication_and_not_on_reading_or_tuning():
    experiment = EXPERIMENTS["exp02"]
    cells = next(iter(experiment.groups(Settings()).values()))

    def noise(settings, replication, which=1):
        data = experiment.draw(cells, settings, replication)[which]
        return data.y - data.X.reshape(len(data.X), -1) @ data.truth.full().ravel()

    base = noise(Settings(), 0)
    np.testing.assert_allclose(
        noise(Settings(reading="ones", tuning="converged"), 0), base, atol=1e-9
    )
    for other in (noise(Settings(seed=1), 0), noise(Settings(), 1), noise(Settings(), 0, which=2)):
        assert not np.allclose(other, base)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reading": "two"}, "reading must be one of ones, unit; got 'two'"),
        ({"tuning": "best"}, "tuning must be one of paper, converged; got 'best'"),
        ({"methods": ("LASSO",)}, "methods must be one of VGD, RGD, HUB, auto; got 'LASSO'"),
        ({"replications": 0}, "replications must be a whole number from 1; got 0"),
        ({"seed": -1}, "seed must be a whole number from 0; got -1"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options)
