"""Low-rank parts of full tensors."""

from __future__ import annotations

from collections.abc import Sequence

from .._array import Array, namespace
from .point import Tucker
from .products import left_singular_vectors, multi_mode_dot


def hosvd(tensor: Array, rank: Sequence[int]) -> Tucker:
    """Truncated higher-order singular value decomposition.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 5))
    >>> bool(np.allclose(hosvd(x, (3, 4, 5)).full(), x))
    True
    """
    factors = [left_singular_vectors(tensor, k, r) for k, r in enumerate(rank)]
    return Tucker(multi_mode_dot(tensor, [u.T for u in factors]), tuple(factors))


def hooi(
    tensor: Array,
    rank: Sequence[int],
    *,
    n_iter: int = 50,
    tol: float = 1e-10,
    start: Tucker | None = None,
) -> Tucker:
    """Higher-order orthogonal iteration (De Lathauwer et al., 2000), by default from the HOSVD.

    Alternates over the modes until the norm of the core stops growing, relatively by `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.outer([1.0, 2.0], [1.0, 1.0, 1.0])
    >>> bool(np.allclose(hooi(a, (1, 1)).full(), a))
    True
    """
    xp = namespace(tensor)
    point = hosvd(tensor, rank) if start is None else start
    norm = float(xp.linalg.vector_norm(point.core))
    for _ in range(n_iter):
        factors = list(point.factors)
        for k, r in enumerate(rank):
            others = [None if j == k else u.T for j, u in enumerate(factors)]
            factors[k] = left_singular_vectors(multi_mode_dot(tensor, others), k, r)
        point = Tucker(multi_mode_dot(tensor, [u.T for u in factors]), tuple(factors))
        previous, norm = norm, float(xp.linalg.vector_norm(point.core))
        if norm - previous <= tol * norm:
            break
    return point
