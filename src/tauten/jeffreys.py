"""Jeffreys' prior for classes: Firth's bias reduction, and finite fits of separable classes.

Maximum likelihood overestimates the size of A, the more so the fewer samples there are to a free
parameter, and has no finite fit where the classes can be separated. Firth (1993) adds half the
logarithm of the information's determinant to the log-likelihood. That removes the first order of
the bias, and is the same as a few pseudo-observations, of no class in particular, where samples
are undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._array import Array, column, like, namespace
from .designs import Pullback
from .losses import Loss


@dataclass(frozen=True)
class Jeffreys:
    """The prior at a point, for steps that move A: rotations of its factors do not count.

    Parameters
    ----------
    inverse : array (D, D), optional
        Inverse of the information of all blocks, flattened. Without it the model is saturated:
        every sample is fitted as it likes, and gets one pseudo-observation of each of two classes,
        halved.
    level : float
        How much of that, in a saturated model: the free parameters of a sample.
    """

    inverse: Array | None
    level: float = 1.0

    def pseudo_observations(
        self, loss: Loss, eta: Array, pullback: Pullback, share: Array | None
    ) -> tuple[Array, Array]:
        """Score of each sample's pseudo-observations, and how many they are.

        `share` is what is left of a sample's loss, if it was shrunk: its predictor varies by as
        much less.
        """
        if self.inverse is None:
            count = self.level / (2 * loss.undecided(eta))
            return count * loss.score(eta, loss.undecided(eta)), count
        spread = self._spread(loss, eta, pullback)
        if share is not None:
            spread = spread * column(share, spread.ndim)
        return loss.pseudo_observations(eta, spread)

    def _spread(self, loss: Loss, eta: Array, pullback: Pullback) -> Array:
        """Variance of each predictor; with one-hot classes, of its distance to their mean."""
        xp = namespace(eta)
        mean = pullback.flat(loss.mean(eta)) if loss.one_hot else 0.0
        spreads = []
        for index in np.ndindex(*eta.shape[1:]):
            rows = pullback.flat(unit(eta[:1, ...], index)) - mean
            spreads.append(xp.sum((rows @ self.inverse) * rows, axis=1))
        return xp.reshape(xp.stack(spreads, axis=1), eta.shape)


def unit(row: Array, index: tuple[int, ...]) -> Array:
    """A batch of one score: one at `index`, zero elsewhere."""
    score = np.zeros(tuple(row.shape))
    score[(0, *index)] = 1.0
    return like(score, row)
