"""Choices that need fits: ranks, and by cross-validation thresholds and ridges.

Folds and candidates are weights of zero and one on the same data: X is never copied.
"""

from .folds import cross_validate, prediction_error
from .penalties import RidgePath, select_ridge
from .ranks import RankPath, select_rank
from .thresholds import QUANTILES, ThresholdPath, select_threshold

__all__ = [
    "QUANTILES",
    "RankPath",
    "RidgePath",
    "ThresholdPath",
    "cross_validate",
    "prediction_error",
    "select_rank",
    "select_ridge",
    "select_threshold",
]
