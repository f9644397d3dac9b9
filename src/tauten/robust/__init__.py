"""Robust means of per-sample gradients, one per file. A new one needs its file and an import here.

========================  ===============  =========================
class                     name             bounds the influence of
========================  ===============  =========================
:class:`Robustifier`      ``none``         nothing: the plain mean
:class:`Truncate`         ``truncate``     responses and covariates
:class:`Huber`            ``huber``        responses
:class:`Cauchy`           ``cauchy``       responses
:class:`PseudoHuber`      ``pseudohuber``  responses
:class:`Shrink`           ``shrink``       covariates
:class:`NormClip`         ``normclip``     responses and covariates
:class:`MedianOfMeans`    ``mom``          responses and covariates
:class:`HodgesLehmann`    ``rank``         responses and covariates
:class:`Catoni`           ``catoni``       responses and covariates
:class:`Adaptive`         ``auto``         responses and covariates
========================  ===============  =========================
"""

from .adaptive import Adaptive
from .base import Pilot, Robustifier
from .catoni import Catoni
from .cauchy import Cauchy
from .huber import Huber
from .mom import MedianOfMeans
from .normclip import NormClip
from .pseudohuber import PseudoHuber
from .rank import HodgesLehmann
from .shrink import Shrink
from .truncate import Truncate

__all__ = [
    "Adaptive",
    "Catoni",
    "Cauchy",
    "HodgesLehmann",
    "Huber",
    "MedianOfMeans",
    "NormClip",
    "Pilot",
    "PseudoHuber",
    "Robustifier",
    "Shrink",
    "Truncate",
]
