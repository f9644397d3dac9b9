"""The CT study: how well low-rank logistic regression tells COVID slices, robust or not."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from .._checks import check_number
from ..estimators import TensorClassifier
from ..robust import Truncate
from ..solver import ScaledDescent
from .ct_data import Images
from .ct_report import ct_section
from .journal import Journal, Line
from .report import Section
from .runner import Callback, Progress

RANK = 5
# Block means of 5 × 5 pixels: the fits are as good as on single pixels, and 25 times as fast.
BLOCK = 5
TRAIN, TEST = {1: 200, 0: 250}, {1: 117, 0: 147}  # the paper's sizes
DESIGNS = ("random", "grouped", "official")
MEASURES = ("precision", "recall", "F1", "training F1")
STEPS = 100  # of descent: more fit the training images better and others worse


@dataclass(frozen=True)
class Split:
    """Which images train and which test."""

    train: np.ndarray
    test: np.ndarray


def make_split(images: Images, design: str, index: int, seed: int) -> Split:
    """Draw a split.

    Parameters
    ----------
    images : Images
    design : {"random", "grouped", "official"}
        The paper's 200 + 250 against 117 + 147 images, drawn one by one; the same sizes or nearly
        so with all images of a source on one side; or the data set's own train and test.
    index, seed : int
    """
    if design == "official":
        known = np.flatnonzero(images.split == "train"), np.flatnonzero(images.split == "test")
        return Split(*known)
    digest = hashlib.sha256(f"ct|{design}".encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32).tolist()
    rng = np.random.default_rng(np.random.SeedSequence([seed, index, *words]))
    units = images.sources() if design == "grouped" else np.arange(len(images.labels)).astype(str)
    train: list[int] = []
    test: list[int] = []
    for label in (1, 0):
        rows = np.flatnonzero(images.labels == label)
        scale = min(1.0, len(rows) / (TRAIN[label] + TEST[label]))  # fewer images, same shares
        drawn = [rows[units[rows] == unit] for unit in rng.permutation(np.unique(units[rows]))]
        ends = np.cumsum([len(unit) for unit in drawn])
        first = int(np.searchsorted(ends, scale * TRAIN[label])) + 1
        last = int(np.searchsorted(ends, ends[first - 1] + scale * TEST[label])) + 1
        train.extend(np.concatenate(drawn[:first]))
        test.extend(np.concatenate(drawn[first:last]))
    return Split(np.array(train), np.array(test))


def pixels(images: Images) -> np.ndarray:
    """Block means of the grey levels, in [0, 1]."""
    n, side = len(images.images), images.images.shape[1] // BLOCK
    blocks = images.images.reshape(n, side, BLOCK, side, BLOCK)
    return blocks.mean(axis=(2, 4)) / 255


def classifiers(seed: int) -> dict[str, Callable[[], Any]]:
    """The methods compared; the paper's two differ in the truncation only."""
    solver = ScaledDescent(n_iter=STEPS)
    paper: dict[str, Any] = {
        "rank": RANK,
        "init": "nuclear",
        "solver": solver,
        "ridge": 0.0,  # the early stop is theirs
        "random_state": seed,
    }
    svm = GridSearchCV(SVC(), {"C": [1, 10, 100], "gamma": ["scale", 3e-4]}, cv=3)
    ridge = GridSearchCV(LogisticRegression(max_iter=300), {"C": np.logspace(-5, -1, 5)}, cv=3)
    return {
        "VGD": lambda: TensorClassifier(robust="none", **paper),
        "RGD": lambda: TensorClassifier(robust=Truncate("theory"), **paper),
        "auto": lambda: TensorClassifier(RANK, random_state=seed),
        "ridge logistic": lambda: Flat(ridge),
        "SVM": lambda: Flat(svm),
        "1-NN": lambda: Flat(KNeighborsClassifier(1)),
    }


class Flat:
    """A classifier of vectors, given tensors."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Flat:
        """Fit the model to flattened samples."""
        self.model.fit(X.reshape(len(X), -1), y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of flattened samples."""
        return self.model.predict(X.reshape(len(X), -1))


def evaluate(images: Images, X: np.ndarray, design: str, index: int, seed: int) -> Line:
    """Fit every method to a split and return its scores; a line of the results file."""
    split = make_split(images, design, index, seed)
    centre, scale = X[split.train].mean(axis=0), X[split.train].std(axis=0) + 1e-3
    train, test = ((X[rows] - centre) / scale for rows in (split.train, split.test))
    y, wanted = images.labels[split.train], images.labels[split.test]
    scores = {}
    for name, make in classifiers(seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
            model = make().fit(train, y)
        scores[name] = [*_scores(wanted, model.predict(test)), _scores(y, model.predict(train))[2]]
    sizes = [int(np.sum(v == k)) for v in (y, wanted) for k in (1, 0)]
    return {"design": design, "index": index, "sizes": sizes, "scores": scores}


def _scores(wanted: np.ndarray, found: np.ndarray) -> list[float]:
    scores = precision_recall_fscore_support(wanted, found, average="binary", zero_division=0.0)
    return [float(s) for s in scores[:3]]


def study(
    images: Images,
    folder: str | Path,
    *,
    splits: int,
    seed: int,
    jobs: int = 1,
    report_only: bool = False,
    callback: Callback | None = None,
) -> Section | None:
    """Run what is missing of the CT study and return its part of the report.

    Parameters
    ----------
    images : Images
    folder : path
        Where the results file is, or will be.
    splits : int
        How many random and how many grouped splits.
    seed, jobs : int
    report_only : bool
        Leave out what is missing; without a split of either kind there is no report.
    callback : callable, optional
        Called with a :class:`~.runner.Progress` as work gets done.
    """
    check_number("splits", splits, integer=True)
    digest = hashlib.sha256(images.images.tobytes() + images.labels.tobytes()).hexdigest()
    header = {"experiment": "ct", "images": digest, "origin": images.origin, "seed": seed}
    journal = Journal(Path(folder) / "ct.jsonl", header)
    wanted = [(d, k) for d in DESIGNS for k in range(_number(images, d, splits))]
    lines = _done(journal, wanted)
    if report_only:
        wanted = [key for key in wanted if key in lines]
        if not {"random", "grouped"} <= {design for design, _ in wanted}:
            return None
    if len(lines) < len(wanted):
        with journal.writing() as append:
            lines = _done(journal, wanted)
            todo = [key for key in wanted if key not in lines]
            X, begin = pixels(images), time.perf_counter()
            parallel = Parallel(
                n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
            )
            for done, line in enumerate(
                parallel(delayed(evaluate)(images, X, d, k, seed) for d, k in todo), start=1
            ):
                append(line)
                lines[line["design"], line["index"]] = line
                if callback is not None:
                    left = (time.perf_counter() - begin) / done * (len(todo) - done)
                    callback(Progress("ct", "splits", done, len(todo), left))
    return ct_section(images, coefficient_images(images, seed), [lines[key] for key in wanted])


def _number(images: Images, design: str, splits: int) -> int:
    if design != "official":
        return splits
    both = all(len(np.unique(images.labels[images.split == s])) == 2 for s in ("train", "test"))
    return int(both)  # one split, where it is known


def _done(journal: Journal, wanted: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Line]:
    lines = {(line["design"], line["index"]): line for line in journal.read()}
    return {key: line for key, line in lines.items() if key in wanted}


def coefficient_images(images: Images, seed: int) -> dict[str, np.ndarray]:
    """Coefficients of the tensor methods, fitted to the first random split."""
    split, X = make_split(images, "random", 0, seed), pixels(images)
    centre, scale = X[split.train].mean(axis=0), X[split.train].std(axis=0) + 1e-3
    train, y = (X[split.train] - centre) / scale, images.labels[split.train]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in ("VGD", "RGD", "auto"):
            found[name] = np.asarray(classifiers(seed)[name]().fit(train, y).coef_)
    return found
