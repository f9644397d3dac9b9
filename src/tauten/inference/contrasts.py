"""Several classes: only differences between them are identified."""

from __future__ import annotations

import numpy as np

from ..tucker import Tucker


def contrasts(theta: Tucker) -> Tucker:
    """The point with its coefficients centred over the classes, the last mode."""
    return theta.with_blocks(_centre_classes(list(theta.blocks), theta.order))


def contrast_columns(theta: Tucker, columns: np.ndarray) -> np.ndarray:
    """What :func:`contrasts` makes of columns of flattened blocks."""
    ends = np.cumsum([b.size for b in theta.blocks])[:-1]
    parts = zip(theta.blocks, np.split(columns, ends), strict=True)
    blocks = [part.reshape(*b.shape, columns.shape[1]) for b, part in parts]
    centred = _centre_classes(blocks, theta.order)
    return np.concatenate([b.reshape(-1, columns.shape[1]) for b in centred])


def _centre_classes(blocks: list[np.ndarray], order: int) -> list[np.ndarray]:
    """Centre U_d along its rows, and the vector coefficients along their second axis."""
    last = blocks[order] - blocks[order].mean(axis=0)
    linear = [b - b.mean(axis=1, keepdims=True) for b in blocks[order + 1 :]]
    return [*blocks[:order], last, *linear]
