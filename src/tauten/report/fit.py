"""What a report is about: a model with its data, and what is computed from both."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._checks import check_number
from .._lazy import lazy
from ..diagnostics import TailIndex, kurtosis_map, tail_index
from ..inference import Intervals
from ..plot._axes import mode_names as check_mode_names
from ..plot.fit import check_sample_names
from ..problem import Problem
from ..robust import Robustifier
from ..tucker import Tucker
from .heldout import HeldOut, compare


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and its data. What costs something is computed when first asked for."""

    model: Any
    X: Any
    y: Any
    data: dict[str, Any]
    problem: Problem
    theta: Tucker
    sample_names: list[str]
    mode_names: list[str]
    folds: int
    most: int

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        data: dict[str, Any],
        *,
        sample_names: Sequence[object] | None,
        mode_names: Sequence[str] | None,
        folds: int,
        most: int,
    ) -> Fit:
        """Check everything before any work is done."""
        check_is_fitted(model)
        check_number("most", most, integer=True)
        problem, theta = model._at_fit(X, y, **data)
        return cls(
            model,
            X,
            y,
            data,
            problem,
            theta,
            check_sample_names(sample_names, problem.data.n),
            check_mode_names(model, theta.order, mode_names),
            folds if problem.data.n == 1 else min(folds, problem.data.n),
            most,
        )

    @property
    def direct(self) -> bool:
        """Whether A is seen directly, as in PCA."""
        return self.problem.data.X is None

    @lazy
    def residuals(self) -> np.ndarray:
        """``-∂ℓ/∂η`` of every response entry: response minus prediction, for the squared loss."""
        return -replace(self.problem, robust=Robustifier()).scores(self.theta)

    @lazy
    def gradient_sizes(self) -> np.ndarray:
        """Norms of the per-sample gradients, nothing bent."""
        blocks = self.problem.pilot(self.theta).gradients()
        n = max(len(b) for b in blocks)
        squares = [np.broadcast_to((b.reshape(len(b), -1) ** 2).sum(axis=1), n) for b in blocks]
        return np.sqrt(np.sum(squares, axis=0))

    @lazy
    def intervals(self) -> Intervals | str:
        """Intervals of the coefficients, or why there are none."""
        return _or_reason(lambda: self.model.confidence_intervals(self.X, *self._y, **self.data))

    @lazy
    def loadings(self) -> list[Intervals] | None:
        """Intervals of the factors, or None."""
        if isinstance(self.intervals, str):
            return None
        found = _or_reason(lambda: self.model.loading_intervals(self.X, self.y, **self.data))
        return None if isinstance(found, str) else found

    @property
    def _y(self) -> tuple[Any, ...]:
        return () if self.direct else (self.y,)

    @lazy
    def held_out(self) -> HeldOut | str | None:
        """The fit beside its rival on data left out, why not, or None where not asked for."""
        if not self.folds:
            return None
        responses = None if self.direct else np.asarray(self.y)
        return _or_reason(
            lambda: compare(self.model, self.problem, responses, self.data, self.folds)
        )

    @lazy
    def kurtosis(self) -> np.ndarray | None:
        """Kurtosis of every covariate, where there are enough samples."""
        X = self.problem.data.X
        return kurtosis_map(X) if X is not None and len(X) >= 4 else None


def hill_index(values: np.ndarray) -> TailIndex | None:
    """Hill's estimate, or None where the values are too few or too many are zero."""
    try:
        return tail_index(values[np.isfinite(values)])
    except ValueError:
        return None


def _or_reason(compute: Any) -> Any:
    """Return what is computed, or in words why it cannot be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page has its own warnings
        try:
            return compute()
        except (ValueError, np.linalg.LinAlgError) as error:
            return str(error)
