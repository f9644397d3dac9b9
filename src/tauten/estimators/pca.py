"""Principal components."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._array import Array, namespace
from .._checks import check_generator, check_tensor
from .._labels import Labels
from ..data.base import few
from ..designs import Direct
from ..inference import Intervals
from ..init.decomposition import noise_location
from ..losses import Loss
from ..problem import Problem
from ..robust import Robustifier
from ..tucker import Tucker, coordinates, multi_mode_dot
from .base import TensorModel, check_fitted_data


class TensorPCA(TransformerMixin, TensorModel):
    """Low-rank part of a noisy tensor, or of several noisy copies of one, robust to heavy tails.

    ``Y = A + noise`` with A of low Tucker rank; nan entries are missing.

    Parameters
    ----------
    rank : "auto", "cv", int or sequence of int
        Tucker ranks of A.
    robust, init, solver, random_state, verbose, memory, checkpoint, n_jobs
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
        n_jobs: int | None = None,
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
        self.n_jobs = n_jobs

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
        rng = check_generator(self.random_state)
        centred = self._gather(None, problem.data.y - np.nanmedian(problem.data.y))
        return noise_location(problem, self._rank(replace(problem, data=centred), rng))

    def _problem(self, Y: Any, offset: float) -> Problem:
        """Check the data and put them together with the loss and the robustifier."""
        if self.offset or not self.replicates:  # one tensor, or one to be shifted: in memory
            modes = 2 if self.replicates else 1
            Y = check_tensor("Y", Y, missing=True, min_ndim=modes, n_jobs=self.n_jobs)
            Y = Y if self.replicates else Y[None]
            Y = Y - offset if offset else Y
        else:
            Y = check_tensor("Y", Y, missing=True, min_ndim=2, anywhere=True, n_jobs=self.n_jobs)
        data = self._gather(None, Y)
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
        check_fitted_data(problem.data, len(self.influence_), self.tucker_.shape, "Y")
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
        tensors = check_tensor("Y", Y, missing=True, anywhere=True, n_jobs=self.n_jobs)
        self._check_shape("Y", tensors, self.tucker_.shape)
        batch = tensors.ndim - self.tucker_.order
        if self.labels_ is not None:
            self.labels_.check("Y", Labels.of(Y, first=batch))
        if batch == self.replicates:
            validate_data(self, Y, skip_check_array=True, reset=False)
        if not batch:
            plain = check_tensor("Y", Y, missing=True, n_jobs=self.n_jobs)
            return coordinates(plain - self.offset_, self.tucker_.factors)
        data, offset = self._gather(None, tensors, keep=False), self.offset_
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
        tensors = check_tensor("scores", scores, n_jobs=self.n_jobs)
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


def _count_missing(y: Array) -> int:
    xp = namespace(y)
    return sum(int(xp.count_nonzero(xp.isnan(rows))) for rows in few(y))
