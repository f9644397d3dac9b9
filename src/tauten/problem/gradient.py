"""What a pass over the data finds at a point."""

from __future__ import annotations

from dataclasses import dataclass

from .._array import Array
from ..tucker import Tucker


@dataclass(frozen=True)
class Asked:
    """What is asked for beside a gradient: `curvature`, its `correction`, its `tensor`.

    A correction takes a second matrix where anything is bent; the tensor takes a second read of the
    samples, from memory if not from a file, unless their scores are expected: see
    :mod:`tauten.problem.expected`.
    """

    curvature: bool = False
    correction: bool = False
    tensor: bool = False


@dataclass(frozen=True)
class Gradient:
    """A robust gradient at a point.

    Attributes
    ----------
    blocks : Tucker
        ``(G_0, G_1, ..., G_d)``, of the type of the point.
    value : float
        Mean loss of the samples, shrunk if the robustifier shrinks them, but not bent.
    truncated : tuple of float
        For each block, the share of per-sample gradient entries changed after the score was bent.
    curvature : array, optional
        Mean of ``J_iᵀ W_i J_i``: the Gauss-Newton matrix of all blocks, flattened.
    correction : array, optional
        What the slopes of bent scores and gradients add to it, a zero where nothing is bent: see
        :meth:`Kernel.hessian`.
    tensor : array, optional
        Mean of ``X_i ∘ s_i``, for s_i the bent scores, or those that were expected near where all
        samples were swept: the gradient with respect to the full tensor A. With the point it makes
        the rest of the Hessian: see :func:`tauten.manifold.manifold_curvature`.
    pseudo : tuple of array, optional
        Pseudo-observations of Jeffreys' prior, where all samples that count were looked at at once:
        see :func:`tauten.problem.at_once.gradient_at_once`.
    """

    blocks: Tucker
    value: float
    truncated: tuple[float, ...]
    curvature: Array | None = None
    correction: Array | float | None = None
    tensor: Array | None = None
    pseudo: tuple[Array, Array] | None = None
