"""Classification."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._array import Array, namespace, to_numpy
from .._checks import check_classes, check_number
from .._labels import coefficient_labels
from ..data import in_memory
from ..init.base import responses_per_parameter
from ..losses import Loss
from ..problem import Problem
from ..registry import is_word
from ..select.folds import can_fold
from ..solver import Result
from ..tucker import Tucker
from .glm import TensorGLM

ENOUGH = 10  # samples per degree of freedom: the rule of thumb for a logistic regression


class TensorClassifier(ClassifierMixin, TensorGLM):
    """Low-rank tensor logistic regression, binary or multinomial, robust to heavy tails.

    With two classes, ``P(second class) = 1 / (1 + exp(-<A, X_i> - intercept))``; with more, A has
    one more mode, the classes', and the probabilities are a softmax over it.

    Parameters
    ----------
    rank, robust, init, solver, fit_intercept, random_state, verbose, memory, checkpoint, n_jobs
        As for :class:`TensorRegressor`.
    loss : str or Loss
        ``"auto"`` is logistic or multinomial, by the number of classes.
    class_weight : dict, "balanced" or None
        Weight of each class; ``"balanced"`` makes rare classes count as much as common ones.
    reduce_bias : bool
        Whether to fit by Firth's bias-reduced likelihood instead of the likelihood itself, which
        overestimates the size of A and has no finite fit where the classes can be separated.
    ridge : float or "auto"
        λ of a penalty ``½ λ ‖A‖²_F`` on the mean loss. ``"auto"`` is none where there are ten
        samples or more per degree of freedom of A. With fewer, classes are separable or nearly so
        and the likelihood's fit may be mostly noise: λ is then chosen by cross-validation, none
        included.

    Attributes
    ----------
    classes_ : array
        The labels.
    ridge_ : float
        λ in use.
    ridge_path_ : RidgePath
        The ridges tried and their errors, where one was chosen.
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
        ridge: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
        memory: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
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
            n_jobs=n_jobs,
        )
        self.class_weight = class_weight
        self.reduce_bias = reduce_bias
        self.ridge = ridge

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
        auto = is_word(self.loss, "auto")
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
        ridge = 0.0 if self._auto_ridge else _checked_ridge(self.ridge)
        return replace(problem, reduce_bias=self.reduce_bias, ridge=ridge)

    @property
    def _auto_ridge(self) -> bool:
        return is_word(self.ridge, "auto")

    def _needs_ridge(self, problem: Problem, theta: Tucker) -> bool:
        few = responses_per_parameter(problem, theta.rank) < ENOUGH
        return self._auto_ridge and few and can_fold(problem)

    def _store(self, problem: Problem, result: Result, influence: np.ndarray) -> None:
        super()._store(problem, result, influence)
        self.ridge_ = problem.ridge

    def _at_fit(self, X: Any, y: Any = None, **data: Any) -> tuple[Problem, Tucker]:
        problem, theta = super()._at_fit(X, y, **data)
        return replace(problem, ridge=self.ridge_), theta

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


def _checked_ridge(ridge: Any) -> float:
    if isinstance(ridge, str) or not np.isfinite(ridge):
        raise ValueError(f"ridge must be a finite number, or 'auto' to choose it; got {ridge!r}")
    check_number("ridge", ridge, zero=True)
    return float(ridge)


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
