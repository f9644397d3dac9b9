"""The part of a Hessian that comes from the bend of the set of low-rank tensors."""

from __future__ import annotations

from itertools import combinations

from ._array import Array, namespace
from .tucker import Tucker, multi_mode_dot


def manifold_curvature(theta: Tucker, tensor: Array) -> Array:
    """Second derivative of ``<G, S x_1 U_1 ... x_d U_d>`` with respect to the flattened blocks.

    The loss is a function of A and A is linear in each block alone, so that its Hessian is the
    Gauss-Newton matrix plus this, with G the gradient with respect to A. It is what Gauss-Newton
    leaves out: nothing where residuals vanish, but where noise is as large as the smallest
    components of A, enough to make its steps creep or turn in circles.

    Parameters
    ----------
    theta : Tucker
        The point.
    tensor : array (p_1, ..., p_d)
        G.

    Examples
    --------
    >>> import numpy as np
    >>> theta = Tucker(np.full((1, 1), 3.0), [np.ones((1, 1)), np.ones((1, 1))])
    >>> manifold_curvature(theta, np.full((1, 1), 2.0))
    array([[0., 2., 2.],
           [2., 0., 6.],
           [2., 6., 0.]])
    """
    xp = namespace(theta.core)
    sizes = theta.sizes
    pairs = list(combinations(range(len(sizes)), 2))
    mixed = {pair: _mixed(theta, tensor, *pair) for pair in pairs if pair[1] <= theta.order}

    def block(j: int, k: int) -> Array:
        if (j, k) in mixed:
            return mixed[j, k]
        if (k, j) in mixed:
            return mixed[k, j].T
        return xp.zeros((sizes[j], sizes[k]), dtype=theta.core.dtype)

    indices = range(len(sizes))
    return xp.concat([xp.concat([block(j, k) for k in indices], axis=1) for j in indices], axis=0)


def _mixed(theta: Tucker, tensor: Array, j: int, k: int) -> Array:
    """Its part of blocks j < k (0 the core, 1 to d the factors), as a matrix."""
    xp = namespace(theta.core)
    down = [None if m + 1 in (j, k) else u.T for m, u in enumerate(theta.factors)]
    part = multi_mode_dot(tensor, down)
    p, r = theta.factors[k - 1].shape
    if j == 0:  # dS meets dU_k in the index that they share
        part = xp.expand_dims(xp.moveaxis(part, k - 1, -1), axis=k - 1)
        eye = xp.reshape(xp.eye(r, dtype=part.dtype), (*_axes(theta.order, k - 1, r), 1, r))
        return xp.reshape(part[..., None] * eye, (-1, p * r))
    q, s = theta.factors[j - 1].shape
    wide = xp.reshape(xp.moveaxis(part, (j - 1, k - 1), (0, 1)), (q * p, -1))
    core = xp.reshape(xp.moveaxis(theta.core, (j - 1, k - 1), (0, 1)), (s * r, -1))
    entries = xp.reshape(wide @ core.T, (q, p, s, r))
    return xp.reshape(xp.permute_dims(entries, (0, 2, 1, 3)), (q * s, p * r))


def _axes(order: int, k: int, size: int) -> tuple[int, ...]:
    """A shape of ones but for one axis."""
    return tuple(size if m == k else 1 for m in range(order))
