"""What the steps share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .._checks import check_tensor
from .._labels import Labels


class TensorTransformer(TransformerMixin, BaseEstimator):
    """What the steps share: samples checked, their shape and the names of their modes kept."""

    def _learn(self, X: Any) -> np.ndarray:
        tensors = check_tensor("X", X, missing=True, min_ndim=2)
        validate_data(self, X, skip_check_array=True)
        self.sample_shape_ = tensors.shape[1:]
        self.labels_ = Labels.of(X)
        return tensors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
