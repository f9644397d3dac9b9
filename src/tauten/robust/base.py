"""What a robust gradient is: four steps, each the identity unless a subclass says otherwise."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from .._array import Array, flat, namespace, ratio, to_numpy
from ..registry import Registered
from ..tucker import Tucker


class Pilot(Protocol):
    """What thresholds are chosen from: a fit so far, seen sample by sample."""

    n: int
    n_blocks: int
    residual: bool  # whether the loss is one of the residual
    classes: bool  # whether it is one of classes
    direct: bool  # whether A is seen directly, as in PCA
    rough: bool  # whether the choice is one that a better one will be found with

    def scores(self, most: int | None = None) -> np.ndarray:
        """Scores ``∂ℓ/∂η`` of (some of) the samples; nan where a response is missing.

        Where the loss is one of the residual, more than `most` may be as many, drawn and observed.
        """

    def gradients(self, bend: Callable[[Array], Array] | None = None) -> list[np.ndarray]:
        """Per-sample partial gradients, block by block, from scores bent by `bend`."""

    def norms(self) -> np.ndarray:
        """Frobenius norms of the covariates X_i."""

    def canonical(self) -> Pilot:
        """The same fit, with orthonormal factors and an all-orthogonal core."""

    def risks(self, robusts: Sequence[Robustifier]) -> list[float]:
        """Estimated squared errors of A with given robustifiers; at a canonical point."""

    def entry_risks(self, robusts: Sequence[Robustifier]) -> list[float]:
        """The same as if every gradient entry were alone, much sooner; nan where not known."""


class Robustifier(Registered, name="none"):
    """The mean of per-sample gradients, not robustified: vanilla gradient descent.

    Every robust gradient is the same four steps, and a subclass bends some of them::

        shrink the sample  ->  bend its score  ->  bend its gradient  ->  sum by block, reduce
        (‖X_i‖ ≤ ω)            (residual at ν)     (entrywise at τ)       (mean, median of means)

    Sums add, so the same four serve data in memory, on disk and on a cluster.

    Attributes
    ----------
    bounds : frozenset of {"responses", "covariates"}
        Whose influence on the gradient is bounded, however wild one sample may be.
    n_blocks_ : int
        How many blocks of samples are summed apart; sample i goes to block ``i mod n_blocks_``.

    Examples
    --------
    By name, with parameters; ``robust=`` of an estimator takes the same strings:

    >>> import numpy as np
    >>> import tauten as tt
    >>> robust = tt.robust.Robustifier.get("truncate:tau=2").calibrate()
    >>> robust.sample(np.array([1.0, -9.0]), k=0)
    array([ 1., -2.])
    """

    bounds: ClassVar[frozenset[str]] = frozenset()
    n_blocks_: int = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Where a step of one block is new, that of all blocks is made of it again."""
        super().__init_subclass__(**kwargs)
        for one, every in (("sample", "samples"), ("sample_slope", "sample_slopes")):
            if one in vars(cls) and every not in vars(cls):
                setattr(cls, every, getattr(Robustifier, every))

    @property
    def automatic(self) -> bool:
        """Whether a threshold is to be chosen from a pilot."""
        return any(isinstance(value, str) for value in self.get_params().values())

    def shrink(self, norms: Callable[[], Array]) -> Array | None:
        """Return factors (n,) that shrink each X_i, or None to leave them alone.

        `norms` computes the norms of the (centred) X_i when called.
        """
        return None

    def score(self, score: Array) -> Array:
        """Bend the scores, of the shape of the responses."""
        return score

    def sample(self, gradient: Array, k: int) -> Array:
        """Bend the per-sample gradients of block k (0 the core, 1 to d the factors)."""
        return gradient

    def sample_slope(self, gradient: Array, k: int) -> Array:
        """Derivative of :meth:`sample`, entry by entry; if not given, by differences."""
        return slope_of(partial(self.sample, k=k), gradient)

    def samples(self, gradients: Array, point: Tucker) -> Array:
        """Bend the gradients of all blocks of a point, side by side in (n, D): what steps call.

        By :meth:`sample`, block by block. Give it only where it is quicker at once.
        """
        return _by_block(self.sample, gradients, point)

    def sample_slopes(self, gradients: Array, point: Tucker) -> Array:
        """Derivative of :meth:`samples`, entry by entry."""
        return _by_block(self.sample_slope, gradients, point)

    def reduce(self, means: Array) -> Array:
        """Make one gradient of the means over the blocks of samples: (K, D) to (D,)."""
        return means[0, ...]

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Return a copy with its thresholds checked and filled in, before the steps are used.

        A pilot is needed only where a threshold is ``"auto"``.
        """
        return copy(self)


class GradientThreshold(Robustifier):
    """Base of those that bend each per-sample gradient at a threshold τ.

    A subclass gives :meth:`sample` and the rule :meth:`choose` for ``tau="auto"``, or for each of
    its `rules`. It bounds the influence of responses and covariates.
    """

    bounds = frozenset({"responses", "covariates"})
    rules: ClassVar[tuple[str, ...]] = ("auto",)

    def __init__(self, tau: Any = "auto") -> None:
        self.tau = tau

    def calibrate(self, pilot: Pilot | None = None) -> Self:
        """Check tau, or choose it from the pilot's gradients."""
        new = copy(self)
        if isinstance(self.tau, str):
            if self.tau not in self.rules:
                raise TypeError(
                    f"tau must be a positive number, inf or one of {', '.join(self.rules)}; got "
                    f"{self.tau!r}"
                )
            new.tau_ = self.choose(required(pilot))
        elif isinstance(self.tau, (Sequence, Tucker)):
            blocks = self.tau.blocks if isinstance(self.tau, Tucker) else self.tau
            new.tau_ = _block_thresholds(blocks, pilot)
        else:
            new.tau_ = positive("tau", self.tau)
        return new

    def choose(self, pilot: Pilot) -> list[Any]:
        """Return one threshold (a number, or an array per entry) for each block."""
        raise NotImplementedError

    def threshold(self, k: int) -> Any:
        """Return the threshold of block k."""
        return self.tau_[k] if isinstance(self.tau_, list) else self.tau_

    def thresholds(self, point: Tucker) -> Any:
        """Return those of all blocks of a point: one number, or one for each entry (D,)."""
        if not isinstance(self.tau_, list):
            return self.tau_
        pairs = zip(self.tau_, point.blocks, strict=True)
        return np.concatenate([np.broadcast_to(to_numpy(t), b.shape).ravel() for t, b in pairs])


def _by_block(step: Callable[[Array, int], Array], gradients: Array, point: Tucker) -> Array:
    """Apply a step to each block of gradients that are side by side; the same array if to none."""
    blocks = point.split(gradients)
    bent = [step(block, k) for k, block in enumerate(blocks)]
    return gradients if all(map(operator.is_, bent, blocks)) else flat(bent)


def slope_of(bend: Callable[[Array], Array], raw: Array) -> Array:
    """Derivative of an entrywise bend, by central differences; one where there is nothing."""
    xp = namespace(raw)
    h = max(1e-6, 1e4 * float(xp.finfo(raw.dtype).eps)) * xp.abs(raw)  # well above rounding
    if (ahead := bend(above := raw + h)) is above:
        return xp.ones_like(raw)
    return ratio(ahead - bend(raw - h), 2 * h)


def required(pilot: Pilot | None) -> Pilot:
    """Return the pilot, or say why one is needed."""
    if pilot is None:
        raise ValueError("'auto' thresholds need a pilot: give a number, or fit with an estimator")
    return pilot


def _block_thresholds(blocks: Sequence[Any], pilot: Pilot | None) -> list[Any]:
    if pilot is not None and len(blocks) != pilot.n_blocks:
        raise ValueError(
            f"tau must be one number or one entry per block (core, U_1, ..., U_d and, with an "
            f"intercept or vector covariates, theirs): {pilot.n_blocks} here; got {len(blocks)}"
        )
    for block in blocks:
        if not np.all(to_numpy(block) > 0):
            raise ValueError(f"tau must be positive in every block; got {block}")
    return list(blocks)


def positive(name: str, value: Any) -> float:
    """Return a threshold as a float, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a positive number, inf or 'auto'; got {value!r}")
    if not float(value) > 0:
        raise ValueError(f"{name} must be positive (inf switches it off); got {value}")
    return float(value)
