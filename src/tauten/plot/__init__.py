"""Pictures of a fit and of its data; they need matplotlib (``pip install "tauten[plot]"``).

Every function draws on the Axes given as `ax`, or on a new one, and returns it. Colours of text and
lines follow matplotlib's style, light or dark.

====================  ==============================================================================
of the coefficients   :func:`coefficients`, :func:`loadings`
of the fit            :func:`convergence`, :func:`truncation`, :func:`rank_path`,
                      :func:`threshold_path`, :func:`influence`
of the tails          :func:`qq`, :func:`survival`, :func:`hill`, :func:`kurtosis`,
                      :func:`local_moments`
====================  ==============================================================================
"""

from .coefficients import coefficients, loadings
from .fit import convergence, influence, rank_path, threshold_path, truncation
from .moments import kurtosis, local_moments
from .tails import hill, qq, survival

__all__ = [
    "coefficients",
    "convergence",
    "hill",
    "influence",
    "kurtosis",
    "loadings",
    "local_moments",
    "qq",
    "rank_path",
    "survival",
    "threshold_path",
    "truncation",
]
