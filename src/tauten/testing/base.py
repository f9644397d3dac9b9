"""What the checks of losses and of robustifiers share."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from sklearn.base import clone

from ..registry import Registered

EXACT, CLOSE, DIFFERENCES = 1e-12, 1e-9, 1e-7  # rounding; sums in another order; differences


def require(holds: Any, component: Registered, sentence: str) -> None:
    """Raise, with a sentence on what does not hold, unless all of it does."""
    if not np.all(holds):
        raise AssertionError(f"{type(component).__name__}: {sentence}")


def check_copies(component: Registered) -> None:
    """Clones and pickles have the same parameters."""
    for copy in (clone(component), pickle.loads(pickle.dumps(component))):
        same = equal(copy.get_params(), component.get_params())
        require(same, component, "a clone or a pickle of it has other parameters")


def equal(one: Any, other: Any) -> bool:
    """Whether two values, perhaps of arrays, are equal; nan equals nan."""
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True
