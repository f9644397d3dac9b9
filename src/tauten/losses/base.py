"""What a loss is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._array import Array, namespace, ratio
from ..registry import Registered


class Loss(Registered):
    """A loss ``ℓ(η, y)`` of a linear predictor and a response; entrywise, it knows no tensors.

    A subclass gives the methods below and names itself, ``class Squared(Loss, name="squared")``.
    All of them take and return arrays of one shape.

    Attributes
    ----------
    domain : str
        The responses it takes, in words for error messages.
    residual : bool
        Whether ℓ depends on ``η - y`` alone, so that a sample and its response scale together.
    quadratic : bool
        Whether ℓ is half the square of its score, the residual, so that it need not be worked out
        apart.
    classes : bool
        Whether responses are class labels.
    one_hot : bool
        Whether the last response mode holds the classes.

    Examples
    --------
    By name, with parameters; ``loss=`` of an estimator takes the same strings:

    >>> import numpy as np
    >>> import tauten as tt
    >>> loss = tt.losses.Loss.get("huber:nu=2")
    >>> loss.score(np.array([1.0, 9.0]), np.zeros(2))
    array([1., 2.])
    """

    domain: ClassVar[str] = "real numbers"
    residual: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    classes: ClassVar[bool] = False
    one_hot: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Whatever changes what a loss is has to say anew whether it is quadratic."""
        super().__init_subclass__(**kwargs)

        def place(name: str) -> int:
            return next(i for i, base in enumerate(cls.__mro__) if name in vars(base))

        parts = ("value", "score", "curvature", "weight", "residual_weight", "residual")
        if min(map(place, parts)) < place("quadratic"):
            cls.quadratic = False

    def value(self, eta: Array, y: Array) -> Array:
        """``ℓ(η, y)``."""
        raise NotImplementedError

    def score(self, eta: Array, y: Array) -> Array:
        """``∂ℓ/∂η``."""
        raise NotImplementedError

    def curvature(self, eta: Array, y: Array) -> Array:
        """``∂²ℓ/∂η²``."""
        raise NotImplementedError

    def weight(self, eta: Array, y: Array) -> Array:
        """Curvature to take a step with: that of a quadratic above ℓ, where ℓ is of the residual.

        The curvature itself vanishes where a robust loss turns linear, and a step divided by it
        runs away.
        """
        if not self.residual:
            return self.curvature(eta, y)
        return self.residual_weight(self.score(eta, y), eta, y)

    def residual_weight(self, score: Array, eta: Array, y: Array) -> Array:
        """``score / (η - y)``, the weight of iteratively reweighted least squares.

        The score may have been bent.
        """
        return ratio(score, eta - y, otherwise=self.curvature(eta, y))

    def undecided(self, eta: Array) -> Array:
        """Response that favours no class, of the shape of η; for classes."""
        xp = namespace(eta)
        return xp.ones_like(eta) / (eta.shape[-1] if self.one_hot else 2)

    def pseudo_observations(self, eta: Array, spread: Array) -> tuple[Array, Array]:
        """Score of the pseudo-observations of Jeffreys' prior, and their number; for classes.

        `spread` is the variance of each predictor or, of one-hot classes, that of its distance to
        their mean ``Σ_c P(c) η_c``.
        """
        raise NotImplementedError

    def mean(self, eta: Array) -> Array:
        """Expected response at the linear predictor η."""
        raise NotImplementedError

    def link(self, mean: Array) -> Array:
        """Inverse of :meth:`mean`, for means inside the domain."""
        raise NotImplementedError

    def draw(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw responses from the model that the loss is the negative log-likelihood of."""
        raise NotImplementedError

    def contains(self, y: Array) -> Array:
        """Say, entry by entry, whether a finite response lies in the domain."""
        return namespace(y).isfinite(y)

    def check(self, y: Array, *, missing: bool = False) -> None:
        """Raise a ValueError if a response lies outside the domain; nan may stand for missing."""
        xp = namespace(y)
        if self.one_hot and y.ndim < 2:
            raise ValueError(
                f"y must have a mode for the classes, (n, ..., classes), for the {self.name!r} "
                f"loss; got shape {tuple(y.shape)}"
            )
        bad = ~self.contains(y)
        if missing:
            bad = bad & ~xp.isnan(y)
        if xp.any(bad):
            example = float(y[bad][0])
            raise ValueError(
                f"y must hold {self.domain} for the {self.name!r} loss; got {example:g} "
                f"({int(xp.count_nonzero(bad))} such entries). Drop or correct them, or choose "
                f"another loss"
            )
