"""How samples see A: what shares a read of X, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from tauten.designs import Covariate, Direct
from tauten.tucker import Affine


@pytest.mark.parametrize("response", [(), (2,), (3, 2)])
@pytest.mark.parametrize("centred", [False, True])
def test_gradients_with_respect_to_the_tensor_share_a_read(response, centred, rng):
    X, center = rng.normal(size=(9, 4, 3)), rng.normal(size=(4, 3)) if centred else np.zeros((4, 3))
    scores = [rng.normal(size=(9, *response)) for _ in range(3)]
    found = Covariate(center if centred else None).adjoints(scores, X)
    for one, score in zip(found, scores, strict=True):
        np.testing.assert_allclose(one, np.einsum("nij,n...->ij...", X - center, score))


def test_noisy_copies_of_the_tensor_have_sums_of_their_own(rng):
    scores = [rng.normal(size=(9, 4, 3)) for _ in range(2)]
    for one, score in zip(Direct().adjoints(scores, None), scores, strict=True):
        np.testing.assert_allclose(one, np.sum(score, axis=0))


def test_one_score_may_serve_every_sample(rng):
    """With a response of numbers and with one of tensors; blocks are what is side by side."""

    for response in ((), (2,)):
        factors = [rng.normal(size=(p, 2)) for p in (4, 3, *response)]
        theta = Affine(
            rng.normal(size=(2,) * len(factors)), factors, rng.normal(size=(1, *response))
        )
        X, Z = rng.normal(size=(7, 4, 3)), rng.normal(size=(7, 1))
        _, pullback = Covariate().linearise(theta, X, Z)
        score = rng.normal(size=(1, *response))
        many = np.repeat(score, 7, axis=0)
        np.testing.assert_allclose(pullback.flat(score), pullback.flat(many), rtol=1e-12)
        blocks = np.concatenate([b.reshape(7, -1) for b in pullback(many)], axis=1)
        np.testing.assert_array_equal(pullback.flat(many), blocks)
