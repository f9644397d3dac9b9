"""HOSVD and HOOI against TensorLy, and where they are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import oracle
from points import FEW, close, full, points
from tauten.tucker import Tucker, hooi, hosvd


def error(point, tensor):
    return np.linalg.norm(full(point) - tensor)


@pytest.mark.parametrize(
    ("shape", "rank"),
    [
        ((5, 6), (2, 2)),
        ((5, 4, 3), (2, 3, 2)),
        ((4, 3, 3, 2), (2, 2, 3, 1)),
        ((6, 2, 3), (3, 2, 2)),
    ],
)
def test_hosvd_and_hooi_are_as_good_as_tensorly(shape, rank, rng):
    from tensorly.decomposition import tucker as tensorly_tucker

    low = Tucker(
        rng.normal(size=rank), [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    )
    noisy = low.full() + rng.normal(size=shape)
    core, factors = tensorly_tucker(noisy, rank, n_iter_max=200, tol=1e-12, init="svd")
    best = np.linalg.norm(oracle.full(core, factors) - noisy)
    found = error(hooi(noisy, rank, n_iter=200, tol=1e-14), noisy)
    assert found == pytest.approx(best, rel=1e-6)
    assert found <= error(hosvd(noisy, rank), noisy) * (1 + 1e-10)
    bound = sum(
        np.sum(np.linalg.svd(oracle.unfold(noisy, k), compute_uv=False)[r:] ** 2)
        for k, r in enumerate(rank)
    )
    assert error(hosvd(noisy, rank), noisy) ** 2 <= bound * (1 + 1e-10)
    assert error(hooi(low.full(), rank), low.full()) < 1e-10 * low.norm()


@FEW
@given(points())
def test_full_rank_decompositions_are_exact(case):
    point, rng = case
    tensor = rng.normal(size=point.shape)
    for decompose in (hosvd, hooi):
        found = decompose(tensor, point.shape)
        close(full(found), tensor)
        for u in found.factors:
            close(u.T @ u, np.eye(u.shape[1]))
