"""Jeffreys' prior for classes: Firth's bias reduction, and finite fits of separable classes.

Maximum likelihood overestimates the size of A, the more so the fewer samples there are to a free
parameter, and has no finite fit where the classes can be separated. Firth (1993) adds half the
logarithm of the information's determinant to the log-likelihood. That removes the first order of
the bias, and is the same as a few pseudo-observations, of no class in particular, where samples
are undecided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ._array import Array, column, inverse_root, like, namespace, ratio
from .designs import Pullback
from .losses import Loss


@dataclass(frozen=True)
class Jeffreys:
    """The prior at a point, for steps that move A: rotations of its factors do not count.

    Parameters
    ----------
    root : array (K, D), optional
        R, for ``RᵀR`` the inverse of the information of all blocks, flattened. Without it the model
        is saturated: every sample is fitted as it likes, and gets one pseudo-observation of each of
        two classes, halved.
    level : float
        How much of that, in a saturated model: the free parameters of a sample.
    """

    root: Array | None
    level: float = 1.0

    def pseudo_observations(
        self, loss: Loss, eta: Array, pullback: Pullback, share: Array | None
    ) -> tuple[Array, Array]:
        """Score of each sample's pseudo-observations, and how many they are.

        `share` is what is left of a sample's loss, if it was shrunk: its predictor varies by as
        much less.
        """
        if self.root is None:
            count = self.level / (2 * loss.undecided(eta))
            return count * loss.score(eta, loss.undecided(eta)), count
        xp, back = namespace(eta), self.root.T
        each = derivatives(loss, eta, pullback)
        spreads = xp.stack([xp.sum((rows @ back) ** 2, axis=1) for rows in each], axis=1)
        return pseudo_observations(loss, eta, xp.reshape(spreads, eta.shape), share)


def pseudo_observations(
    loss: Loss, eta: Array, spread: Array, share: Array | None
) -> tuple[Array, Array]:
    """The same from the variances of the predictors: see :meth:`Jeffreys.pseudo_observations`.

    With one-hot classes, those of their distances to their mean.
    """
    if share is not None:
        spread = spread * column(share, spread.ndim)
    return loss.pseudo_observations(eta, spread)


def derivatives(loss: Loss, eta: Array, pullback: Pullback) -> Iterator[Array]:
    """Derivatives (n, D) of one predictor after the other.

    With one-hot classes they are of its distance to their mean: the information of a sample is
    then ``Σ_c P(c) j_c j_cᵀ``.
    """
    if eta.ndim == 1:
        yield pullback.rows
        return
    mean = pullback.flat(loss.mean(eta)) if loss.one_hot else 0.0
    for index in np.ndindex(*eta.shape[1:]):
        yield pullback.flat(unit(eta[:1, ...], index)) - mean


def penalised_spread(white: Array, loose: Array, weight: Array, level: float) -> Array:
    """Variances ``j_iᵀ (Σ_l w_l j_l j_lᵀ + λ I_0)⁻¹ j_i`` from matrices of the size of samples.

    I_0 is the identity for some coefficients, of which there may be many, and zero for the others.
    With ``K = W^½ B Bᵀ W^½ / λ`` of the first, the hat values ``w_i j_iᵀ (...)⁻¹ j_i`` are what
    ``(I + K)⁻¹``, less its part along the others, lacks of one.

    Parameters
    ----------
    white, loose : arrays (m, D_1), (m, D_2)
        Derivatives in the first and in the others.
    weight : array (m,)
        Where it is zero, so is what is returned.
    level : float
        λ.
    """
    xp = namespace(white)
    root = column(xp.sqrt(weight), 2)
    rows, others = white * (root / math.sqrt(level)), loose * root
    inverse = inverse_root(rows @ rows.T + xp.eye(rows.shape[0], dtype=rows.dtype))
    left = xp.sum(inverse**2, axis=0)
    if others.shape[1]:
        part = inverse @ others
        system = part.T @ part + _least(xp.sum(others**2, axis=0))
        left = left - xp.sum((inverse_root(system) @ part.T @ inverse) ** 2, axis=0)
    return ratio(1 - left, weight, otherwise=0.0)


def _least(diagonal: Array) -> Array:
    """A ridge that keeps what samples do not tell, too small to change what they do."""
    xp = namespace(diagonal)
    tiny = float(xp.finfo(diagonal.dtype).smallest_normal)
    eye = xp.eye(diagonal.shape[0], dtype=diagonal.dtype)
    return eye * (1e-7 * diagonal + 1e-10 * xp.mean(diagonal) + tiny)


def unit(row: Array, index: tuple[int, ...]) -> Array:
    """A batch of one score: one at `index`, zero elsewhere."""
    score = np.zeros(tuple(row.shape))
    score[(0, *index)] = 1.0
    return like(score, row)
