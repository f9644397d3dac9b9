"""scikit-learn façades. They check input, put the pieces together, and own no mathematics."""

from .classifier import TensorClassifier
from .pca import TensorPCA
from .regressor import TensorRegressor

__all__ = ["TensorClassifier", "TensorPCA", "TensorRegressor"]
