"""Tensors to estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..tucker import Tucker
from .seeds import Seed, generator_of


def truth(
    shape: Sequence[int] = (10, 10, 10),
    rank: int | Sequence[int] = 1,
    *,
    reading: str = "unit",
    norm: float | None = None,
    rng: Seed | None = None,
) -> Tucker:
    """Return a tensor A* to estimate.

    The paper's ``A* = √10 · 1∘1∘1 = S* x_j U_j*`` can be read in two ways, which differ in scale.

    Parameters
    ----------
    shape : sequence of ints
        Dimensions.
    rank : int or sequence of ints
        One for all modes or one per mode; 1 for the paper's readings.
    reading : {"unit", "ones", "random"}
        ``U_j* = 1/√p_j``, so that ``‖A*‖ = √10``; ``U_j* = 1``, so that ``‖A*‖ = √10 Π √p_j``;
        or uniformly random orthonormal factors and a Gaussian core.
    norm : float, optional
        Frobenius norm of A*. By default that of the reading; √10 for a random one.
    rng : numpy Generator or int
        Needed for a random one.

    Examples
    --------
    >>> round(truth(reading="ones").norm(), 6), round(truth(reading="unit").norm(), 6)
    (100.0, 3.162278)
    >>> truth((5, 6, 7), (2, 3, 2), reading="random", norm=3.0, rng=0).rank
    (2, 3, 2)
    """
    shape, rank = tuple(shape), _ranks(shape, rank)
    if reading not in {"unit", "ones", "random"}:
        raise ValueError(f"reading must be 'unit', 'ones' or 'random'; got {reading!r}")
    if norm is not None and not (0 < norm < math.inf):
        raise ValueError(f"norm must be a positive number; got {norm}")
    if reading == "random":
        return _random_truth(shape, rank, norm or math.sqrt(10), generator_of(rng))
    if max(rank) > 1:
        raise ValueError(
            f"rank must be 1 for reading {reading!r}; got {rank}. Use 'random' instead"
        )
    lengths = [math.sqrt(p) for p in shape]
    scales = lengths if reading == "unit" else [1.0] * len(shape)
    # ‖A*‖ = S* Π ‖U_j*‖, and ‖U_j*‖ = √p_j / scale.
    core = math.sqrt(10) if norm is None else norm * math.prod(scales) / math.prod(lengths)
    factors = [np.full((p, 1), 1 / scale) for p, scale in zip(shape, scales, strict=True)]
    return Tucker(np.full(rank, core), tuple(factors))


def _random_truth(
    shape: tuple[int, ...], rank: tuple[int, ...], norm: float, rng: np.random.Generator
) -> Tucker:
    core = rng.standard_normal(rank)
    factors = [_orthonormal(p, r, rng) for p, r in zip(shape, rank, strict=True)]
    return Tucker(norm / np.linalg.norm(core) * core, tuple(factors))


def _orthonormal(p: int, r: int, rng: np.random.Generator) -> np.ndarray:
    q, triangle = np.linalg.qr(rng.standard_normal((p, r)))
    return q * np.sign(np.diag(triangle))  # without the signs QR is not uniform over the rotations


def _ranks(shape: tuple[int, ...], rank: int | Sequence[int]) -> tuple[int, ...]:
    """One rank per mode, checked against what a tensor of that shape can have."""
    ranks = (int(rank),) * len(shape) if isinstance(rank, int | np.integer) else tuple(rank)
    if not shape or min(shape) < 1 or len(ranks) != len(shape) or min(ranks) < 1:
        raise ValueError(
            f"shape must hold positive ints and rank one for all or one per mode; got {shape} and "
            f"{rank}"
        )
    for mode, (p, r) in enumerate(zip(shape, ranks, strict=True)):
        limit = min(p, math.prod(ranks) // r)
        if r > limit:
            raise ValueError(
                f"rank of axis {mode} must be at most {limit}, the smaller of its dimension and "
                f"the product of the other ranks; got {r}"
            )
    return ranks
