"""What regression and classification share: covariates, an intercept, predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array, is_foreign, is_numpy, like, matrix_of, quiet, take, to_numpy
from .._checks import (
    check_covariates,
    check_norms,
    check_same_length,
    check_samples,
    check_tensor,
    check_weight,
)
from .._median import by_stripes, medians
from ..data import Samples
from ..designs import Covariate
from ..inference import Intervals
from ..inference.jacobians import linear_at_origin
from ..losses import Loss
from ..problem import PILOT_SIZE, Problem
from ..robust import Robustifier
from ..tucker import Affine, Tucker
from .base import TensorModel, check_fitted_data

# Samples that the centre of X is taken from, and numbers of them, which medians take a while of:
# near is enough.
CENTER_SIZE, CENTER_NUMBERS = 255, 2**21


class TensorGLM(TensorModel):
    """What regression and classification share: covariates, an intercept, predictions."""

    def __init__(
        self,
        rank: Any = "auto",
        *,
        loss: Any = "squared",
        robust: Any = "auto",
        init: Any = "auto",
        solver: Any = "auto",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        memory: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.robust = robust
        self.init = init
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose
        self.memory = memory
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs

    def _fit(self, X: Any, y: np.ndarray, loss: Loss, covariates: Any, weight: Any) -> Self:
        late = is_numpy(y)  # in memory, as X is then: its norms tell, which starts need anyway
        samples = check_tensor(
            "X", X, min_ndim=2, anywhere=True, finite=not late, n_jobs=self.n_jobs
        )
        problem = self._problem(samples, y, loss, covariates, weight)
        if late and is_numpy(samples):
            with problem.data.at_work(), quiet():
                check_norms("X", samples, problem.design.norms_of_all(problem.data))
        result = self._solve(problem, stacklevel=4)
        self.sample_shape_ = tuple(samples.shape[1:])
        with problem.data.at_work():  # nothing is left spinning, in the way of what comes next
            self._set_linear(result.theta, problem.design.center, y.shape[1:])
        return self

    def _problem(self, X: Array, y: Array, loss: Loss, covariates: Any, weight: Any) -> Problem:
        """Check what comes with X and put it all together with the loss and the robustifier."""
        check_same_length(X, y)
        Z = None if covariates is None else check_covariates(covariates, X, self.n_jobs)
        weight = check_weight(weight, X.shape[0])
        data = self._gather(X, y, Z, weight, intercept=self.fit_intercept)
        data.each("y", loss.check)
        with quiet():  # X may not have been looked at for infinities
            center = _center(data) if self.fit_intercept else None
        return Problem(data, loss, Covariate(center), Robustifier.get(self.robust))

    def confidence_intervals(
        self,
        X: Any,
        y: Any,
        *,
        covariates: Any = None,
        sample_weight: Any = None,
        level: float = 0.95,
        method: str = "sandwich",
        n_boot: int = 200,
        random_state: Any = None,
    ) -> Intervals:
        """Return confidence intervals of every coefficient, from the data of the fit.

        Parameters
        ----------
        X, y, covariates, sample_weight
            As given to :meth:`fit`: the model keeps no data. A weight is a sample's importance,
            not a count of samples.
        level : float
            Confidence of each interval.
        method : {"sandwich", "bootstrap", "percentile"}
            See :mod:`tauten.inference`.
        n_boot : int
            Replicates of the bootstrap.
        random_state : int, Generator or None
            For the bootstrap.

        Returns
        -------
        Intervals
            Of ``coef_``, with those of ``intercept_`` and ``covariate_coef_`` as `intercept` and
            `covariate_coef`. With several classes, of coefficients centred over the classes.

        Examples
        --------
        >>> import tauten as tt
        >>> data = tt.datasets.make_model("I", 500, noise="t:1.2", rng=0)
        >>> model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
        >>> found = model.confidence_intervals(data.X, data.y)
        >>> truth = data.truth.full()
        >>> bool(((found.lower < truth) & (truth < found.upper)).mean() > 0.8)
        True
        """
        check_is_fitted(self)
        fit = self._at_fit(X, y, covariates=covariates, sample_weight=sample_weight)
        options = {"level": level, "method": method, "n_boot": n_boot, "rng": random_state}
        return self._intervals(*fit, **options)

    def _at_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        covariates: Any = None,
        sample_weight: Any = None,
        **data: Any,
    ) -> tuple[Problem, Tucker]:
        X = to_numpy(X) if is_foreign(X) else X  # what is made of a fit is numpy's
        samples = check_samples(self, X, anywhere=True, n_jobs=self.n_jobs)
        self._fitted_covariates(covariates, samples)
        problem = self._problem(samples, self._response(y), self.loss_, covariates, sample_weight)
        check_fitted_data(problem.data, len(self.influence_), self.intercept_.shape)
        return replace(problem, robust=self.robust_), self._point(problem)

    def _response(self, y: Any) -> np.ndarray:
        """Responses as the loss takes them, of a model that is fitted."""
        raise NotImplementedError

    def _point(self, problem: Problem) -> Tucker:
        """The fit as a point of a problem, with the intercept at the problem's centre."""
        theta, center = self._affine().map(to_numpy), problem.design.center
        if problem.data.Z is None:
            return theta.tucker
        if center is None:
            return theta
        shift = Covariate().predict(theta.tucker, center[None, ...])
        rows = [to_numpy(self.intercept_)[None, ...] + shift, theta.linear]
        return replace(theta, linear=np.concatenate(rows))

    def _set_linear(self, theta: Tucker, center: Array | None, shape: tuple[int, ...]) -> None:
        """Undo the centring: the intercept is at X = 0, not at the centre."""
        linear = like(np.zeros((0, *shape)), theta.core)
        if isinstance(theta, Affine):
            linear = linear_at_origin(theta, center)
        self.intercept_ = like(np.zeros(shape), theta.core)
        if center is not None:
            self.intercept_, linear = linear[0, ...], linear[1:, ...]
        self.covariate_coef_ = linear

    def _predicted(self, X: Any, covariates: Any, finish: Callable[[Array], Array]) -> Array:
        """What `finish` makes of the linear predictors of new samples."""
        samples = check_samples(self, X, anywhere=True, n_jobs=self.n_jobs)
        Z = self._fitted_covariates(covariates, samples)
        data = self._gather(samples, None, Z, keep=False)
        theta = self.tucker_ if Z is None else self._affine()
        theta, intercept = theta.map(data.like), data.like(self.intercept_)
        return data.map_rows(
            lambda chunk: finish(Covariate().predict(theta, chunk.X, chunk.Z) + intercept)
        )

    def _affine(self) -> Affine:
        return Affine(self.tucker_.core, self.tucker_.factors, self.covariate_coef_)

    def _fitted_covariates(self, covariates: Any, X: Array) -> Array | None:
        """Check that covariates are those that the model was fitted with."""
        columns = self.covariate_coef_.shape[0]
        if covariates is None and columns == 0:
            return None
        if covariates is None:
            raise ValueError("covariates must be given: the model was fitted with them")
        Z = check_covariates(covariates, X, self.n_jobs)
        if Z.shape[1] != columns:
            raise ValueError(
                f"covariates must have as many columns as in fit, {columns}; got {Z.shape[1]}"
            )
        return Z


def _center(data: Samples) -> Array:
    """Entrywise (weighted) median over (some of) the samples: any centre will do, this is safe."""
    pilot = data.sample(PILOT_SIZE)
    n, *shape = pilot.X.shape
    enough = max(CENTER_NUMBERS // math.prod(shape), CENTER_SIZE // 4) | 1  # odd: one is the median
    rows = np.linspace(0, n - 1, min(n, CENTER_SIZE, enough)).astype(int)
    weight = None if pilot.weight is None else to_numpy(pilot.weight)[rows]
    entries = matrix_of(pilot.X, 1)

    def middle(columns: slice) -> np.ndarray:
        return _median(to_numpy(take(entries[:, columns], rows)), weight)

    return data.like(by_stripes(middle, entries.shape[1], data.spread).reshape(shape))


def _median(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Weighted median of each column; between two values, their mean."""
    if weight is None:
        return medians(rows)
    order = np.argsort(rows, axis=0)
    below = np.cumsum(weight[order], axis=0)
    middles = [np.argmax(2 * below >= below[-1], axis=0), np.argmax(2 * below > below[-1], axis=0)]
    ordered = np.take_along_axis(rows, order, axis=0)
    return np.take_along_axis(ordered, np.stack(middles), axis=0).mean(axis=0)
