"""A rank-based robust mean, named by the paper (section 6) as an alternative."""

from __future__ import annotations

import numpy as np

from .._array import Array, namespace
from .mom import MedianOfMeans


class HodgesLehmann(MedianOfMeans, name="rank"):
    """Hodges and Lehmann's estimate of the blocks' centre: the median of all pairwise averages.

    It is where the Wilcoxon signed-rank statistic of the K block means vanishes: the rank-based
    mean. More efficient than the median of means (95% against 64% for normal block means), and
    withstands wild values in up to 29% of the blocks.

    Parameters
    ----------
    n_blocks : int
        K; at most the number of samples. K(K+1)/2 averages of the gradient are formed.

    Examples
    --------
    >>> import numpy as np
    >>> HodgesLehmann(n_blocks=4).reduce(np.array([[1.0], [2.0], [3.0], [900.0]]))
    array([2.75])
    """

    def __init__(self, n_blocks: int = 15) -> None:
        super().__init__(n_blocks)

    def reduce(self, means: Array) -> Array:
        """Entrywise median of the averages of every pair of blocks, each with itself included."""
        xp = namespace(means)
        first, second = (xp.asarray(i) for i in np.triu_indices(means.shape[0]))
        pairs = xp.take(means, first, axis=0) + xp.take(means, second, axis=0)
        return super().reduce(pairs / 2)
