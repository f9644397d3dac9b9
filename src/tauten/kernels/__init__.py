"""The sweep of a chunk of samples: all projections of X by the factors, most of the work of a fit.

:mod:`.plain` does it for every array library, :mod:`.compiled` for numpy arrays in one read of X.
Linear algebra only: losses and robustifiers act on what comes out, which is much smaller. Norms of
samples are here as well, as all of X is read for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._array import Array
from . import compiled, plain

__all__ = ["derivatives", "derivatives_and_sum", "in_use", "norms", "project"]


def project(
    X: Array,
    factors: Sequence[Array],
    *,
    center: Array | None = None,
    scale: Array | None = None,
    partials: bool = True,
) -> list[Array]:
    """Projections of each sample by all the factors, and by all but one of them.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d)
        A batch; axis 0 holds the samples.
    factors : sequence of arrays (p_k, r_k)
    center : array (p_1, ..., p_d), optional
        Subtracted from every sample.
    scale : array (n,), optional
        Factor of every sample.
    partials : bool
        Whether the projections by all but one are wanted.

    Returns
    -------
    list of arrays
        First ``X_i x_j U_jᵀ``, of shape (n, r_1, ..., r_d); then, for each k, ``X_i x_{j≠k} U_jᵀ``,
        where mode k keeps its dimension p_k.

    Examples
    --------
    >>> import numpy as np
    >>> X, u = np.ones((5, 3, 2)), [np.ones((3, 1)), np.ones((2, 1))]
    >>> [part.shape for part in project(X, u)]
    [(5, 1, 1), (5, 3, 1), (5, 1, 2)]
    """
    columns = math.prod(u.shape[1] for u in factors[1:]) if partials else 1
    path = compiled if compiled.serves(X, columns) else plain
    return path.project(X, factors, center=center, scale=scale, partials=partials)


def derivatives(
    X: Array,
    factors: Sequence[Array],
    core: Array,
    *,
    center: Array | None = None,
    scale: Array | None = None,
    beside: Array | None = None,
) -> Array:
    """Derivatives of ``<X_i, S x_1 U_1 ... x_d U_d>`` with respect to core and factors.

    Parameters
    ----------
    X, factors, center, scale : see :func:`project`
    core : array (r_1, ..., r_d)
    beside : array (n, c), optional
        Columns to put behind the others.

    Returns
    -------
    array (n, Π r_k + Σ p_k r_k + c)
        All blocks, each flattened, side by side.

    Examples
    --------
    >>> import numpy as np
    >>> X, u = np.ones((5, 3, 2)), [np.ones((3, 1)), np.ones((2, 1))]
    >>> derivatives(X, u, np.ones((1, 1)))[0]
    array([6., 2., 2., 2., 3., 3.])
    """
    path = compiled if compiled.serves(X) else plain
    return path.derivatives(X, factors, core, center=center, scale=scale, beside=beside)


def derivatives_and_sum(
    X: Array,
    factors: Sequence[Array],
    core: Array,
    score: Array,
    *,
    center: Array | None = None,
    scale: Array | None = None,
    beside: Array | None = None,
) -> tuple[Array, Array]:
    """The same and ``Σ_i s_i X_i``, neither centred nor scaled, for scores that are known before.

    Parameters
    ----------
    X, factors, core, center, scale, beside : see :func:`derivatives`
    score : array (n,)

    Returns
    -------
    rows : array (n, Π r_k + Σ p_k r_k + c)
    total : array (p_1, ..., p_d)

    Examples
    --------
    >>> import numpy as np
    >>> X, u = np.ones((5, 3, 2)), [np.ones((3, 1)), np.ones((2, 1))]
    >>> derivatives_and_sum(X, u, np.ones((1, 1)), np.arange(5.0))[1][0]
    array([10., 10.])
    """
    path = compiled if compiled.serves(X) else plain
    options = {"center": center, "scale": scale, "beside": beside}
    return path.derivatives_and_sum(X, factors, core, score, **options)


def norms(X: Array, center: Array | None = None) -> Array:
    """Norms ``‖X_i - center‖_F`` of the samples of a batch.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d)
    center : array (p_1, ..., p_d), optional

    Examples
    --------
    >>> import numpy as np
    >>> norms(np.array([[3.0, 5.0], [0.0, 1.0]]), np.array([0.0, 1.0]))
    array([5., 0.])
    """
    path = compiled if compiled.serves_norms(X) else plain
    return path.norms(X, center)


def in_use() -> str:
    """Which sweep numpy arrays get: "compiled" with its instruction set, or "plain".

    Examples
    --------
    >>> in_use().split(",")[0] in ("compiled", "plain")
    True
    """
    return compiled.name()
