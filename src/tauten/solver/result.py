"""Where a run is, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._array import Array
from ..tucker import Tucker

DIVERGED, INTERRUPTED = "diverged", "interrupted"  # how the reason of such an end begins
LONGEST = 0.1  # relative to A, the longest step that is stretched or taken with a whole Hessian
SHRINK = 0.7  # steps that shrink less than this want a new matrix
LITTLE = 0.08  # share lost by cutting below which a matrix is that of gentler thresholds too


@dataclass(frozen=True)
class Iteration:
    """One iteration, as kept in the history and shown to a callback.

    Attributes
    ----------
    t : int
        Its number, from 1.
    value : float
        Mean loss before the step.
    change : float
        Relative change of A, and of the vector coefficients, in the step.
    truncated : tuple of float
        Share of per-sample gradient entries changed by the robustifier, block by block.
    """

    t: int
    value: float
    change: float
    truncated: tuple[float, ...]


Callback = Callable[[Iteration, Tucker], Any]


@dataclass(frozen=True)
class Result:
    """What a solver returns.

    Attributes
    ----------
    theta : Tucker
        The last finite iterate.
    n_iter : int
        Steps taken.
    converged : bool
        Whether the loop ended as it should.
    reason : str
        Why it ended, in words.
    history : list of Iteration
    n_passes : float
        How often the data were read; an estimator counts its start and thresholds as well. Samples
        that are kept in memory to be looked at are read once.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> result = tt.TensorRegressor(rank=1).fit(data.X, data.y).result_
    >>> result.converged, len(result.history) == result.n_iter
    (True, True)
    """

    theta: Tucker
    n_iter: int
    converged: bool
    reason: str
    history: list[Iteration] = field(repr=False)
    n_passes: float = 0.0

    @property
    def diverged(self) -> bool:
        """Whether the steps grew without bound: theta is then of no use."""
        return self.reason.startswith(DIVERGED)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it: theta is what was found so far."""
        return self.reason.startswith(INTERRUPTED)


@dataclass(frozen=True)
class Kept:
    """The matrix of a Newton step, for the next ones.

    Attributes
    ----------
    point : Tucker
        Where it was formed.
    system : array (K, K)
        The matrix, invertible, in coordinates along the steps that move A there.
    lost : float
        The share of it that was lost to bends.
    """

    point: Tucker
    system: Array
    lost: float


@dataclass
class Progress:
    """Where a run is: all that it needs to go on from there.

    Attributes
    ----------
    trail : list of Tucker
        The last points, up to three; empty before the run begins.
    history : list of Iteration
    largest : float
        Norm of A beyond which it is running away.
    moved, before : float
        Lengths of the last step and of the one before, that of an earlier run to begin with;
        infinite where that tells nothing.
    reach : float
        Longest step, relative to A, that a Hessian is trusted with: half a step where the next was
        no shorter.
    pace : float
        Of accelerated descent, what the plain steps are multiplied by.
    memory : list of pairs of Tucker
        Of accelerated descent, the last points and the plain steps from them.
    thrifty : bool
        Whether the matrix of a Newton step serves the next ones too, while they shrink: they are
        no longer quadratic, but cost much less. For fits that need not be exact.
    kept : Kept, optional
        Such a matrix.
    keeps : bool
        Whether the tensor of a Newton step serves the next ones too: see :meth:`Newton.needs`. It
        is as large as a sample; for one run at a time.
    tensor : array, optional
        Such a tensor, the gradient with respect to A: see :attr:`Gradient.tensor`.
    """

    trail: list[Tucker] = field(default_factory=list)
    history: list[Iteration] = field(default_factory=list)
    largest: float = math.inf
    moved: float = math.inf
    reach: float = LONGEST
    before: float = math.inf
    pace: float = 0.0
    memory: list[tuple[Tucker, Tucker]] = field(default_factory=list)
    thrifty: bool = False
    kept: Kept | None = None
    keeps: bool = False
    tensor: Array | None = None

    def move(self, length: float, size: float, *, stretched: bool) -> None:
        """Note a step of a length, from a point of a size.

        Trust a Hessian a little further after a shorter step, much less after a longer one; one
        that was stretched tells nothing.
        """
        if not stretched and length < self.moved:
            self.reach = min(1.25 * self.reach, LONGEST)
        elif not stretched:
            self.reach = self.moved / max(size, np.finfo(np.float64).tiny) / 2
        if not length < SHRINK * self.moved:
            self.kept = None
        if stretched:
            self.before = self.moved = math.inf
        else:
            self.before = self.moved if self.moved < math.inf else self.before
            self.moved = length

    def gentler(self) -> Progress:
        """Return what a fit with a gentler threshold begins with, that starts where this one ended.

        A matrix that little was cut from is kept. Others are too small: steps would go too far.
        """
        whole = self.kept is not None and self.kept.lost < LITTLE
        return Progress(thrifty=self.thrifty, kept=self.kept if whole else None)
