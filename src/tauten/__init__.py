"""tauten: low-rank tensor models from data with heavy tails and outliers."""

from . import (
    datasets,
    diagnostics,
    exceptions,
    inference,
    init,
    io,
    losses,
    metrics,
    plot,
    report,
    robust,
    solver,
    testing,
)
from ._versions import VERSION, show_versions
from .algorithm import robust_gradient_descent
from .estimators import TensorClassifier, TensorPCA, TensorRegressor
from .io import load, save
from .preprocessing import Tensorize, TensorScaler
from .tucker import Tucker

__version__ = VERSION

__all__ = [
    "TensorClassifier",
    "TensorPCA",
    "TensorRegressor",
    "TensorScaler",
    "Tensorize",
    "Tucker",
    "datasets",
    "diagnostics",
    "exceptions",
    "inference",
    "init",
    "io",
    "load",
    "losses",
    "metrics",
    "plot",
    "report",
    "robust",
    "robust_gradient_descent",
    "save",
    "show_versions",
    "solver",
    "testing",
]
