"""How heavy the tails of entries are: kurtosis and tail index."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._array import Array, matrix_of
from .._median import by_stripes
from .checks import finite


class TailIndex(NamedTuple):
    """Estimate of a tail index α, ``P(|x| > t) ~ t^(-α)``: moments of order below α are finite.

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> noise = np.random.default_rng(0).standard_t(2, size=20_000)
    >>> found = tt.diagnostics.tail_index(noise)
    >>> abs(found.alpha - 2) < 4 * found.stderr
    True
    """

    alpha: float
    stderr: float


def kurtosis_map(X: Array) -> np.ndarray:
    """Kurtosis of every entry over the samples, ``m_4 / m_2²``; 3 for a normal, NaN for a constant.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d)
        At least four samples.

    Examples
    --------
    >>> import numpy as np
    >>> kurtosis_map(np.array([[-1.0, 5.0], [1.0, 5.0], [-1.0, 5.0], [1.0, 5.0]]))
    array([ 1., nan])
    """
    X = finite("X", X)
    if X.ndim == 0 or len(X) < 4:
        raise ValueError(f"X must hold at least 4 samples along axis 0; got shape {X.shape}")
    rows = matrix_of(X, 1)
    found = by_stripes(lambda some: _kurtosis(rows[:, some]), rows.shape[1])
    return found.reshape(X.shape[1:])


def _kurtosis(rows: np.ndarray) -> np.ndarray:
    """Kurtosis of each column."""
    constant = np.ptp(rows, axis=0) == 0
    centred = rows - rows.mean(axis=0)
    centred /= np.where(constant, 1.0, np.abs(centred).max(axis=0))  # a fourth power may overflow
    squares = centred**2
    second, fourth = squares.mean(axis=0), (squares**2).mean(axis=0)  # numpy's **4 takes ages
    return np.where(constant, np.nan, fourth / np.where(constant, 1.0, second) ** 2)


def tail_index(x: Array, *, share: float = 0.05) -> TailIndex:
    """Hill's estimate of the tail index of ``|x|``, from the largest `share` of the values.

    With k such values, ``1/α`` is the mean of their logarithms above that of the next value, and
    the standard error is ``α / √k``. Values that are all equal have no tail: ``α = inf``.

    Parameters
    ----------
    x : array
        Of any shape; taken as one sample.
    share : float
        Between 0 and 1; small enough to see the tail only, large enough to average over it.

    Examples
    --------
    >>> import numpy as np
    >>> heavy = np.random.default_rng(0).standard_t(1.5, size=20_000)
    >>> alpha, stderr = tail_index(heavy)
    >>> abs(alpha - 1.5) < 3 * stderr
    True
    """
    x = np.sort(np.abs(finite("x", x)), axis=None)
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1; got {share}")
    k = int(share * x.size)
    if k < 2:
        raise ValueError(
            f"x must be long enough for a share of {share} to hold 2 values; got {x.size} values. "
            f"Give more, or a larger share"
        )
    if x[-k - 1] == 0:
        raise ValueError(f"x must have fewer zeros, or share be smaller than {share}")
    excess = float(np.mean(np.log(x[-k:]) - np.log(x[-k - 1])))
    alpha = 1 / excess if excess > 0 else math.inf
    return TailIndex(alpha, alpha / math.sqrt(k))
