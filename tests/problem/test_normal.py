"""Normal matrices against their definition, with derivatives by finite differences."""

import numpy as np
import pytest

from tauten.data import Chunk
from tauten.designs import Covariate, Direct
from tauten.losses import Squared
from tauten.problem.normal import normal_matrices
from tauten.problem.samplewise import Kernel
from tauten.robust import Robustifier

N = 6
CASES = {  # shapes of the covariates and of the response, ranks, vector covariates
    "number": ((4, 3), (), (2, 2), 0),
    "number, vector": ((4, 3), (), (2, 2), 2),
    "vector": ((4,), (3,), (2, 2), 0),
    "vector, vector": ((4, 2), (5,), (2, 2, 3), 2),
    "matrix": ((3,), (4, 3), (2, 2, 2), 0),
    "matrix, vector": ((3,), (4, 2), (2, 2, 2), 2),
    "PCA": (None, (3, 4, 2), (2, 3, 2), 0),
    "one entry": ((4, 2), (1,), (2, 2, 2), 1),
    "more columns than entries": ((4,), (2,), (3, 3), 1),
    "number as covariate": ((), (3, 4), (2, 2), 1),
}


@pytest.fixture
def theta(case, make_theta):
    of_x, of_y, rank, c = CASES[case]
    return make_theta((*(of_x or ()), *of_y), rank, linear=(c, *of_y) if c else None)


def derivatives(design, theta, X, Z):
    """``dη_iq / dθ_j`` (n, responses, parameters): η is linear in every single parameter."""
    found = []
    for k, block in enumerate(theta.blocks):
        for index in np.ndindex(block.shape):
            ends = []
            for step in (1.0, -1.0):
                blocks = [b.copy() for b in theta.blocks]
                blocks[k][index] += step
                ends.append(design.predict(theta.with_blocks(blocks), X, Z))
            found.append((ends[0] - ends[1]) / 2)
    J = np.stack(found, axis=-1)
    J = J.reshape(J.shape[0], -1, J.shape[-1])
    return np.broadcast_to(J, (N, *J.shape[1:]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", ["numpy", "torch", "strict"], indirect=True)
@pytest.mark.parametrize("case", CASES)
def test_normal_matrices_are_their_definition(case, theta, make, dtype, rng):
    check(theta, case, lambda array: make(np.asarray(array, dtype)), rng)


@pytest.mark.parametrize("case", ["vector, vector", "matrix", "PCA"])
def test_columns_of_a_factor_may_be_alike(case, theta, rng):
    theta.factors[-1][:, 1] = theta.factors[-1][:, 0]
    check(theta, case, np.asarray, rng)


def check(theta, case, make, rng):
    of_x, of_y, _, c = CASES[case]
    X = None if of_x is None else rng.normal(size=(N, *of_x))
    Z = rng.normal(size=(N, c)) if c else None
    y, design = rng.normal(size=(N, *of_y)), Direct() if of_x is None else Covariate()
    J = derivatives(design, theta, X, Z)
    W, K = rng.normal(size=y.shape), rng.random((N, J.shape[-1]))
    chunk = Chunk(*(None if a is None else make(a) for a in (X, y, Z)), None, 0)
    there = theta.with_blocks([make(block) for block in theta.blocks])
    line = Kernel(Squared(), design, Robustifier()).linearise(there, chunk)
    pairs = [(W, None), (W**2, None), (W, K), (W**2, K)]
    given = [(make(weight), None if kept is None else make(kept)) for weight, kept in pairs]
    for (weight, kept), mine in zip(pairs, normal_matrices(line, given), strict=True):
        assert mine.dtype == chunk.y.dtype
        left = J if kept is None else kept[:, None, :] * J
        expected = np.einsum("iqa,iq,iqb->ab", left, weight.reshape(N, -1), J)
        tol = 1e-10 if np.asarray(mine).dtype == np.float64 else 1e-4
        np.testing.assert_allclose(np.asarray(mine), expected, rtol=tol, atol=tol)
