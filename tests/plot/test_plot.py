"""Pictures show the numbers they are said to show, for every shape, on the axes they are given."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

import tauten as tt
from tauten.inference import Intervals
from tauten.select import RankPath, ThresholdPath
from tauten.solver import Iteration, Result

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

SHAPES = [(7,), (60,), (1, 1), (5, 4), (1, 6), (2, 30), (4, 3, 5), (3, 1, 4), (2, 3, 2, 4)]


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(150, 6, 5))
    signal = X[:, :2, :2].sum(axis=(1, 2)) - X[:, 3:5, 3:5].sum(axis=(1, 2))
    return X, 2 * signal + rng.standard_t(1.5, size=150)


@pytest.fixture(scope="module")
def model(data):
    return tt.TensorRegressor(rank=2, robust="truncate:tau=40").fit(*data)


def pictures(ax):
    """All values shown in the images of an Axes."""
    return np.concatenate([np.ma.compressed(image.get_array()) for image in ax.get_images()])


def drawn(ax):
    """Render, and return the boxes of all texts inside the figure."""
    ax.figure.canvas.draw()
    return [t.get_window_extent() for t in ax.texts if t.get_text()]


CALLS = {
    "coefficients": lambda m, X, y, ax: tt.plot.coefficients(m, ax=ax),
    "loadings": lambda m, X, y, ax: tt.plot.loadings(m, ax=ax),
    "convergence": lambda m, X, y, ax: tt.plot.convergence(m, ax=ax),
    "truncation": lambda m, X, y, ax: tt.plot.truncation(m, ax=ax),
    "rank_path": lambda m, X, y, ax: tt.plot.rank_path(RankPath((1,), [(1,)], [2.0]), ax=ax),
    "threshold_path": lambda m, X, y, ax: tt.plot.threshold_path(
        ThresholdPath(1.0, np.array([np.inf, 1.0]), np.array([3.0, 2.0]), np.ones(2)), ax=ax
    ),
    "influence": lambda m, X, y, ax: tt.plot.influence(m, ax=ax),
    "qq": lambda m, X, y, ax: tt.plot.qq(y, ax=ax),
    "survival": lambda m, X, y, ax: tt.plot.survival(y, ax=ax),
    "hill": lambda m, X, y, ax: tt.plot.hill(y, ax=ax),
    "kurtosis": lambda m, X, y, ax: tt.plot.kurtosis(X, ax=ax),
    "local_moments": lambda m, X, y, ax: tt.plot.local_moments(X, m, ax=ax, radii=[0.0, 1.0]),
}


def test_every_picture_is_tried():
    assert set(CALLS) == set(tt.plot.__all__)


@pytest.mark.parametrize("style", ["default", "dark_background"])
@pytest.mark.parametrize("name", CALLS)
def test_axes_are_taken_and_returned(name, style, model, data):
    with plt.style.context(style):
        _, ax = plt.subplots(layout="constrained")
        assert CALLS[name](model, *data, ax) is ax
        assert len(plt.get_fignums()) == 1  # no other figure was opened
        paper = np.array(mpl.colors.to_rgb(ax.get_facecolor()))
        for line in ax.get_lines():
            contrast = np.abs(np.array(mpl.colors.to_rgb(line.get_color())) - paper)
            assert contrast.max() > 0.3
        ax.figure.canvas.draw()
        new = CALLS[name](model, *data, None)
        assert new is not ax
        assert new.get_xlabel()
        assert new.get_ylabel()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_coefficient_is_shown_once(shape, rng):
    tensor = rng.normal(size=shape)
    ax = tt.plot.coefficients(tensor, max_slices=100)
    long = [p for p in shape if p > 1]
    if len(long) > 1:
        np.testing.assert_array_equal(np.sort(pictures(ax)), np.sort(tensor.ravel()))
        low, high = ax.get_images()[0].get_clim()
        assert low == -high == -np.abs(tensor).max()
    elif max(shape) > 40:
        np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata(), tensor.ravel())
    else:
        heights = [bar.get_height() for bar in ax.patches]
        np.testing.assert_allclose(heights, tensor.ravel())
    boxes = drawn(ax)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_slices_carry_their_index(rng):
    tensor = rng.normal(size=(3, 20, 10, 4))
    ax = tt.plot.coefficients(tensor, names=["a", "b", "c", "d"])
    assert ax.get_title() == "slices: a, d"
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("b", "c")
    wall = ax.get_images()[0].get_array()
    for text in ax.texts:
        x, y = text.get_position()  # centred above its slice
        i, j = map(int, text.get_text().split(", "))
        top, left = round(y + 0.6), round(x + 0.5 - 5)
        np.testing.assert_array_equal(wall[top : top + 20, left : left + 10], tensor[i, :, :, j])
    assert len(ax.texts) == 12


def test_too_many_slices_are_thinned_and_it_is_said(rng):
    ax = tt.plot.coefficients(rng.normal(size=(6, 6, 40)), max_slices=9)
    assert (
        "(9 of 40)" in tt.plot.coefficients(rng.normal(size=(50, 50, 40)), max_slices=9).get_title()
    )
    assert len(ax.texts) <= 9


def test_names_say_whose_modes_they_are(data):
    X, y = data
    Y = np.stack([y, -y], axis=1)
    response = tt.TensorRegressor(rank=1).fit(X, Y)
    assert tt.plot.coefficients(response).get_title() == "slices: response"
    labels = np.random.default_rng(1).integers(3, size=len(y))
    classes = tt.TensorClassifier(rank=1, robust="none").fit(X, labels)
    assert tt.plot.coefficients(classes).get_title() == "slices: class"
    pca = tt.TensorPCA(rank=1).fit(X[0])
    assert tt.plot.coefficients(pca).get_ylabel() == "mode 1"


def test_an_array_with_dims_names_its_modes(rng):
    class Labelled(np.ndarray):
        dims = ("time", "place")

    ax = tt.plot.coefficients(rng.normal(size=(4, 3)).view(Labelled))
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("time", "place")


def test_coefficients_that_may_be_zero_are_blank(rng):
    estimate = np.array([[1.0, 2.0], [-3.0, 4.0]])
    stderr = np.array([[0.2, 2.0], [0.2, np.inf]])
    found = Intervals(estimate, stderr, estimate - 2 * stderr, estimate + 2 * stderr, 0.95, "")
    ax = tt.plot.coefficients(estimate, intervals=found)
    assert sorted(pictures(ax)) == [-3.0, 1.0]
    with pytest.raises(ValueError, match=r"intervals must be of the coefficients, of shape \(3,\)"):
        tt.plot.coefficients(np.ones(3), intervals=found)


def test_names_are_text_not_formulas(model):
    bad = r"$\frac{$"
    for ax in (
        tt.plot.coefficients(model, names=[bad, bad]),
        tt.plot.coefficients(np.ones((2, 2, 2)), names=[bad] * 3),
        tt.plot.coefficients(np.ones(3), names=[bad]),
        tt.plot.loadings(model, names=[bad, bad]),
        tt.plot.influence(model, sample_names=[bad] * 150),
    ):
        ax.figure.canvas.draw()  # raises where a formula is parsed


def test_loadings_show_the_canonical_factor_and_its_intervals(model, data):
    found = model.loading_intervals(*data)
    ax = tt.plot.loadings(model, 1, intervals=found)
    factor = model.tucker_.canonical().factors[1]
    shown = np.array([line.get_ydata() for line in ax.get_lines()[1:]]).T
    np.testing.assert_allclose(shown, factor, atol=1e-12)
    whiskers = np.concatenate([c.get_segments() for c in ax.collections])[..., 1]
    wanted = np.stack([found[1].lower.T.ravel(), found[1].upper.T.ravel()], axis=1)
    np.testing.assert_allclose(whiskers, wanted)


def test_convergence_and_truncation_show_the_history(model):
    history = model.result_.history
    change = tt.plot.convergence(model).get_lines()[0].get_ydata()
    np.testing.assert_array_equal(change, [step.change for step in history])
    lines = tt.plot.truncation(model).get_lines()
    shares = np.array([line.get_ydata() for line in lines]).T
    np.testing.assert_allclose(shares, 100 * np.array([step.truncated for step in history]))
    assert shares.max() > 0


def test_an_iteration_without_change_does_not_break_the_scale():
    steps = [Iteration(1, 1.0, 0.1, (0.0,)), Iteration(2, 1.0, 0.0, (0.0,))]
    theta = tt.Tucker(np.ones(1), [np.ones((1, 1))])
    ax = tt.plot.convergence(Result(theta, 2, True, "", steps))
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0.1, np.nan])
    with pytest.raises(ValueError, match="history is empty"):
        tt.plot.convergence(Result(theta, 0, True, "", []))


def test_rank_path_is_sorted_and_marks_the_chosen_one():
    path = RankPath((2, 1), [(1, 1), (2, 2), (2, 1)], [9.0, 7.5, 5.0])
    ax = tt.plot.rank_path(path, most=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["2 × 1", "2 × 2"]
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], [0.0, 2.5])
    assert "1 worse ones not shown" in ax.get_xlabel()


def test_threshold_path_puts_infinity_at_the_end():
    taus = np.array([np.inf, 4.0, 2.0])
    path = ThresholdPath(4.0, taus, np.array([3.0, 1.0, 2.0]), np.full(3, 0.1))
    ax = tt.plot.threshold_path(path)
    x, y = ax.get_lines()[0].get_data()
    assert list(y) == [2.0, 1.0, 3.0]
    assert list(x[:2]) == [2.0, 4.0]
    assert 4.0 < x[2] < np.inf


def test_influence_shows_the_largest(model):
    ax = tt.plot.influence(model, sample_names=[f"s{k}" for k in range(150)], most=4)
    order = np.argsort(-model.influence_, kind="stable")[:4]
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"s{k}" for k in order]
    np.testing.assert_allclose([b.get_width() for b in ax.patches], 100 * model.influence_[order])


@pytest.mark.parametrize("n", [30, 5000])
def test_qq_of_a_normal_is_the_diagonal(n):
    x = 7 + 3 * stats.norm.ppf((np.arange(n) + 0.5) / n)
    dots = tt.plot.qq(np.append(x, np.nan)).get_lines()[1]
    np.testing.assert_allclose(*dots.get_data(), atol=2e-2)
    assert len(dots.get_xdata()) <= 1500


def test_qq_of_wild_values_keeps_the_middle_visible(rng):
    ax = tt.plot.qq(rng.standard_cauchy(2000))
    ax.figure.canvas.draw()
    middle = ax.transData.transform([(0, -2), (0, 2)])[:, 1]
    assert np.ptp(middle) > 0.2 * ax.get_window_extent().height


def test_survival_shows_the_shares_and_hills_slope(rng):
    x = rng.pareto(1.5, size=1000) + 1
    ax = tt.plot.survival(x, share=0.2)
    t, left = ax.get_lines()[0].get_data()
    np.testing.assert_allclose(left, [(x > size).mean() for size in t], atol=1e-3)
    (t0, t1), (s0, s1) = ax.get_lines()[2].get_data()
    slope = np.log(s1 / s0) / np.log(t1 / t0)
    assert slope == pytest.approx(-tt.diagnostics.tail_index(x, share=0.2).alpha)


def test_hill_shows_the_index_at_each_share(rng):
    x = rng.pareto(1.5, size=1000) + 1
    shares, alpha = tt.plot.hill(x).get_lines()[0].get_data()
    wanted = [tt.diagnostics.tail_index(x, share=s / 100).alpha for s in shares]
    np.testing.assert_allclose(alpha, wanted)


def test_kurtosis_shows_the_map(data):
    X, _ = data
    X = X.copy()
    X[:, 0, 0] = 1.0  # constant: no kurtosis, left blank
    found = stats.kurtosis(X.reshape(len(X), -1)[:, 1:], axis=0, fisher=False)
    np.testing.assert_allclose(np.sort(pictures(tt.plot.kurtosis(X))), np.sort(found))
    assert tt.plot.kurtosis(X[:, 1, 1]).get_ylabel()


def test_local_moments_rise_with_the_radius(model, data):
    ax = tt.plot.local_moments(data[0], model, radii=[0.0, 0.5, 1.0])
    for line in ax.get_lines():
        assert (np.diff(line.get_ydata()) > 0).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: tt.plot.coefficients(tt.TensorRegressor()), NotFittedError, "not fitted"),
        (lambda m: tt.plot.coefficients(3.0), ValueError, "one mode or more"),
        (lambda m: tt.plot.coefficients(m, names=["a"]), ValueError, "names must be 2 strings"),
        (lambda m: tt.plot.loadings(m, 2), ValueError, "mode must be from 0 to 1; got 2"),
        (tt.plot.rank_path, ValueError, "rank_path_.*Fit with rank='auto'"),
        (tt.plot.threshold_path, ValueError, "cv_results_.*tau=cv"),
        (lambda m: tt.plot.influence(m, sample_names=["a"]), ValueError, "150 names.*got 1"),
        (lambda m: tt.plot.qq([np.nan]), ValueError, "x must hold two numbers"),
        (lambda m: tt.plot.qq([1, np.inf]), ValueError, "no inf"),
        (lambda m: tt.plot.survival([0, 0, 1]), ValueError, "not zero"),
        (lambda m: tt.plot.hill([1, 2, 3]), ValueError, "20 values or more"),
    ],
)
def test_bad_input_is_named(call, error, message, model):
    with pytest.raises(error, match=message):
        call(model)


def test_importing_tauten_does_not_import_matplotlib():
    code = "import sys, tauten; assert tauten.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def shown(axis):
    axis.figure.canvas.draw()
    return [text for label in axis.get_ticklabels() if (text := label.get_text())]


def test_places_along_a_mode_have_their_names():
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(0)
    coords = {"row": ["a", "b$", "c"], "time": np.array([0.5, 1.5, 2.5, 3.5])}
    X = xr.DataArray(rng.normal(size=(60, 3, 4)), dims=("n", "row", "time"), coords=coords)
    y = X.values[:, 0].sum(axis=1) + rng.normal(size=60)
    model = tt.TensorRegressor(rank=1).fit(X, y)
    ax = tt.plot.coefficients(model)
    assert shown(ax.yaxis) == ["a", r"b\$", "c"]
    assert shown(ax.xaxis) == ["0.5", "1.5", "2.5", "3.5"]
    assert shown(tt.plot.loadings(model, mode=0).xaxis) == ["a", r"b\$", "c"]
    labels = np.array(["low", "middle", "highest"])[np.argmax(X.values[:, :, 0], axis=1)]
    classes = tt.TensorClassifier(rank=1).fit(X.values[:, :, 0], labels)
    assert shown(tt.plot.coefficients(classes).xaxis) == list(classes.classes_)
    counted = tt.TensorRegressor(rank=1).fit(X.values, y)
    assert {"0", "1", "2"} <= set(shown(tt.plot.coefficients(counted).yaxis))
