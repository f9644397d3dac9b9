"""Fits on dask: the same answers, whatever the chunks and the scheduler; little travels."""

import warnings

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest

import tauten as tt
from tauten.data import Blocks, Rows, blocks, tasks
from tauten.problem import Problem, gradients
from tauten.robust import Truncate

TIGHT = 1e-8


@pytest.fixture(scope="module", autouse=True)
def scheduler():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def data():
    return tt.datasets.make_model("I", 300, shape=(5, 4, 3), noise="t:2", rng=0)


def chunked(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.mark.parametrize("rows", [300, 150, 37, (1, 250, 49)])
def test_a_fit_is_the_one_in_memory(rows, data):
    X, y = chunked(data.X, rows), chunked(data.y, rows)
    there, here = (
        tt.TensorRegressor(rank=1).fit(X, y),
        tt.TensorRegressor(rank=1).fit(data.X, data.y),
    )
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=TIGHT)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=TIGHT)
    np.testing.assert_allclose(there.influence_, here.influence_, atol=TIGHT)
    assert there.result_.n_passes == here.result_.n_passes
    assert there.score(X, y) == pytest.approx(here.score(data.X, data.y))


def test_predictions_are_dask_arrays(data):
    X = chunked(data.X, 100)
    model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    predicted = model.predict(X)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == ((100, 100, 100),)
    np.testing.assert_allclose(predicted.compute(), model.predict(data.X))


def test_everything_may_be_dask(data, rng):
    Z, w = rng.normal(size=(300, 2)), rng.uniform(size=300)
    arrays = [chunked(a, 80) for a in (data.X, data.y, Z, w)]
    there = tt.TensorRegressor(rank=1).fit(*arrays[:2], covariates=arrays[2], sample_weight=w)
    mixed = tt.TensorRegressor(rank=1).fit(arrays[0], data.y, covariates=Z, sample_weight=arrays[3])
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y, covariates=Z, sample_weight=w)
    for model in (there, mixed):
        np.testing.assert_allclose(model.coef_, here.coef_, atol=TIGHT)
        np.testing.assert_allclose(model.covariate_coef_, here.covariate_coef_, atol=TIGHT)
    np.testing.assert_allclose(
        there.predict(arrays[0], covariates=arrays[2]).compute(), here.predict(data.X, covariates=Z)
    )


def test_classes_and_replicates(rng):
    data = tt.datasets.make_model("III", 200, shape=(5, 4, 3), rng=0)
    labels = np.where(data.y > 0, "yes", "no")
    X = chunked(data.X, 60)
    there = tt.TensorClassifier(rank=1).fit(X, labels)
    here = tt.TensorClassifier(rank=1).fit(data.X, labels)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)
    np.testing.assert_array_equal(there.predict(X).compute(), here.predict(data.X))
    np.testing.assert_allclose(there.predict_proba(X).compute(), here.predict_proba(data.X))
    Y = tt.datasets.make_model("IV", 40, shape=(5, 4, 3), noise="t:2", rng=0).y
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    there = tt.TensorPCA(rank=1, replicates=True).fit(chunked(Y, 11))
    here = tt.TensorPCA(rank=1, replicates=True).fit(Y)
    np.testing.assert_allclose(there.low_rank_, here.low_rank_, atol=TIGHT)
    np.testing.assert_allclose(there.transform(chunked(Y, 11)).compute(), here.transform(Y))


def test_weights_are_where_the_blocks_are(data, rng):
    """Folds and replicates that share a pass: each with weights of its own."""
    here = Rows(data.X, data.y)
    there = Blocks(chunked(data.X, 70), data.y, memory=2**30)
    weights = [rng.uniform(size=300) for _ in range(3)]
    theta = tt.Tucker(np.ones((1, 1, 1)), [rng.normal(size=(p, 1)) for p in (5, 4, 3)])

    def found(samples):
        weighed = [samples.reweight(w) for w in weights]
        problems = [Problem(d, tt.losses.Squared(), tt.designs.Covariate()) for d in weighed]
        return [g.blocks.core for g in gradients(problems, [theta] * 3)]

    np.testing.assert_allclose(found(there), found(here), rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"robust": Truncate(tau="cv"), "rank": 1},
        pytest.param({"rank": "auto"}, marks=pytest.mark.slow),
        pytest.param({"rank": "cv"}, marks=pytest.mark.slow),
    ],
)
def test_choices_that_need_fits(options, data):
    X, y = data.X[:80], data.y[:80]
    there = tt.TensorRegressor(**options).fit(chunked(X, 30), y)
    here = tt.TensorRegressor(**options).fit(X, y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)


@pytest.mark.parametrize(
    "options", [{"solver": "anderson"}, {"init": "restarts"}, {"init": "projected"}]
)
def test_accelerated_descent_and_other_starts(options, data):
    X, y = data.X[:120], data.y[:120]
    there = tt.TensorRegressor(1, **options, random_state=0).fit(chunked(X, 50), y)
    here = tt.TensorRegressor(1, **options, random_state=0).fit(X, y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)


def test_bootstrap(data):
    options = {"method": "bootstrap", "n_boot": 3, "random_state": 0}
    X = chunked(data.X, 100)
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    mine = here.confidence_intervals(X, data.y, **options)
    theirs = here.confidence_intervals(data.X, data.y, **options)
    np.testing.assert_allclose(mine.stderr, theirs.stderr, rtol=1e-6)


def test_only_points_and_sums_travel(data, monkeypatch):
    """What is sent with a pass holds no samples, however many there are."""
    sent, before = [], 0

    class Weighed(tasks.Work):
        def __init__(self, fn):
            super().__init__(fn)
            sent.append(len(cloudpickle.dumps(fn)))

    monkeypatch.setattr(blocks, "Work", Weighed)  # with each task, where they are few
    monkeypatch.setattr(tasks, "Work", Weighed)  # else once for all
    y = np.tile(data.y, 4)
    for size in (300, 100):
        many = da.from_array(np.tile(data.X, (4, 1, 1, 1)), chunks=(size, 5, 4, 3))
        tt.TensorRegressor(rank=1).fit(many, y, sample_weight=np.ones(1200))
        assert max(sent) < 8000 < y.nbytes
        assert len(sent) > before
        before = len(sent)


def test_a_point_is_sent_with_few_tasks_and_once_to_many(data, monkeypatch):
    made = []
    monkeypatch.setattr(blocks, "computed", lambda *t: [made.extend(t), tasks.computed(*t)][1])
    for size in (100, 30):  # 3 blocks, and 10
        rows = Blocks(chunked(data.X, size), data.y, memory=2**20)
        assert rows.map_sum(lambda chunk: [len(chunk.y)]) == [300]
    few, many = (
        [key for key in task.dask.get_all_dependencies() if key.startswith("tauten-point")]
        for task in made
    )
    assert not few
    assert len(many) == 1


def test_tasks_have_names_to_read(data):
    names = set()

    class Names(dask.callbacks.Callback):
        def _pretask(self, key, dsk, state):
            names.add(dask.utils.key_split(key))

    with Names():
        tt.TensorRegressor(rank=1).fit(chunked(data.X, 30), data.y)
    assert {"tauten-load", "tauten-sum", "tauten-add", "tauten-pick"} <= names


def test_blocks_are_loaded_once(data):
    loads = []

    def load(block):
        loads.append(len(block))
        return block

    X = chunked(data.X, 100).map_blocks(load, dtype=float, meta=np.empty((0, 0, 0, 0)))
    tt.TensorRegressor(rank=1).fit(X, data.y)
    assert loads == [100, 100, 100]


def test_other_axes_are_merged_with_a_note(data):
    X = da.from_array(data.X, chunks=(100, 2, 2, 3))
    with pytest.warns(
        UserWarning, match=r"X is chunked along axes .* X.rechunk\(\{0: 'auto', 1: -1"
    ):
        there = tt.TensorRegressor(rank=1).fit(X, data.y)
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)


def test_chunks_of_y_must_be_those_of_x(data):
    with pytest.raises(
        ValueError, match=r"y must be chunked like X .* \(100, 100, 100\) .*rechunk"
    ):
        tt.TensorRegressor(rank=1).fit(chunked(data.X, 100), chunked(data.y, 150))


def test_lengths_must_agree(data):
    with pytest.raises(ValueError, match="same number of samples"):
        tt.TensorRegressor(rank=1).fit(chunked(data.X, 100), chunked(data.y[1:], 100))


def test_unknown_sizes(data):
    X = chunked(data.X, 100)
    X = X[X[:, 0, 0, 0] > 0]
    with pytest.raises(ValueError, match=r"X must have chunks of known sizes; .*compute_chunk_s"):
        tt.TensorRegressor(rank=1).fit(X, data.y)


def test_numbers_that_are_not_finite(data):
    data.X[250, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="X must hold finite numbers; one of its samples from 200"):
        tt.TensorRegressor(rank=1).fit(chunked(data.X, 100), data.y)


def test_text_is_no_number():
    with pytest.raises(ValueError, match="X must be an array of numbers; got a dask array of"):
        tt.TensorRegressor().fit(da.from_array(np.array([["a", "b"]])), [1.0])


def test_integers_and_single_precision(data):
    X = (10 * data.X).astype(np.int32)
    there = tt.TensorRegressor(rank=1).fit(chunked(X, 100), data.y)
    here = tt.TensorRegressor(rank=1).fit(X, data.y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = tt.TensorRegressor(rank=1).fit(chunked(data.X.astype(np.float32), 100), data.y)
    assert single.coef_.dtype == np.float32


def test_fits_of_other_sizes_on_threads(data):
    with dask.config.set(scheduler="threads"):
        there = tt.TensorRegressor(rank=1).fit(chunked(data.X, 50), data.y)
    here = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=TIGHT)
