"""Tucker tensors ``A = S x_1 U_1 ... x_d U_d`` and the algebra of the paper's appendix A."""

from .affine import Affine
from .decompositions import hooi, hosvd
from .point import Tucker, degrees_of_freedom, polar
from .products import (
    coordinates,
    fold,
    left_singular_vectors,
    mode_dot,
    multi_mode_dot,
    sweep,
    unfold,
)

__all__ = [
    "Affine",
    "Tucker",
    "coordinates",
    "degrees_of_freedom",
    "fold",
    "hooi",
    "hosvd",
    "left_singular_vectors",
    "mode_dot",
    "multi_mode_dot",
    "polar",
    "sweep",
    "unfold",
]
