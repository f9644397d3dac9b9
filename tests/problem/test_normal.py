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
}


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


@pytest.mark.parametrize("deficient", [False, True], ids=["", "columns of U alike"])
@pytest.mark.parametrize("case", CASES)
def test_normal_matrices_are_their_definition(case, deficient, rng, make_theta):
    of_x, of_y, rank, c = CASES[case]
    theta = make_theta((*(of_x or ()), *of_y), rank, linear=(c, *of_y) if c else None)
    if deficient:
        theta.factors[-1][:, 1] = theta.factors[-1][:, 0]
    X = None if of_x is None else rng.normal(size=(N, *of_x))
    Z = rng.normal(size=(N, c)) if c else None
    y, design = rng.normal(size=(N, *of_y)), Covariate() if of_x else Direct()
    line = Kernel(Squared(), design, Robustifier()).linearise(theta, Chunk(X, y, Z, None, 0))
    J = derivatives(design, theta, X, Z)
    W, K = rng.normal(size=y.shape), rng.random((N, J.shape[-1]))
    pairs = [(W, None), (W, K), (W**2, K)]
    for (weight, kept), mine in zip(pairs, normal_matrices(line, pairs), strict=True):
        left = J if kept is None else kept[:, None, :] * J
        expected = np.einsum("iqa,iq,iqb->ab", left, weight.reshape(N, -1), J)
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-10)
