"""scikit-learn façades. They check input, put the pieces together, and own no mathematics."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import report
from ._array import Array, is_foreign, like, namespace, quiet, take, to_numpy
from ._checks import (
    check_classes,
    check_covariates,
    check_rank,
    check_same_length,
    check_samples,
    check_size,
    check_tensor,
    check_weight,
)
from ._labels import Labels, coefficient_labels
from ._log import tell
from ._progress import reporter
from .checkpoint import Checkpoint, Stage, fingerprint
from .data import Samples, gather, in_memory
from .designs import Covariate, Direct
from .exceptions import NotConvergedWarning
from .inference import Intervals, intervals, linear_at_origin, loadings
from .init import noise_location, start, tensor_shape
from .kernels import in_use
from .losses import Loss
from .problem import PILOT_SIZE, Problem
from .robust import Robustifier
from .select import select_rank, select_threshold
from .solver import Callback, Iteration, Result, Solver, choose, settled
from .tucker import Affine, Tucker, coordinates, multi_mode_dot

PILOT_TOL, PILOT_STEPS = 1e-3, 8  # thresholds need no more
FEW = 16  # samples that tell what size entries have
CENTER_SIZE = 255  # samples that the centre of X is taken from: near is enough


class _TensorModel(BaseEstimator):
    """What the estimators share: from a problem to a fitted point."""

    def _solve(
        self, problem: Problem, theta: Tucker | None = None, *, stacklevel: int = 3
    ) -> Result:
        """Start, calibrate, fit; where thresholds are chosen, once more with those of that fit."""
        few = problem.data.sample(FEW)
        for name, array in (("X", few.X), ("y", few.y if problem.loss.residual else None)):
            if array is not None:
                check_size("Y" if few.X is None else name, to_numpy(array))
        with quiet():  # a wild sample may overflow; what that does to a fit is said in words
            result = self._fitted(problem, theta)
        tell("fit", lambda: self._facts(problem))
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} stopped early: {result.reason}",
                NotConvergedWarning,
                stacklevel=stacklevel,
            )
        return result

    def _fitted(self, problem: Problem, theta: Tucker | None) -> Result:
        """Fit and keep what was found; of an interrupted fit, what was found so far.

        With a checkpoint, go on from there, and leave it behind if interrupted.
        """
        file = self._file(problem)
        stage = None if file is None else file.load(problem.data.like)
        if stage is None:
            stage = self._begin(problem, theta)
        problem, stopped = self._chosen(problem, stage), False
        try:
            result = self._run(problem, stage, file)
            problem = problem.calibrate(stage.anchor)
            result = settled(problem, result)
            influence = problem.influence(result.theta)
        except KeyboardInterrupt:
            stopped, problem = True, problem.calibrate(stage.anchor)
            result, influence = stage.interrupted(), np.full(problem.data.n, np.nan)
        if file is not None and not stopped:
            file.remove()
        self._store(problem, result, influence)
        return result

    def _begin(self, problem: Problem, theta: Tucker | None) -> Stage:
        """Choose ranks, a start and, by cross-validation, a threshold."""
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        stage = Stage()
        if theta is None:
            theta = start(self.init, problem, self._rank(problem, rng, stage), rng)
        solver = self._solver(problem, theta)
        solver.check()
        tau = getattr(problem.robust, "tau", None)
        if isinstance(tau, str) and tau == "cv":
            stage.thresholds = select_threshold(problem, theta, solver, rng=rng)
        stage.anchor, stage.last = theta, not self._chosen(problem, stage).robust.automatic
        return stage

    def _chosen(self, problem: Problem, stage: Stage) -> Problem:
        """The problem with what was chosen for it, which is shown as well."""
        if stage.ranks is not None:
            self.rank_path_ = stage.ranks
        if stage.thresholds is None:
            return problem
        self.cv_results_ = stage.thresholds
        robust = clone(problem.robust).set_params(tau=stage.thresholds.tau)
        return replace(problem, robust=robust)

    def _run(self, problem: Problem, stage: Stage, file: Checkpoint | None) -> Result:
        """Run what is left: the fit that thresholds are chosen from, if any, and the fit."""
        solver = self._solver(problem, stage.anchor)
        with reporter(self.verbose) as report:

            def callback(iteration: Iteration, theta: Tucker) -> None:
                report(iteration, theta)
                if file is not None:
                    file.save(stage)

            if not stage.last:
                few = min(solver.n_iter, PILOT_STEPS) if solver.curvature else solver.n_iter
                pilot = clone(solver).set_params(tol=max(solver.tol, PILOT_TOL), n_iter=few)
                stage.advance(self._run_stage(pilot, problem, stage, callback).theta)
            return self._run_stage(solver, problem, stage, callback)

    def _run_stage(
        self, solver: Solver, problem: Problem, stage: Stage, callback: Callback
    ) -> Result:
        bent = problem.calibrate(stage.anchor)
        return solver.run(bent, stage.anchor, callback, stage.progress)

    def _file(self, problem: Problem) -> Checkpoint | None:
        """The checkpoint, if there is to be one, of this problem with these settings."""
        if self.checkpoint is None:
            return None
        settings = {"estimator": type(self).__name__, **self.get_params()}
        for name in ("checkpoint", "memory", "verbose"):
            settings.pop(name)
        if isinstance(self.random_state, np.random.Generator):
            settings.pop("random_state")
        return Checkpoint(self.checkpoint, fingerprint(problem.data, settings))

    def _rank(
        self, problem: Problem, rng: np.random.Generator, stage: Stage | None = None
    ) -> tuple[int, ...]:
        criterion = {"auto": "bic", "cv": "cv"}.get(self.rank if isinstance(self.rank, str) else "")
        if criterion is None:
            return check_rank(self.rank, tensor_shape(problem))
        if isinstance(self.init, Tucker):
            return self.init.rank
        self.rank_path_ = select_rank(problem, criterion=criterion, rng=rng)
        if stage is not None:
            stage.ranks = self.rank_path_
        return self.rank_path_.rank

    def _solver(self, problem: Problem, theta: Tucker) -> Solver:
        auto = isinstance(self.solver, str) and self.solver == "auto"
        return choose(problem, theta) if auto else Solver.get(self.solver)

    def _store(self, problem: Problem, result: Result, influence: np.ndarray) -> None:
        theta = result.theta
        self.tucker_ = Tucker(theta.core, theta.factors)
        self.coef_ = self.tucker_.full()
        self.rank_ = self.tucker_.rank
        self.loss_, self.robust_ = problem.loss, problem.robust
        self.influence_ = influence
        self.result_ = replace(result, n_passes=problem.data.reads.passes)
        self.n_iter_ = result.n_iter

    def _facts(self, problem: Problem) -> dict[str, Any]:
        return {
            "estimator": type(self).__name__,
            "n": problem.data.n,
            "rank": self.rank_,
            "sweep": in_use(),
            "passes": self.result_.n_passes,
        }

    def _label(self, samples: Any, labels: Labels | None) -> None:
        """Keep what is known of features and modes; label the coefficients."""
        validate_data(self, samples, skip_check_array=True)
        self.labels_ = labels
        if labels is not None:
            self.coef_ = labels.wrap(self.coef_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _at_fit(self, X: Any, y: Any = None, **data: Any) -> tuple[Problem, Tucker]:
        """The problem that was solved, with the thresholds in use, and the fit as its point."""
        raise NotImplementedError

    def _point(self, problem: Problem) -> Tucker:
        """The fit as a point of a problem."""
        return self.tucker_

    def _intervals(self, problem: Problem, theta: Tucker, **options: Any) -> Intervals:
        return intervals(problem, theta, solver=self._solver(problem, theta), **options)

    def report(self, path: str | PathLike[str], X: Any, y: Any = None, **options: Any) -> Path:
        """Write a report of the fit: one HTML page that loads nothing.

        Parameters
        ----------
        path : str or path
        X, y
            As given to :meth:`fit`: the model keeps no data.
        **options
            See :func:`tauten.report.write`: `sample_names`, `mode_names`, `folds`, and the rest of
            what was given to :meth:`fit`.

        Returns
        -------
        Path
        """
        return report.write(self, path, in_memory(X), in_memory(y), **options)

    def loading_intervals(
        self, X: Any, y: Any = None, *, level: float = 0.95, **data: Any
    ) -> list[Intervals]:
        """Return confidence intervals of the factors' entries, one set per mode.

        Parameters
        ----------
        X, y, **data
            As given to :meth:`fit`, `covariates` and `sample_weight` included.
        level : float
            Confidence of each interval.

        Returns
        -------
        list of Intervals
            See :func:`tauten.inference.loadings`, which says what they mean.
        """
        check_is_fitted(self)
        return loadings(*self._at_fit(X, y, **data), level=level)


class _TensorGLM(_TensorModel):
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

    def _fit(self, X: Any, y: np.ndarray, loss: Loss, covariates: Any, weight: Any) -> Self:
        samples = check_tensor("X", X, min_ndim=2, anywhere=True)
        problem = self._problem(samples, y, loss, covariates, weight)
        result = self._solve(problem, stacklevel=4)
        self.sample_shape_ = tuple(samples.shape[1:])
        self._set_linear(result.theta, problem.design.center, y.shape[1:])
        return self

    def _problem(self, X: Array, y: Array, loss: Loss, covariates: Any, weight: Any) -> Problem:
        """Check what comes with X and put it all together with the loss and the robustifier."""
        check_same_length(X, y)
        Z = None if covariates is None else check_covariates(covariates, X)
        weight = check_weight(weight, X.shape[0])
        data = gather(X, y, Z, weight, intercept=self.fit_intercept, memory=self.memory)
        data.each("y", loss.check)
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
        samples = check_samples(self, X, anywhere=True)
        self._fitted_covariates(covariates, samples)
        problem = self._problem(samples, self._response(y), self.loss_, covariates, sample_weight)
        _check_fitted_data(problem.data, len(self.influence_), self.intercept_.shape)
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
        samples = check_samples(self, X, anywhere=True)
        Z = self._fitted_covariates(covariates, samples)
        data = gather(samples, None, Z, memory=self.memory, keep=False)
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
        Z = check_covariates(covariates, X)
        if Z.shape[1] != columns:
            raise ValueError(
                f"covariates must have as many columns as in fit, {columns}; got {Z.shape[1]}"
            )
        return Z


class TensorRegressor(RegressorMixin, _TensorGLM):
    """Low-rank tensor regression for data with heavy tails and outliers.

    ``E[Y_i] = mean(<A, X_i> + intercept + Z_i γ)`` with a coefficient tensor A of low Tucker rank;
    X_i a vector, matrix or tensor, Y_i a number or an array of any order.

    Parameters
    ----------
    rank : "auto", "cv", int or sequence of int
        Tucker ranks of A: chosen by a robust BIC or by cross-validation, one for all modes, or one
        per mode, covariate modes first.
    loss : str or Loss
        ``"squared"``, ``"huber"``, ``"poisson"``, ``"gamma"``: see :mod:`tauten.losses`.
    robust : str or Robustifier
        ``"auto"``, ``"truncate"`` (the paper's), ``"none"``, ...: see :mod:`tauten.robust`.
    init : str or Tucker
        Starting point: see :mod:`tauten.init`.
    solver : str or Solver
        ``"auto"``, ``"newton"``, ``"gd"`` (Algorithm 1): see :mod:`tauten.solver`.
    fit_intercept : bool
    random_state : int, Generator or None
        For ``init="random"`` and ``"restarts"``, which is the default where samples are few, and
        for folds. None is 0: a fit can be repeated.
    verbose : int
        1 shows a progress bar on the standard error, or without tqdm a line per iteration.
    memory : int, str or None
        Where X is on disk, the memory that a fit may take for samples: bytes, or a text such as
        ``"1GB"``; None is one gigabyte. See :mod:`tauten.data`.
    checkpoint : path, optional
        A file that every iteration is written to, and removed when the fit is done. A fit of the
        same data and settings that finds it goes on from there.

    Attributes
    ----------
    coef_ : array (p_1, ..., p_d0, q_1, ..., q_m)
        The tensor A; an ``xarray.DataArray`` with their dimensions and coordinates where X or y is
        one.
    tucker_ : Tucker
        A in Tucker form.
    intercept_ : array (q_1, ..., q_m)
    covariate_coef_ : array (c, q_1, ..., q_m)
        Coefficients γ of the vector covariates.
    rank_ : tuple of int
    robust_ : Robustifier
        As calibrated, with the thresholds in use.
    influence_ : array (n,)
        How much of each sample's gradient was cut away, from 0 (none) to 1: who is unusual; nan
        after a fit that was interrupted.
    n_iter_ : int
    result_ : Result
        With ``converged``, ``reason``, ``history`` and ``n_passes``, how often X was read.
    rank_path_ : RankPath
        The ranks tried and their criterion, where ``rank`` is ``"auto"`` or ``"cv"``.
    cv_results_ : ThresholdPath
        The thresholds tried and their errors, where ``robust.tau`` is ``"cv"``.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 500, noise="t:1.2", rng=0)
    >>> model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    >>> tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    True
    """

    def fit(self, X: Any, y: Any, *, covariates: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array (n, p_1, ..., p_d0)
        y : array (n,) or (n, q_1, ..., q_m)
        covariates : array (n, c), optional
            Vector covariates Z, estimated together with A.
        sample_weight : array (n,), optional

        Returns
        -------
        self
        """
        loss = Loss.get(self.loss)
        if loss.classes:
            raise ValueError(f"loss {loss.name!r} is for classes: use TensorClassifier")
        response = self._response(y)
        self._fit(X, response, loss, covariates, sample_weight)
        self._label(X, coefficient_labels(X, y, (len(self.sample_shape_), response.ndim - 1)))
        return self

    def _response(self, y: Any) -> Array:
        return check_tensor("y", y, anywhere=True)

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Predict responses.

        Parameters
        ----------
        X : array (n, p_1, ..., p_d0)
        covariates : array (n, c), optional

        Returns
        -------
        array (n,) or (n, q_1, ..., q_m)
        """
        check_is_fitted(self)
        return self._predicted(X, covariates, self.loss_.mean)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, covariates: Any = None) -> float:
        """Return R² of the predictions; for tensor responses, its mean over their entries."""
        from sklearn.metrics import r2_score  # here: it takes half a second to import

        predicted = in_memory(self.predict(X, covariates))
        y = check_tensor("y", y)
        check_same_length(predicted, y)
        flat = (a.reshape(a.shape[0], -1) for a in (y, predicted))
        return float(r2_score(*flat, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TensorClassifier(ClassifierMixin, _TensorGLM):
    """Low-rank tensor logistic regression, binary or multinomial, robust to heavy tails.

    With two classes, ``P(second class) = 1 / (1 + exp(-<A, X_i> - intercept))``; with more, A has
    one more mode, the classes', and the probabilities are a softmax over it.

    Parameters
    ----------
    rank, loss, robust, init, solver, fit_intercept, random_state, verbose, memory, checkpoint
        As for :class:`TensorRegressor`; ``loss="auto"`` is logistic or multinomial, by the number
        of classes.
    class_weight : dict, "balanced" or None
        Weight of each class; ``"balanced"`` makes rare classes count as much as common ones.
    reduce_bias : bool
        Whether to fit by Firth's bias-reduced likelihood instead of the likelihood itself, which
        overestimates the size of A and has no finite fit where the classes can be separated.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_, tucker_, intercept_, covariate_coef_, rank_, robust_, influence_, n_iter_, result_
        As for :class:`TensorRegressor`.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("III", 500, rng=0)
    >>> model = tt.TensorClassifier(rank=1).fit(data.X, data.y)
    >>> model.score(data.X, data.y) > 0.8
    True
    """

    def __init__(
        self,
        rank: Any = "auto",
        *,
        loss: Any = "auto",
        robust: Any = "auto",
        init: Any = "auto",
        solver: Any = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        reduce_bias: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        memory: Any = None,
        checkpoint: Any = None,
    ) -> None:
        super().__init__(
            rank,
            loss=loss,
            robust=robust,
            init=init,
            solver=solver,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
            memory=memory,
            checkpoint=checkpoint,
        )
        self.class_weight = class_weight
        self.reduce_bias = reduce_bias

    def fit(self, X: Any, y: Any, *, covariates: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array (n, p_1, ..., p_d0)
        y : array (n,)
            Labels of any kind, of two classes or more.
        covariates : array (n, c), optional
        sample_weight : array (n,), optional

        Returns
        -------
        self
        """
        labels = check_classes(y)
        classes = np.unique(labels)
        if len(classes) == 1:
            only = classes.tolist()[0]
            raise ValueError(f"y must hold at least two classes; got one class, {only!r}")
        binary = len(classes) == 2
        auto = isinstance(self.loss, str) and self.loss == "auto"
        loss = Loss.get(("logistic" if binary else "multinomial") if auto else self.loss)
        if not loss.classes:
            raise ValueError(f"loss {loss.name!r} is not for classes: use TensorRegressor")
        if not (binary or loss.one_hot):
            raise ValueError(
                f"loss {loss.name!r} takes two classes; y holds {len(classes)}. Use 'auto'"
            )
        if self.class_weight is not None:
            weight = compute_sample_weight(self.class_weight, labels)
            if sample_weight is not None:
                weight = weight * _check_sample_weight(in_memory(sample_weight), labels)
            sample_weight = weight
        response = _encode(labels, classes, loss)
        self._fit(X, response, loss, covariates, sample_weight)
        self.classes_ = classes
        orders = (len(self.sample_shape_), response.ndim - 1)
        self._label(X, coefficient_labels(X, None, orders, classes))
        return self

    def _problem(
        self, X: np.ndarray, y: np.ndarray, loss: Loss, covariates: Any, weight: Any
    ) -> Problem:
        problem = super()._problem(X, y, loss, covariates, weight)
        return replace(problem, reduce_bias=self.reduce_bias)

    def _response(self, y: Any) -> np.ndarray:
        return _encode(check_classes(y), self.classes_, self.loss_)

    def decision_function(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return linear predictors: (n,) for two classes, (n, classes) for more."""
        return self._predicted(X, covariates, _log_odds)

    def predict_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return class probabilities (n, classes), in the order of ``classes_``."""
        check_is_fitted(self)
        return self._predicted(X, covariates, partial(_probabilities, self.loss_))

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the most probable labels."""
        check_is_fitted(self)
        loss, classes = self.loss_, self.classes_

        def labels(eta: Array) -> np.ndarray:
            return classes[to_numpy(_probabilities(loss, eta)).argmax(axis=1)]

        return self._predicted(X, covariates, labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, covariates: Any = None) -> float:
        """Return the share of labels predicted right."""
        from sklearn.metrics import accuracy_score  # here: it takes half a second to import

        predicted = in_memory(self.predict(X, covariates))
        return float(accuracy_score(in_memory(y), predicted, sample_weight=sample_weight))


class TensorPCA(TransformerMixin, _TensorModel):
    """Low-rank part of a noisy tensor, or of several noisy copies of one, robust to heavy tails.

    ``Y = A + noise`` with A of low Tucker rank; nan entries are missing.

    Parameters
    ----------
    rank : "auto", "cv", int or sequence of int
        Tucker ranks of A.
    robust, init, solver, random_state, verbose, memory, checkpoint
        As for :class:`TensorRegressor`.
    replicates : bool
        Whether axis 0 of Y holds n noisy copies of one low-rank tensor.
    offset : bool
        Whether to fit ``Y = A + offset + noise``, for noise that is skewed: a robust fit follows
        its mode, not its mean. A is then known up to a constant.

    Attributes
    ----------
    offset_ : float
        The offset; 0 where none is fitted.
    tucker_ : Tucker
        A, with orthonormal factors.
    low_rank_ : array (p_1, ..., p_d)
        A in full; an ``xarray.DataArray`` where Y is one.
    rank_, robust_, influence_, n_iter_, result_
        As for :class:`TensorRegressor`.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("IV", 100, noise="t:1.5", rng=0)
    >>> model = tt.TensorPCA(rank=1, replicates=True).fit(data.y)
    >>> tt.metrics.relative_error(model.low_rank_, data.truth) < 0.3
    True
    """

    def __init__(
        self,
        rank: Any = "auto",
        *,
        robust: Any = "auto",
        init: Any = "auto",
        solver: Any = "auto",
        replicates: bool = False,
        offset: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        memory: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.rank = rank
        self.robust = robust
        self.init = init
        self.solver = solver
        self.replicates = replicates
        self.offset = offset
        self.random_state = random_state
        self.verbose = verbose
        self.memory = memory
        self.checkpoint = checkpoint

    def fit(self, Y: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        Y : array (p_1, ..., p_d), or (n, p_1, ..., p_d) with ``replicates=True``
            nan stands for a missing entry.
        y : None
            Ignored; there for scikit-learn's pipelines.

        Returns
        -------
        self
        """
        problem, theta, self.offset_ = self._problem(Y, 0.0), None, 0.0
        if self.offset:
            self.offset_, theta = self._noise_location(problem)
            problem = self._problem(Y, self.offset_)
        self._solve(problem, theta)
        self._label(Y, Labels.of(Y, first=int(self.replicates)))
        self.low_rank_ = self.coef_
        return self

    def _noise_location(self, problem: Problem) -> tuple[float, Tucker]:
        """The offset and a start, at the rank of data whose median is zero."""
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        centred = gather(None, problem.data.y - np.nanmedian(problem.data.y))
        return noise_location(problem, self._rank(replace(problem, data=centred), rng))

    def _problem(self, Y: Any, offset: float) -> Problem:
        """Check the data and put them together with the loss and the robustifier."""
        if self.offset or not self.replicates:  # one tensor, or one to be shifted: in memory
            Y = check_tensor("Y", Y, missing=True, min_ndim=2 if self.replicates else 1) - offset
            Y = Y if self.replicates else Y[None]
        else:
            Y = check_tensor("Y", Y, missing=True, min_ndim=2, anywhere=True)
        data = gather(None, Y, memory=self.memory)
        missing = sum(data.each("y", _count_missing))
        if missing == math.prod(Y.shape):
            raise ValueError("Y must hold at least one observed entry; got nan everywhere")
        robust = Robustifier.get(self.robust)
        return Problem(data, Loss.get("squared"), Direct(), robust, missing=missing > 0)

    def confidence_intervals(
        self,
        Y: Any,
        *,
        level: float = 0.95,
        method: str = "sandwich",
        n_boot: int = 200,
        random_state: Any = None,
    ) -> Intervals:
        """Return confidence intervals of every entry of A, from the replicates of the fit.

        Only with ``replicates=True``: one tensor does not tell how much it varies.

        Parameters
        ----------
        Y : array (n, p_1, ..., p_d)
            As given to :meth:`fit`: the model keeps no data.
        level, method, n_boot, random_state
            As for :meth:`TensorRegressor.confidence_intervals`.

        Returns
        -------
        Intervals
            Of ``low_rank_``.

        Examples
        --------
        >>> import tauten as tt
        >>> data = tt.datasets.make_model("IV", 100, noise="t:1.5", rng=0)
        >>> model = tt.TensorPCA(rank=1, replicates=True).fit(data.y)
        >>> found = model.confidence_intervals(data.y, level=0.9)
        >>> bool((found.lower < found.upper).all())
        True
        """
        check_is_fitted(self)
        if not self.replicates:
            raise ValueError(
                "confidence_intervals needs replicates=True: one tensor does not tell how much it "
                "varies"
            )
        options = {"level": level, "method": method, "n_boot": n_boot, "rng": random_state}
        return self._intervals(*self._at_fit(Y), **options)

    def _at_fit(self, X: Any, y: Any = None, **data: Any) -> tuple[Problem, Tucker]:
        problem = self._problem(X, self.offset_)
        _check_fitted_data(problem.data, len(self.influence_), self.tucker_.shape, "Y")
        return replace(problem, robust=self.robust_), self.tucker_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def transform(self, Y: Any) -> np.ndarray:
        """Return ``(Y - offset) x_k U_kᵀ``: coordinates in the fitted subspaces.

        Parameters
        ----------
        Y : array (p_1, ..., p_d) or (n, p_1, ..., p_d)
            nan stands for a missing entry: the coordinates are those of least squares over the
            others, the smallest ones where too few are left.

        Returns
        -------
        array (r_1, ..., r_d) or (n, r_1, ..., r_d)
        """
        check_is_fitted(self)
        tensors = check_tensor("Y", Y, missing=True, anywhere=True)
        self._check_shape("Y", tensors, self.tucker_.shape)
        batch = tensors.ndim - self.tucker_.order
        if self.labels_ is not None:
            self.labels_.check("Y", Labels.of(Y, first=batch))
        if batch == self.replicates:
            validate_data(self, Y, skip_check_array=True, reset=False)
        if not batch:
            plain = check_tensor("Y", Y, missing=True)
            return coordinates(plain - self.offset_, self.tucker_.factors)
        data, offset = gather(None, tensors, memory=self.memory, keep=False), self.offset_
        factors = [data.like(u) for u in self.tucker_.factors]
        return data.map_rows(lambda chunk: coordinates(chunk.y - offset, factors, first=1))

    def inverse_transform(self, scores: Any) -> np.ndarray:
        """Return ``scores x_k U_k + offset``: the tensors of given coordinates.

        Parameters
        ----------
        scores : array (r_1, ..., r_d) or (n, r_1, ..., r_d)

        Returns
        -------
        array (p_1, ..., p_d) or (n, p_1, ..., p_d)
        """
        check_is_fitted(self)
        tensors = check_tensor("scores", scores)
        self._check_shape("scores", tensors, self.rank_)
        first = tensors.ndim - len(self.rank_)
        return multi_mode_dot(tensors, self.tucker_.factors, first=first) + self.offset_

    def _check_shape(self, name: str, tensors: Array, shape: tuple[int, ...]) -> None:
        """Raise unless these are tensors of a shape, or one of them."""
        if tuple(tensors.shape[-len(shape) :]) != shape or tensors.ndim > len(shape) + 1:
            hint = ""
            if name == "Y" and tensors.ndim > 1 and tensors.shape[1] != self.n_features_in_:
                hint = (  # in scikit-learn's words
                    f": X has {tensors.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            raise ValueError(
                f"{name} must have shape {shape}, or (n, {', '.join(map(str, shape))}); got "
                f"{tensors.shape}{hint}"
            )


def _center(data: Samples) -> Array:
    """Entrywise (weighted) median over (some of) the samples: any centre will do, this is safe."""
    pilot = data.sample(PILOT_SIZE)
    rows = np.linspace(0, pilot.X.shape[0] - 1, min(pilot.X.shape[0], CENTER_SIZE)).astype(int)
    X = to_numpy(take(pilot.X, rows))
    if pilot.weight is None:
        return data.like(np.median(X, axis=0))
    order = np.argsort(X, axis=0)
    below = np.cumsum(to_numpy(pilot.weight)[rows][order], axis=0)
    middles = [np.argmax(2 * below >= below[-1], axis=0), np.argmax(2 * below > below[-1], axis=0)]
    ordered = np.take_along_axis(X, order, axis=0)
    return data.like(np.take_along_axis(ordered, np.stack(middles), axis=0).mean(axis=0))


def _count_missing(y: Array) -> int:
    xp = namespace(y)
    return int(xp.count_nonzero(xp.isnan(y)))


def _probabilities(loss: Loss, eta: Array) -> Array:
    """Of each class: of two, from the second one's."""
    mean = loss.mean(eta)
    return namespace(mean).stack([1 - mean, mean], axis=1) if mean.ndim == 1 else mean


def _log_odds(eta: Array) -> Array:
    """Linear predictors; of a softmax of two classes, their difference."""
    return eta[:, 1] - eta[:, 0] if eta.ndim == 2 and eta.shape[1] == 2 else eta


def _encode(labels: np.ndarray, classes: np.ndarray, loss: Loss) -> np.ndarray:
    """Labels as 0 and 1, or one-hot."""
    strange = np.setdiff1d(labels, classes)
    if len(strange):
        raise ValueError(f"y must hold the classes of fit, {classes}; got {strange[0]!r}")
    codes = np.searchsorted(classes, labels)
    return np.eye(len(classes))[codes] if loss.one_hot else codes.astype(float)


def _check_fitted_data(data: Samples, n: int, shape: tuple[int, ...], name: str = "y") -> None:
    """Raise if these cannot be the data of the fit."""
    if data.y.shape != (n, *shape):
        raise ValueError(
            f"{name} must be the data that the model was fitted to, of shape {(n, *shape)}; got "
            f"{data.y.shape}"
        )
