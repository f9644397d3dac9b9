"""Starting points that need chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._array import like
from ..problem import Problem
from ..tucker import Tucker
from .decomposition import decompose
from .thresholding import iht


def random(problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Random orthonormal factors and a random core, of the norm of the model's default start."""
    scale = (decompose if problem.data.X is None else iht)(problem, rank)
    shapes = zip(scale.shape, scale.rank, strict=True)
    factors = [np.linalg.qr(rng.standard_normal((p, r)))[0] for p, r in shapes]
    core = rng.standard_normal(scale.rank)
    core *= scale.norm() / np.linalg.norm(core)
    reference = scale.core
    return replace(
        scale, core=like(core, reference), factors=tuple(like(u, reference) for u in factors)
    )
