"""tauten: low-rank tensor models from data with heavy tails and outliers."""

from importlib.metadata import PackageNotFoundError, version

from . import datasets, diagnostics, inference, init, losses, metrics, robust, solver, testing
from .algorithm import robust_gradient_descent
from .estimators import TensorClassifier, TensorPCA, TensorRegressor
from .preprocessing import Tensorize, TensorScaler
from .tucker import Tucker

try:
    __version__ = version("tauten")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "unknown"

__all__ = [
    "TensorClassifier",
    "TensorPCA",
    "TensorRegressor",
    "TensorScaler",
    "Tensorize",
    "Tucker",
    "datasets",
    "diagnostics",
    "inference",
    "init",
    "losses",
    "metrics",
    "robust",
    "robust_gradient_descent",
    "solver",
    "testing",
]
