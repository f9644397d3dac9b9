"""Regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from .._checks import check_same_length, check_tensor
from .._labels import coefficient_labels
from ..data import in_memory
from ..losses import Loss
from .glm import TensorGLM


class TensorRegressor(RegressorMixin, TensorGLM):
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
        ``"auto"``, ``"newton"``, ``"anderson"``, ``"gd"`` (Algorithm 1): see
        :mod:`tauten.solver`. Steps of ``"auto"`` end where what is left to go is nothing beside the
        standard error of A, if thresholds were chosen by that; others at their own `tol`.
    fit_intercept : bool
    random_state : int, Generator or None
        For ``init="random"`` and ``"restarts"``, which is the default where samples are few, and
        for folds. None is 0: a fit can be repeated.
    verbose : int
        1 shows a progress bar on the standard error, or without tqdm a line per iteration.
    memory : int, str or None
        Where X is on disk, or is more integers than half of it holds as floats, the memory that a
        fit may take for samples: bytes, or a text such as ``"1GB"``; None is one gigabyte. See
        :mod:`tauten.data`.
    checkpoint : path, optional
        A file that every iteration is written to, and removed when the fit is done. A fit of the
        same data and settings that finds it goes on from there.
    n_jobs : int or None
        Most threads that go over the samples; None or -1 is all that this process may use, -2 all
        but one. Never more than its container has cores, and than ``threadpoolctl``,
        ``OMP_NUM_THREADS`` or a worker of joblib allow. The same number gives the same bits.

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
        after a fit that was interrupted. Of 2,000 samples or fewer it may be that of the point
        before the last step, if that was short.
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
        return check_tensor("y", y, anywhere=True, n_jobs=self.n_jobs)

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
        y = check_tensor("y", y, n_jobs=self.n_jobs)
        check_same_length(predicted, y)
        flat = (a.reshape(a.shape[0], -1) for a in (y, predicted))
        return float(r2_score(*flat, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
