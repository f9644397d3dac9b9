"""Starting points of PCA, where A is seen directly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._array import like, to_numpy
from ..problem import Problem
from ..robust.base import MAD
from ..tucker import Tucker, hooi


def decompose(
    problem: Problem, rank: Sequence[int], rng: np.random.Generator | None = None
) -> Tucker:
    """Low-rank part (HOOI) of the data of PCA, robustly averaged over the replicates.

    With three replicates or more the average is the entrywise median. With fewer, entries are
    winsorised at one robust standard deviation and divided by the share of entries that this left
    alone (and that are observed), which undoes the shrinkage to first order.
    """
    Y = to_numpy(problem.data.y)
    observed = np.isfinite(Y)
    if Y.shape[0] >= 3:
        seen = observed.any(axis=0)
        average = np.where(seen, np.nanmedian(np.where(seen, Y, 0.0), axis=0), 0.0)
        return hooi(like(average / max(seen.mean(), 1e-300), problem.data.y), rank)
    scale = MAD * np.nanmedian(np.abs(Y)) or np.inf
    kept = np.mean(observed & (np.abs(np.where(observed, Y, 0.0)) <= scale))
    winsorised = np.where(observed, np.clip(np.where(observed, Y, 0.0), -scale, scale), 0.0)
    return hooi(like(winsorised.mean(axis=0) / max(kept, 1e-300), problem.data.y), rank)
