"""Random Tucker points, for tests of their algebra."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings

import oracle
from tauten.tucker import Tucker

FEW = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def points(draw, max_rank=4):
    """A random point: up to five modes, ranks from one to full, feasible or not."""
    order = draw(st.integers(1, 5))
    shape = draw(st.lists(st.integers(1, 4), min_size=order, max_size=order))
    rank = [draw(st.integers(1, min(p, max_rank))) for p in shape]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    return Tucker(rng.normal(size=rank), factors), rng


def close(mine, theirs, tol=1e-10):
    np.testing.assert_allclose(mine, theirs, rtol=tol, atol=tol * max(1, np.abs(theirs).max()))


def full(point):
    return oracle.full(point.core, point.factors)
