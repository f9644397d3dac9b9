"""Steps of a pipeline before the model: robust scaling of tensors, and making tensors of tables."""

from .scaler import TensorScaler
from .tensorize import Tensorize

__all__ = ["TensorScaler", "Tensorize"]
