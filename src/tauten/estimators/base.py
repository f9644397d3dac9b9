"""What the estimators share: from a problem to a fitted point."""

from __future__ import annotations

import warnings
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import report
from .._array import quiet, to_numpy
from .._checks import check_generator, check_rank, check_size
from .._labels import Labels
from .._log import tell
from .._progress import counter, reporter
from ..checkpoint import Checkpoint, Stage, fingerprint
from ..data import Samples, gather, in_memory
from ..exceptions import NotConvergedWarning
from ..inference import Intervals, intervals, loadings
from ..init import start
from ..init.base import tensor_shape
from ..kernels import in_use
from ..losses import Loss
from ..problem import Problem
from ..registry import Registered, is_word
from ..robust import Robustifier
from ..select import select_rank, select_ridge
from ..select.thresholds import threshold_and_start
from ..solver import Iteration, Result, Solver
from ..solver.choice import PILOT, settled, solver_for, tolerance, worth_keeping
from ..solver.result import Callback, Progress
from ..tucker import Tucker

PILOT_STEPS = 8  # thresholds need no more
NEAR = 5e-3  # steps shorter than this, relative to A, hardly change how samples look
# Parameters that take a registered name, and of which family.
PARTS: dict[str, type[Registered]] = {"robust": Robustifier, "loss": Loss, "solver": Solver}
FEW = 16  # samples that tell what size entries have


class TensorModel(BaseEstimator):
    """What the estimators share: from a problem to a fitted point."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and of its parts: ``robust__tau``.

        A part that was named, such as ``robust="truncate"``, becomes an object for it.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> import tauten as tt
        >>> tt.TensorRegressor(robust="truncate").set_params(robust__tau=2.0).robust
        Truncate(tau=2.0)
        """
        for part in {name.partition("__")[0] for name in params if "__" in name}:
            spec = params.get(part, getattr(self, part, None))
            if part in PARTS and isinstance(spec, str):
                params[part] = PARTS[part].get(spec)
        return super().set_params(**params)

    def _solve(
        self, problem: Problem, theta: Tucker | None = None, *, stacklevel: int = 3
    ) -> Result:
        """Start, calibrate, fit; where thresholds are chosen, once more with those of that fit."""
        few = problem.data.sample(FEW)
        for name, array in (("X", few.X), ("y", few.y if problem.loss.residual else None)):
            if array is not None:
                check_size("Y" if few.X is None else name, to_numpy(array))
        # A wild sample may overflow; what that does to a fit is said in words.
        with problem.data.at_work(), quiet():
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
            problem, result = self._run(problem, stage, file)
            result = settled(problem, result)
            influence = problem.influence(_looked_from(problem, result))
        except KeyboardInterrupt:
            stopped, problem = True, problem.calibrate(stage.anchor)
            result, influence = stage.interrupted(), np.full(problem.data.n, np.nan)
        if file is not None and not stopped:
            file.remove()
        self._store(problem, result, influence)
        return result

    def _begin(self, problem: Problem, theta: Tucker | None) -> Stage:
        """Choose ranks, a start and, by cross-validation, a threshold and a ridge."""
        rng = check_generator(self.random_state)
        stage = Stage(progress=Progress(keeps=worth_keeping(problem)))
        if theta is None:
            theta = start(self.init, problem, self._rank(problem, rng, stage), rng)
        solver = self._solver(problem, theta)
        solver.check()
        theta = solver.gauge(theta)  # thresholds are of the factors that its steps move
        tau = getattr(problem.robust, "tau", None)
        if is_word(tau, "cv"):
            with counter(self.verbose, "thresholds", "candidate") as report:
                stage.thresholds, theta = threshold_and_start(
                    problem, theta, solver, rng=rng, report=report
                )
            theta = solver.gauge(theta)
        if self._needs_ridge(problem, theta):
            with counter(self.verbose, "ridges", "candidate") as report:
                chosen = self._chosen(problem, stage)
                stage.ridges = select_ridge(chosen, theta, rng=rng, report=report)
        stage.anchor, stage.last = theta, not self._chosen(problem, stage).robust.automatic
        return stage

    def _needs_ridge(self, problem: Problem, theta: Tucker) -> bool:
        """Whether to choose a ridge, for a fit from a start."""
        return False

    def _chosen(self, problem: Problem, stage: Stage) -> Problem:
        """The problem with what was chosen for it, which is shown as well."""
        if stage.ranks is not None:
            self.rank_path_ = stage.ranks
        if stage.ridges is not None:
            self.ridge_path_ = stage.ridges
            problem = replace(problem, ridge=stage.ridges.ridge)
        if stage.thresholds is None:
            return problem
        self.cv_results_ = stage.thresholds
        robust = clone(problem.robust).set_params(tau=stage.thresholds.tau)
        return replace(problem, robust=robust)

    def _run(
        self, problem: Problem, stage: Stage, file: Checkpoint | None
    ) -> tuple[Problem, Result]:
        """Run what is left: the fit that thresholds are chosen from, if any, and the fit.

        Return the fit, and the problem with its thresholds.
        """
        solver = self._solver(problem, stage.anchor)
        few = min(solver.n_iter, PILOT_STEPS) if solver.curvature else solver.n_iter
        most = solver.n_iter + (0 if stage.last else few)
        with reporter(self.verbose, most) as report:

            def callback(iteration: Iteration, theta: Tucker) -> None:
                report(iteration, theta)
                if file is not None:
                    file.save(stage)

            if not stage.last:
                stage.advance(self._rough_fit(problem, stage, few, callback))
            problem = problem.calibrate(stage.anchor)
            solver = self._solver(problem, stage.anchor)
            return problem, solver.run(problem, stage.anchor, callback, stage.progress)

    def _rough_fit(self, problem: Problem, stage: Stage, n_iter: int, callback: Callback) -> Tucker:
        """The fit that thresholds are chosen from, with rough ones."""
        problem = problem.calibrate(stage.anchor, rough=True)
        tol = tolerance(problem, stage.anchor, *PILOT)
        solver = self._solver(problem, stage.anchor).rougher(tol, n_iter)
        return solver.run(problem, stage.anchor, callback, stage.progress).theta

    def _file(self, problem: Problem) -> Checkpoint | None:
        """The checkpoint, if there is to be one, of this problem with these settings."""
        if self.checkpoint is None:
            return None
        settings = {"estimator": type(self).__name__, **self.get_params()}
        for name in ("checkpoint", "memory", "n_jobs", "verbose"):
            settings.pop(name)
        if isinstance(self.random_state, np.random.Generator):
            settings.pop("random_state")
        return Checkpoint(self.checkpoint, fingerprint(problem.data, settings))

    def _gather(self, *arrays: Any, **options: Any) -> Samples:
        """Samples within the memory and the threads that this model may use."""
        return gather(*arrays, memory=self.memory, n_jobs=self.n_jobs, **options)

    def _rank(
        self, problem: Problem, rng: np.random.Generator, stage: Stage | None = None
    ) -> tuple[int, ...]:
        criterion = {"auto": "bic", "cv": "cv"}.get(self.rank if isinstance(self.rank, str) else "")
        if criterion is None:
            return check_rank(self.rank, tensor_shape(problem))
        if isinstance(self.init, Tucker):
            return self.init.rank
        with counter(self.verbose, "ranks", "rank") as report:
            self.rank_path_ = select_rank(problem, criterion=criterion, rng=rng, report=report)
        if stage is not None:
            stage.ranks = self.rank_path_
        return self.rank_path_.rank

    def _solver(self, problem: Problem, theta: Tucker) -> Solver:
        return solver_for(self.solver, problem, theta)

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
        with counter(self.verbose, "bootstrap", "replicate") as report:
            solver = self._solver(problem, theta)
            return intervals(problem, theta, solver=solver, report=report, **options)

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


def _looked_from(problem: Problem, result: Result) -> Tucker:
    """Where to look at samples from: the end, or a step before it if they were swept there."""
    near = len(result.history) == 1 and result.history[0].change < NEAR
    return problem.swept.theta if near and problem.swept is not None else result.theta


def check_fitted_data(data: Samples, n: int, shape: tuple[int, ...], name: str = "y") -> None:
    """Raise if these cannot be the data of the fit."""
    if data.y.shape != (n, *shape):
        raise ValueError(
            f"{name} must be the data that the model was fitted to, of shape {(n, *shape)}; got "
            f"{data.y.shape}"
        )
