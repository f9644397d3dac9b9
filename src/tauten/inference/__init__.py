"""Uncertainty of a fit: standard errors and confidence intervals of every coefficient.

Two ways, for the entries of A, the intercept and the vector coefficients alike
(:func:`intervals`); the factors have theirs by the first (:func:`loadings`):

===============  ================================================================================
``sandwich``     from the slope and the scatter of the (bent) gradients at the fit: one pass
``bootstrap``    refits with random weights, from the fit: no formula, `n_boot` times the work
``percentile``   the same refits; their quantiles instead of their standard deviation
===============  ================================================================================

Thresholds stay as the fit chose them. Points, replicates and covariances are in factor form: the
work per entry of A is that of a few rows of the factors, however large A is.
"""

from .base import Intervals
from .coefficients import intervals
from .factors import loadings

__all__ = ["Intervals", "intervals", "loadings"]
