"""Starting points. Each is a function of a problem and a rank that returns a point.

==============  ===========================================================================
name            what it does
==============  ===========================================================================
``spectral``    low-rank part of the robust gradient at zero (truncated cross-moment)
``iht``         that, then robust hard thresholding until it settles: the default
``random``      random orthonormal factors and core, with the norm of the default start
``decompose``   PCA: low-rank part of the winsorised data: the default there
==============  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._checks import check_theta
from ..designs import Covariate, Direct
from ..problem import Problem
from ..tucker import Tucker
from .base import Start, tensor_shape, with_linear
from .decomposition import decompose, pseudo_huber
from .multistart import random
from .nuclear_norm import nuclear, nuclear_literal
from .thresholding import iht, spectral, tangent

__all__ = [
    "STARTS",
    "Start",
    "decompose",
    "iht",
    "nuclear",
    "nuclear_literal",
    "pseudo_huber",
    "random",
    "spectral",
    "start",
    "tangent",
    "tensor_shape",
    "with_linear",
]


def start(init: Any, problem: Problem, rank: Sequence[int], rng: np.random.Generator) -> Tucker:
    """Return a starting point by name, or check and complete the given one.

    Parameters
    ----------
    init : str or Tucker
        A name above, ``"auto"``, or a point.
    problem : Problem
    rank : sequence of int
    rng : Generator
        Used by ``"random"`` only.
    """
    if isinstance(init, Tucker):
        check_theta(init, tensor_shape(problem), "init")
        return with_linear(problem, init)
    starts = STARTS[type(problem.design)]
    if isinstance(init, str) and init == "auto":
        init = problem.design.init
    if not isinstance(init, str) or init not in starts:
        raise ValueError(
            f"init must be a Tucker point, 'auto' or one of {', '.join(sorted(starts))} for this "
            f"model; got {init!r}"
        )
    return starts[init](problem, rank, rng)


STARTS: dict[type, dict[str, Start]] = {
    Covariate: {
        "iht": iht,
        "spectral": spectral,
        "nuclear": nuclear,
        "nuclear-literal": nuclear_literal,
        "random": random,
    },
    Direct: {"decompose": decompose, "pseudo-huber": pseudo_huber, "random": random},
}
