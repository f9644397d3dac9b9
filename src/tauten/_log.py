"""What the library does, told to the logger ``tauten``: nothing is written unless asked for.

A record has its `event`, one of those below, and its `facts`, a dictionary; its message is both in
words. Iterations are told at the level DEBUG, everything else at INFO.

==============  ===================================================================================
event           facts
==============  ===================================================================================
``start``       `init`, the starting point that was chosen; `rank`
``thresholds``  `robust`, and each of its thresholds as calibrated (the median one, if many)
``iteration``   `t`, `value`, `change`, `truncated`: see :class:`tauten.solver.Iteration`
``stop``        `solver`, `n_iter`, `converged`, `reason`, `passes`: of every descent, those of
                cross-validation and of restarts included
``fit``         `estimator`, `n`, `rank`, `sweep` (which kernel), `passes` (over the data, in all)
==============  ===================================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

LOGGER = logging.getLogger("tauten")
LOGGER.addHandler(logging.NullHandler())


def tell(event: str, facts: Callable[[], dict[str, Any]], level: int = logging.INFO) -> None:
    """Log an event; its facts are only looked for if someone listens.

    Examples
    --------
    >>> tell("start", lambda: {"init": "iht", "rank": (2, 2)})
    """
    if LOGGER.isEnabledFor(level):
        found = facts()
        words = " ".join(f"{name}={_short(value)}" for name, value in found.items())
        extra = {"event": event, "facts": found}
        LOGGER.log(level, "%s %s", event, words, extra=extra, stacklevel=2)


def thresholds(robust: Any) -> dict[str, Any]:
    """The thresholds in use of a calibrated robustifier."""
    names = [name for name in vars(robust) if name.endswith("_") and not name.startswith("_")]
    return {"robust": robust.name} | {name: _typical(getattr(robust, name)) for name in names}


def _typical(value: Any) -> Any:
    """A value, or of a list of arrays the median over all entries."""
    if not isinstance(value, list):
        return value
    return float(np.median(np.concatenate([np.ravel(np.asarray(block)) for block in value])))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
