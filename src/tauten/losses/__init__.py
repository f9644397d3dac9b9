"""Losses, one per file. A new one needs its file and one import line here.

========================  ================  ==========================================
class                     name              responses
========================  ================  ==========================================
:class:`Squared`          ``squared``       real numbers
:class:`Huber`            ``huber``         real numbers
:class:`Logistic`         ``logistic``      0 or 1 (or a probability)
:class:`Multinomial`      ``multinomial``   class shares along the last response mode
:class:`Poisson`          ``poisson``       counts, or any numbers ≥ 0
:class:`Gamma`            ``gamma``         numbers > 0
========================  ================  ==========================================
"""

from .base import Loss
from .gamma import Gamma
from .huber import Huber
from .logistic import Logistic
from .multinomial import Multinomial
from .poisson import Poisson
from .squared import Squared

__all__ = ["Gamma", "Huber", "Logistic", "Loss", "Multinomial", "Poisson", "Squared"]
