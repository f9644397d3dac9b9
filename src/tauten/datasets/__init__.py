"""Simulated data: the paper's Models I to IV, and any other shape, rank, loss and tail.

Distributions are short specs:

===================  ===========================================================================
``"normal"``         standard normal
``"t:2.1"``          Student's t with 2.1 degrees of freedom
``"pareto:2.1"``     Pareto with tail index 2.1 (more than 1), minus its mean: skewed, mean zero
``"kronecker:0.8"``  Gaussian tensor with covariance Σ_θ, θ = 0.8 radians, along every mode: the
                     covariates of Experiment 3; a scalar has no mode and is standard normal
===================  ===========================================================================
"""

from .distributions import directional_covariance, sample
from .models import Simulated, make_model, simulate
from .truths import truth

__all__ = [
    "Simulated",
    "directional_covariance",
    "make_model",
    "sample",
    "simulate",
    "truth",
]
