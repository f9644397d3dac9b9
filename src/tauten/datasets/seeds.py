"""Randomness comes from a generator, or from a seed, that is always given."""

from __future__ import annotations

import numpy as np

Seed = np.random.Generator | int


def generator_of(rng: Seed | None) -> np.random.Generator:
    """Return the generator, or the one of a seed; raise if there is neither."""
    if rng is None:
        raise ValueError("rng must be a numpy Generator or an int seed; got None")
    return np.random.default_rng(rng)
