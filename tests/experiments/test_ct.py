"""The CT study: reading images, splits, scores; on simulated ones, and the real ones if given."""

import os
import zipfile

import numpy as np
import pytest
from scipy import stats

from tauten.experiments import reproduce
from tauten.experiments.ct import classifiers, evaluate, make_split, pixels, study
from tauten.experiments.ct_data import Images, load, synthetic
from tauten.experiments.ct_report import kurtosis_maps, pair_table, score_table

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def images():
    return synthetic(0)


def save(path, value, size=(40, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, value, value)).save(path)


def test_folders_and_zips_with_the_official_lists(tmp_path):
    save(tmp_path / "CT_COVID" / "a-p1-2.png", 200)
    save(tmp_path / "pack" / "b.jpg", 10)
    with zipfile.ZipFile(tmp_path / "CT_NonCOVID.zip", "w") as archive:
        archive.write(tmp_path / "pack" / "b.jpg", "7%1.jpg")
    (tmp_path / "trainCT_COVID.txt").write_text("a-p1-2.png\n")
    (tmp_path / "testCT_NonCOVID.txt").write_text("7%1.jpg\n")
    found = load(tmp_path)
    by_name = dict(zip(found.names, zip(found.labels, found.split, strict=True), strict=True))
    assert by_name == {"a-p1-2.png": (1, "train"), "7%1.jpg": (0, "test")}
    assert found.images.shape == (2, 150, 150)
    assert np.all(found.images[found.labels == 1] == 200)
    assert sorted(found.sources()) == ["0:7", "1:a"]


def test_npz(tmp_path, images):
    path = tmp_path / "x.npz"
    few = np.r_[:3, -3:0]
    pixels_, labels, names = images.images[few], images.labels[few], images.names[few]
    np.savez(path, images=pixels_, labels=labels, names=names, split=images.split[few])
    found = load(path)
    np.testing.assert_array_equal(found.images, pixels_)
    np.testing.assert_array_equal(found.labels, labels)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: p / "nowhere", FileNotFoundError, "not there"),
        (lambda p: p, ValueError, "CT_COVID and CT_NonCOVID; found 0 image"),
        (lambda p: _file(p / "a.npz", b"junk"), ValueError, "an npz with images, labels and names"),
        (lambda p: _file(p / "a.txt", b"junk"), FileNotFoundError, "another kind of file"),
        (lambda p: _file(p / "CT_COVID" / "a.png", b"junk").parents[1], ValueError, "a.png"),
        (lambda p: _file(p / "CT_COVID.zip", b"junk").parent, ValueError, "not a zip file"),
    ],
)
def test_data_that_cannot_be_read(tmp_path, make, error, message):
    with pytest.raises(error, match=message):
        load(make(tmp_path))


def _file(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_random_splits_have_the_papers_sizes(images):
    split = make_split(images, "random", 0, seed=0)
    assert [np.sum(images.labels[split.train] == k) for k in (1, 0)] == [200, 250]
    assert [np.sum(images.labels[split.test] == k) for k in (1, 0)] == [117, 147]
    assert not set(split.train) & set(split.test)
    assert not np.array_equal(make_split(images, "random", 1, seed=0).train, split.train)
    np.testing.assert_array_equal(make_split(images, "random", 0, seed=0).train, split.train)


def test_grouped_splits_share_no_source(images):
    split = make_split(images, "grouped", 0, seed=0)
    sources = images.sources()
    assert not set(sources[split.train]) & set(sources[split.test])
    assert len(split.train) >= 450
    random = make_split(images, "random", 0, seed=0)
    assert set(sources[random.train]) & set(sources[random.test])  # the paper's leak


def test_official_split(images):
    split = make_split(images, "official", 0, seed=0)
    assert set(images.split[split.train]) == {"train"}
    assert set(images.split[split.test]) == {"test"}


def test_pixels_are_block_means(images):
    assert pixels(images).shape == (746, 30, 30)
    np.testing.assert_allclose(pixels(images)[5, 2, 3], images.images[5, 10:15, 15:20].mean() / 255)


def test_kurtosis_is_that_of_scipy(images):
    maps = kurtosis_maps(images)
    stack = images.images[images.labels == 1][:, 75, 40].astype(float)
    want = stats.kurtosis(stack, fisher=False)
    assert np.any(np.isclose(maps["COVID"], want))


def fake(f1):
    """A line whose methods score as given."""
    return {
        "design": "random",
        "index": 0,
        "scores": {m: [0.5, 0.5, v, 1.0] for m, v in f1.items()},
    }


def test_tables_are_means_and_paired_differences():
    lines = [fake({"VGD": 0.6, "RGD": 0.7}), fake({"VGD": 0.8, "RGD": 0.86})]
    lines += [{**line, "design": "grouped"} for line in lines]
    rows = {(row[0], row[1]): row for row in score_table(lines)}
    assert rows["random", "RGD"][5] == pytest.approx(0.78)
    assert rows["the paper's", "RGD"][5] == 0.916
    pair = pair_table(lines)[0]
    assert pair[1] == "RGD − VGD"
    assert pair[2] == pytest.approx(0.08)
    assert pair[3] == pytest.approx(0.02)


@pytest.fixture
def cheap(monkeypatch):
    """The nearest neighbour alone, under every name: the study without its fits."""
    real = classifiers(0)
    one = dict.fromkeys(real, real["1-NN"])
    monkeypatch.setattr("tauten.experiments.ct.classifiers", lambda seed: one)
    maps = {"VGD": np.eye(30)}
    monkeypatch.setattr("tauten.experiments.ct.coefficient_images", lambda images, seed: maps)


def test_a_study_resumes_and_reports(cheap, tmp_path):
    images = synthetic(0, positives=40, negatives=50)
    first = study(images, tmp_path, splits=2, seed=0)
    lines = (tmp_path / "ct.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 2 + 2 + 1
    again = study(images, tmp_path, splits=2, seed=0)
    assert (tmp_path / "ct.jsonl").read_text().splitlines() == lines
    assert again.claims == first.claims
    only = study(images, tmp_path, splits=50, seed=0, report_only=True)
    assert (tmp_path / "ct.jsonl").read_text().splitlines() == lines
    assert only.claims == first.claims
    assert any("SIMULATED" in str(part) for part in first.content)
    assert {row[4] for row in first.claims} <= {"holds", "fails", "undecided"}
    with pytest.raises(ValueError, match="other settings"):
        study(images, tmp_path, splits=2, seed=1)


@pytest.mark.slow
def test_simulated_images_can_be_told_apart(images):
    line = evaluate(images, pixels(images), "random", 0, seed=0)
    assert all(scores[2] > 0.5 for name, scores in line["scores"].items() if name != "auto")


@pytest.mark.slow
def test_real_images():
    path = os.environ.get("TAUTEN_CT_DATA")
    if not path:
        pytest.skip("TAUTEN_CT_DATA names no data")
    found = load(path)
    assert isinstance(found, Images)
    assert [int(np.sum(found.labels == k)) for k in (1, 0)] == [349, 397]
    split = make_split(found, "grouped", 0, seed=0)
    assert not set(found.sources()[split.train]) & set(found.sources()[split.test])
    shares = [float(np.mean(values > 3)) for values in kurtosis_maps(found).values()]
    assert max(shares) < 0.5  # the paper speaks of high kurtosis


def test_a_report_needs_splits_of_either_kind(cheap, tmp_path):
    images = synthetic(0, positives=40, negatives=50)
    assert study(images, tmp_path, splits=2, seed=0, report_only=True) is None
    assert not list(tmp_path.iterdir())
    study(images, tmp_path, splits=2, seed=0)
    lines = (tmp_path / "ct.jsonl").read_text().splitlines(keepends=True)
    random = [line for line in lines if "grouped" not in line and "official" not in line]
    (tmp_path / "ct.jsonl").write_text("".join(random))  # a run that was stopped
    assert study(images, tmp_path, splits=2, seed=0, report_only=True) is None


def test_a_report_on_images_that_were_not_looked_at(tmp_path):
    with pytest.raises(ValueError, match=r"report_only needs results of ct in .* Run them first"):
        reproduce("ct", out=tmp_path, report_only=True)
    with pytest.raises(ValueError, match="splits must be positive; got 0"):
        reproduce("ct", out=tmp_path, splits=0)
    assert not list(tmp_path.iterdir())
