"""The fit report: what it says is what the fit did, and it reads well in a real browser."""

import html
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold

import tauten as tt
from tauten.report import words
from tauten.report.fit import Fit, hill_index
from tauten.report.heldout import HeldOut, compare
from tauten.report.sections import held_out, reproduce

pytest.importorskip("matplotlib")

EVIL = "<script>alert(1)</script>"


def heavy(n=150, shape=(6, 5), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n, *shape))
    y = 2 * X[:, :2, :2].sum(axis=(1, 2)) + rng.standard_t(1.3, size=n)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = heavy()
    return tt.TensorRegressor(rank=1).fit(X, y), X, y


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    model, X, y = fitted
    names = [f"subject {k}" for k in range(len(y))]
    names[int(np.argmax(model.influence_))] = EVIL
    path = tmp_path_factory.mktemp("report") / "report.html"
    return model.report(path, X, y, sample_names=names, mode_names=["row <b>", "$col$"], folds=2)


def text_of(path):
    body = re.sub(r"<(script|style).*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def fit_of(model, X, y=None, **options):
    settings = {"sample_names": None, "mode_names": None, "folds": 0, "most": 5} | options
    return Fit.of(model, X, y, {}, **settings)


def test_the_page_says_what_the_fit_did(page, fitted):
    model, X, _ = fitted
    text = text_of(page)
    assert f"{len(X)} samples, 6 × 5 each; rank 1 × 1" in text
    assert f"after {model.n_iter_} iterations" in text
    assert "The rank, 1 × 1, was given" in text
    assert f"“{model.robust_.psi_}” score at ν = {model.robust_.nu_:.4g}" in text
    alpha, stderr = tt.diagnostics.tail_index(y_minus_prediction(fitted))
    assert f"tail index {alpha:.1f} ± {1.96 * stderr:.1f}" in text
    assert f"{np.mean(model.influence_ > 0.5):.0%} more than half" in text
    assert "model = tt.TensorRegressor(rank=1) model.fit(X, y)" in text
    assert np.__version__ in text


def y_minus_prediction(fitted):
    model, X, y = fitted
    return y - model.predict(X)


def test_the_table_lists_the_samples_that_were_cut_most(page, fitted, browser):
    model, X, y = fitted
    browser.look()
    browser.open(page)
    rows = browser.run(
        "[...document.querySelectorAll('table')[0].tBodies[0].rows]"
        ".map(r => [...r.cells].map(c => c.dataset.value ?? c.innerText))"
    )
    order = np.argsort(-model.influence_, kind="stable")[: len(rows)]
    assert rows[0][0] == EVIL
    assert [int(float(row[1])) for row in rows] == list(order)
    found = np.array([[float(cell) for cell in row[2:]] for row in rows])
    norms = np.linalg.norm(X.reshape(len(X), -1), axis=1)
    wanted = [100 * model.influence_, y, y_minus_prediction(fitted), norms]
    np.testing.assert_allclose(found, np.stack(wanted, axis=1)[order], rtol=1e-6, atol=1e-9)


def test_the_page_in_a_browser(page, browser):
    for look in ({}, {"dark": True}, {"width": 390}):
        browser.look(**look)
        browser.open(page)
        assert browser.requests() == []
        assert browser.complaints() == []
        images = browser.run("[...document.images].map(i => [i.naturalWidth, i.alt])")
        assert len(images) >= 9
        assert all(width > 100 and alt for width, alt in images)
        wide = browser.run("document.documentElement.scrollWidth > innerWidth")
        assert not wide
        assert browser.run("document.scripts.length") == 1  # the name stayed text
    assert browser.run("document.querySelectorAll('[aria-labelledby], table caption').length") > 9


def test_the_page_sorts_by_keyboard(page, browser):
    browser.look()
    browser.open(page)
    browser.run("document.querySelectorAll('table')[0].querySelectorAll('th button')[1].focus()")
    browser.press("Enter", 13)
    numbers = browser.run(
        "[...document.querySelectorAll('table')[0].tBodies[0].rows].map(r => +r.cells[1].innerText)"
    )
    assert numbers == sorted(numbers)
    heads = "[...document.querySelectorAll('table')[0].querySelectorAll('th[aria-sort]')].length"
    assert browser.run(heads) == 1


def class_fit():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3, 4))
    labels = np.array(["a", "b & c", "<d>"])[np.argmax(X[:, 0, :3] + rng.normal(size=(200, 3)), 1)]
    return tt.TensorClassifier(rank=1, robust="huber:nu=0.9"), (X, labels)


def response_fit():
    X, y = heavy(100, (4,) * 2)
    return tt.TensorRegressor(rank=1), (X, np.stack([y, -y, 0 * y + X[:, 0, 0]], axis=1))


def order_five_fit():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 2, 1, 3, 2, 2))
    return tt.TensorRegressor(rank=1), (X, X.sum(axis=(1, 2, 3, 4, 5)) + rng.normal(size=150))


def vector_fit():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 6))
    return tt.TensorRegressor(robust=tt.robust.Huber(nu=2.0)), (X, X[:, 0] + rng.normal(size=80))


def replicate_fit():
    noise = np.random.default_rng(6).standard_t(3, size=(20, 5, 4))
    return tt.TensorPCA(rank=1, replicates=True), (np.ones((5, 4)) + noise,)


def single_fit():
    Y = np.ones((8, 7)) + 0.1 * np.random.default_rng(7).standard_t(3, size=(8, 7))
    Y[0, 0] = np.nan
    return tt.TensorPCA(rank=1), (Y,)


def count_fit():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, 4, 3))
    return tt.TensorRegressor(rank=1, loss="poisson"), (X, rng.poisson(np.exp(0.4 * X[:, 0, 0])))


QUICK, OTHERS = (class_fit, single_fit), (response_fit, order_five_fit, vector_fit, replicate_fit)
KINDS = [*QUICK, *(pytest.param(k, marks=pytest.mark.slow) for k in (*OTHERS, count_fit))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_fit_has_a_report(kind, tmp_path):
    model, data = kind()
    path = model.fit(*data).report(tmp_path / "report.html", *data, folds=2)
    page, text = path.read_text(encoding="utf-8"), text_of(path)
    assert page.count("<img") >= 4
    assert page.count("<img") == len(re.findall(r'<img src="data:image[^>]+ alt="[^"]+"', page))
    assert "could not be computed" not in text
    assert "On data left out" in text
    assert ("There are no intervals" in text) == (kind is single_fit)
    assert "No intervals" not in text  # a warning only where there could be some
    assert ("Covariates are not shrunk" in text) <= (kind not in {single_fit, replicate_fit})


def test_samples_of_two_classes_are_shown_with_their_class(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    labels = np.where(X[:, 0] + rng.normal(size=60) > 0, "ill", "well")
    model = tt.TensorClassifier(robust="truncate:tau=0.2", rank=1).fit(X, labels)
    page = model.report(tmp_path / "report.html", X, labels, folds=0).read_text(encoding="utf-8")
    table = page[page.index("Who was cut</h2>") :]
    assert table.count("<td>ill</td>") + table.count("<td>well</td>") == 50


@pytest.mark.slow
def test_a_report_comes_with_covariates_and_weights(tmp_path):
    X, y = heavy(80)
    data = {"covariates": X[:, :1, 0], "sample_weight": np.linspace(1, 2, 80)}
    model = tt.TensorRegressor(rank=1).fit(X, y, **data)
    text = text_of(model.report(tmp_path / "report.html", X, y, folds=2, **data))
    assert "model.fit(X, y, covariates=covariates, sample_weight=sample_weight)" in text
    assert "could not be computed" not in text


def test_held_out_losses_are_those_of_fits_to_the_rest(fitted):
    model, X, y = fitted
    problem, _ = model._at_fit(X, y)
    found = compare(model, problem, y, {}, folds=3)
    losses = {"auto": [], "none": []}
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        for robust, values in losses.items():
            other = tt.TensorRegressor(rank=1, robust=robust).fit(X[train], y[train])
            values.append((y[test] - other.predict(X[test])) ** 2 / 2)
    np.testing.assert_allclose(found.ours, np.concatenate(losses["auto"]))
    np.testing.assert_allclose(found.theirs, np.concatenate(losses["none"]))
    assert found.rival == "none"


def test_held_out_entries_of_a_single_tensor_were_missing_in_the_fit():
    model, (Y,) = single_fit()
    model.fit(Y)
    problem, _ = model._at_fit(Y)
    found = compare(model, problem, None, {}, folds=2)
    observed = np.flatnonzero(np.isfinite(Y))
    assert len(found.ours) == len(observed)
    _, test = next(KFold(2, shuffle=True, random_state=0).split(observed))
    rest = Y.copy()
    rest.flat[observed[test]] = np.nan
    low_rank = clone(model).set_params(rank=model.rank_).fit(rest).low_rank_
    wanted = (Y - low_rank).flat[observed[test]] ** 2 / 2
    np.testing.assert_allclose(found.ours[: len(test)], wanted)


def test_summaries_of_losses():
    found = HeldOut(np.arange(10.0), np.append(np.arange(1.0, 10.0), 1000.0), "none")
    summaries = {name: values for name, *values in found.summaries()}
    assert summaries["mean loss without the largest tenth"] == [4.0, 5.0]
    assert summaries["median loss"] == [4.5, 5.5]
    assert summaries["mean loss"] == [4.5, 104.5]
    assert found.wins == 1.0
    assert HeldOut(np.ones(2), np.ones(2), "none").wins == 0.5


def test_a_fit_that_is_not_robust_is_warned_about_and_set_beside_the_default():
    X, y = heavy(300)
    model = tt.TensorRegressor(rank=1, robust="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = fit_of(model.fit(X, y), X, y, folds=2)
        found = words.warnings_of(fit)
    assert any("heavy tails and this fit is not robust" in text for text in found)
    assert any("robust='auto' predicts better" in text for text in found)


def test_a_fit_that_stopped_early_and_one_with_few_samples_are_warned_about():
    X, y = heavy(40)
    model = tt.TensorRegressor(rank=2, solver="newton:n_iter=1")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    found = words.warnings_of(fit_of(model, X, y))
    assert any("has not converged: " in text for text in found)
    assert any("free coefficients and only 40 observed" in text for text in found)


def test_a_good_fit_has_no_warnings(rng):
    X = rng.normal(size=(300, 4, 3))
    y = X[:, 0, 0] + rng.normal(size=300)
    model = tt.TensorRegressor(rank=1).fit(X, y)
    assert words.warnings_of(fit_of(model, X, y, folds=2)) == []


def test_choices_in_words():
    X, y = heavy(120, (3, 3))
    chosen = tt.TensorRegressor(robust="truncate:tau=cv").fit(X, y)
    tried = len(chosen.rank_path_.ranks)
    assert f"has the least robust BIC of {tried} ranks" in words.rank_choice(chosen)
    told = " ".join(words.thresholds(chosen))
    assert f"least error of {len(chosen.cv_results_.taus)} in five folds" in told
    plain = tt.TensorRegressor(rank=1, robust="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain.fit(X, y)
    assert "not robust" in words.thresholds(plain)[0]


def test_tails_in_words(rng):
    told = [words.tail("x", hill_index(rng.standard_t(df, size=20_000))) for df in (1, 3, 30)]
    assert "very heavy" in told[0]
    assert "heavy tails" in told[1]
    assert "very" not in told[1]
    assert "moderate or light" in told[2]
    assert "too few" in words.tail("x", hill_index(np.ones(3)))
    assert "light" in words.tail("x", hill_index(np.ones(100)))


def test_the_code_in_a_report_makes_the_same_model():
    model, (X, y) = vector_fit()
    text = re.sub("<[^>]+>", " ", html.unescape(reproduce(fit_of(model.fit(X, y), X, y))))
    line = re.search(r"model = (.*)", text).group(1)
    assert repr(eval(line, {"tt": tt})) == repr(model)
    assert held_out(fit_of(model, X, y)) == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_names": ["a"]}, "sample_names must hold 150 names"),
        ({"mode_names": ["a"]}, "names must be 2 strings"),
        ({"folds": 1}, "folds must be 0, for none, or at least 2"),
        ({"most": 0}, "most must be"),
    ],
)
def test_bad_options_are_named_and_nothing_is_written(options, message, fitted, tmp_path):
    model, X, y = fitted
    with pytest.raises(ValueError, match=message):
        model.report(tmp_path / "report.html", X, y, **options)
    assert list(tmp_path.iterdir()) == []


def test_other_data_an_unfitted_model_and_a_missing_folder_are_refused(fitted, tmp_path):
    model, X, y = fitted
    with pytest.raises(ValueError, match="the data that the model was fitted to"):
        model.report(tmp_path / "report.html", X[:9], y[:9])
    with pytest.raises(NotFittedError):
        tt.TensorRegressor().report(tmp_path / "report.html", X, y)
    with pytest.raises(FileNotFoundError, match="Make the folder first"):
        model.report(tmp_path / "no" / "report.html", X[:9], y)  # before anything else is looked at
