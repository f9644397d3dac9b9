"""Held-out performance of a fit beside that of its rival: the same model, not robust."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..data import Rows
from ..problem import Problem
from ..robust import Robustifier

TRIM = 0.1  # share of the largest losses that a trimmed mean leaves out


@dataclass(frozen=True)
class HeldOut:
    """Losses on data left out, of the fit and of its rival.

    Attributes
    ----------
    ours, theirs : array
        One loss per held-out sample, or per held-out entry of a single tensor.
    rival : str
        The rival's `robust`.
    """

    ours: np.ndarray
    theirs: np.ndarray
    rival: str

    def summaries(self) -> list[tuple[str, float, float]]:
        """Name, ours and theirs, for each way to summarise losses."""
        ways: dict[str, Callable[[np.ndarray], Any]] = {
            "mean loss without the largest tenth": _trimmed,
            "median loss": np.median,
            "mean loss": np.mean,
        }
        return [(name, float(f(self.ours)), float(f(self.theirs))) for name, f in ways.items()]

    @property
    def wins(self) -> float:
        """Share of held-out samples that the fit predicts better than its rival."""
        better, worse = np.sum(self.ours < self.theirs), np.sum(self.ours > self.theirs)
        return float(better / (better + worse)) if better + worse else 0.5


def compare(
    model: Any, problem: Problem, y: np.ndarray | None, data: dict[str, Any], folds: int
) -> HeldOut:
    """Cross-validate both fits, on the same folds, with the rank of the fit.

    Parameters
    ----------
    model : fitted estimator
    problem : Problem
        The one it solved.
    y : array or None
        Responses as given to fit; None for PCA.
    data : dict
        What else was given to fit, by name.
    folds : int
    """
    mine = clone(model).set_params(rank=model.rank_, verbose=0)
    robust = model.robust_.name != "none"
    rival = "none" if robust else "auto"
    models = [mine, clone(mine).set_params(robust=rival)]
    losses: list[list[np.ndarray]] = [[], []]
    for train, named, test in _splits(problem, y, data, folds):
        for estimator, found in zip(models, losses, strict=True):
            estimator.fit(*train, **named)
            values = test.values(estimator._point(test))
            single = y is None and values.shape[0] == 1
            rows = values.reshape(-1, 1) if single else values.reshape(len(values), -1)
            rows = rows[~np.isnan(rows).all(axis=1)]
            found.append(np.nansum(rows, axis=1))
    ours, theirs = (np.concatenate(found) for found in losses)
    return HeldOut(ours, theirs, rival)


def _splits(
    problem: Problem, y: np.ndarray | None, data: dict[str, Any], folds: int
) -> Iterator[tuple[list[np.ndarray], dict[str, np.ndarray], Problem]]:
    """Yield what to fit to, and the problem of the rest."""
    from sklearn.model_selection import KFold, StratifiedKFold  # here: half a second to import

    rows, plain = problem.data, replace(problem, robust=Robustifier())
    if rows.X is None and rows.n == 1:
        yield from _entry_splits(plain, folds)
        return
    kind = StratifiedKFold if problem.loss.classes else KFold
    splits = kind(folds, shuffle=True, random_state=0)
    for train, test in splits.split(np.zeros(rows.n), y if problem.loss.classes else None):
        given = [rows.y[train]] if rows.X is None or y is None else [rows.X[train], y[train]]
        named = {name: np.asarray(value)[train] for name, value in data.items()}
        X, Z = (None if part is None else part[test] for part in (rows.X, rows.Z))
        yield given, named, replace(plain, data=Rows(X, rows.y[test], Z))


def _entry_splits(
    problem: Problem, folds: int
) -> Iterator[tuple[list[np.ndarray], dict[str, np.ndarray], Problem]]:
    """A single tensor: entries are left out, as if they were missing."""
    from sklearn.model_selection import KFold  # here: half a second to import

    Y = problem.data.y[0]
    observed = np.flatnonzero(~np.isnan(Y))
    for _, test in KFold(folds, shuffle=True, random_state=0).split(observed):
        left_out = np.zeros(Y.size, bool)
        left_out[observed[test]] = True
        left_out = left_out.reshape(Y.shape)
        rest = Rows(None, np.where(left_out, Y, np.nan)[None])
        yield [np.where(left_out, np.nan, Y)], {}, replace(problem, data=rest, missing=True)


def _trimmed(losses: np.ndarray) -> float:
    kept = np.sort(losses)[: int(np.ceil((1 - TRIM) * len(losses)))]
    return float(kept.mean())
