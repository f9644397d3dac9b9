"""Cauchy's score: redescending, for the wildest responses."""

from __future__ import annotations

from .._array import Array, namespace
from .huber import Huber


class Cauchy(Huber, name="cauchy"):
    """Bend the score as ``s / (1 + (s / ν)²)``: the further out a response, the less it counts.

    The likelihood score of Cauchy noise of scale ν. More efficient than :class:`Huber` under very
    heavy tails, but it needs a start near the answer. Bounds the influence of responses only.

    Parameters
    ----------
    nu : float or "auto"
        Scale, in the units of the score; ``"auto"`` is 2.385 robust standard deviations of the
        pilot's scores: 95% efficient for normal noise.

    Attributes
    ----------
    nu_ : float
        The scale in use.

    Examples
    --------
    >>> import numpy as np
    >>> Cauchy(nu=1.0).calibrate().score(np.array([0.0, 1.0, 100.0])).round(2)
    array([0.  , 0.5 , 0.01])
    """

    factor = 2.385

    def score(self, score: Array) -> Array:
        """``s / (1 + (s / ν)²)``."""
        return score / (1 + (score / self.nu_) ** 2)

    def value(self, score: Array) -> Array:
        """``½ ν² log(1 + (s / ν)²)``."""
        return self.nu_**2 / 2 * namespace(score).log1p((score / self.nu_) ** 2)
