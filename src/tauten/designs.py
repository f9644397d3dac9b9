"""How a sample sees the tensor A: through a covariate (regression), or directly (PCA).

A design turns a point into linear predictors, and a score back into per-sample partial gradients.
It is linear algebra on the projections of :func:`tauten.kernels.project` only; which loss the
score comes from and what a robustifier did to it is none of its business.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ._array import (
    Array,
    column,
    flat,
    flat_pair_products,
    like,
    matmul,
    matrix_of,
    namespace,
    pair_products,
    product,
    reshape,
)
from .data import Chunk, Samples
from .kernels import derivatives, derivatives_and_sum, norms, project
from .tucker import Tucker, multi_mode_dot


@dataclass(frozen=True)
class Pullback:
    """From scores to per-sample gradients, for responses that are numbers.

    A score scales what the sweep gave, the derivatives of the linear predictors.

    Parameters
    ----------
    theta : Tucker
        The point.
    rows : array (n, D)
        The derivatives, all blocks side by side.
    total : array (p_1, ..., p_d0), optional
        ``Σ_i s_i X_i`` of scores that were known before the sweep.
    """

    theta: Tucker
    rows: Array | None
    total: Array | None = field(default=None, kw_only=True)

    def __call__(self, score: Array) -> Iterator[Array]:
        """Yield one array (n, *block) for each block of the point, in their order.

        Parameters
        ----------
        score : array
            Of the shape of the linear predictors, or one row, to be used for every sample.
        """
        yield from self.theta.split(self.flat(score))

    def flat(self, score: Array) -> Array:
        """The same, side by side: (n, D)."""
        return self.rows * column(score, 2)


@dataclass(frozen=True)
class TensorPullback(Pullback):
    """The same for responses with modes of their own.

    Parameters
    ----------
    theta : Tucker
    rows : None
        There are no derivatives that a number could scale.
    xbar, xparts, hbar : arrays
        Projected covariates: by all factors, by all but one, and contracted with the core.
    Z : array (n, c), optional
        Vector covariates.
    """

    xbar: Array
    xparts: Sequence[Array]
    hbar: Array
    Z: Array | None

    def __call__(self, score: Array) -> Iterator[Array]:
        """Yield one array (n, *block) for each block of the point, in their order."""
        for block, pair in zip(self.theta.blocks, self._pairs(score), strict=True):
            found = pair_products(*pair)
            yield reshape(found, (found.shape[0], *block.shape))

    def flat(self, score: Array) -> Array:
        """The same, side by side: (n, D)."""
        return flat_pair_products(list(self._pairs(score)))

    def _pairs(self, score: Array) -> Iterator[tuple[Array, Array]]:
        """Of each block, the matrices of a sample that it is a product of."""
        order, core = self.xbar.ndim - 1, self.theta.core
        sbar, *sparts = project(score, self.theta.factors[order:])
        wbar = product(sbar, matrix_of(core, order).T, self.theta.rank[:order])
        yield _columns(self.xbar), _columns(sbar)
        for k, part in enumerate(self.xparts):
            yield _unfolded(part, k), _unfolded(wbar, k)
        for k, part in enumerate(sparts):
            yield _unfolded(part, k), _unfolded(self.hbar, k)
        if self.Z is not None:
            yield _columns(self.Z), _columns(score)


@dataclass(frozen=True)
class DirectPullback(Pullback):
    """The same where every sample sees A itself: scores are swept as covariates are elsewhere."""

    def flat(self, score: Array) -> Array:
        """The same, side by side: (n, D)."""
        return derivatives(score, self.theta.factors, self.theta.core)


@dataclass(frozen=True)
class Covariate:
    """Tensor covariates: ``η_i = <A, X_i> + Σ_c Z_ic linear_c`` (section 3.2 of the paper).

    X_i of order d0 is contracted with the first d0 modes of A; the others are the modes of the
    response, so that d0 = d is a scalar response and d0 = 0 a scalar covariate.

    Parameters
    ----------
    center : array (p_1, ..., p_d0), optional
        Subtracted from every X_i. Projections are linear, so it is their centres that are
        subtracted and X is never copied.

    Examples
    --------
    >>> import numpy as np
    >>> theta = Tucker(np.ones((1, 1)), [np.ones((3, 1)), np.ones((2, 1))])
    >>> eta, pullback = Covariate().linearise(theta, np.ones((5, 3)))
    >>> eta.shape, [g.shape for g in pullback(eta)]
    ((5, 2), [(5, 1, 1), (5, 3, 1), (5, 2, 1)])
    """

    init: ClassVar[str] = "iht"  # what "auto" means with this design

    center: Array | None = None

    def linearise(
        self,
        theta: Tucker,
        X: Array,
        Z: Array | None = None,
        scale: Array | None = None,
        score: Array | None = None,
    ) -> tuple[Array, Pullback]:
        """Return the linear predictors and the map from scores to per-sample gradients.

        Parameters
        ----------
        theta : Tucker
            The point; with Z, an :class:`tauten.tucker.Affine`.
        X : array (n, p_1, ..., p_d0)
        Z : array (n, c), optional
        scale : array (n,), optional
            Factors that shrink each sample's X_i.
        score : array (n,), optional
            Scores to sum the samples with as well, where responses are numbers.

        Returns
        -------
        eta : array (n, p_{d0+1}, ..., p_d)
        pullback : Pullback
            From scores of the shape of eta to the gradients of each block of theta.
        """
        order = X.ndim - 1
        if order == theta.order:
            rows, total = self._swept(theta, X, Z, scale, score)
            first = rows[:, : math.prod(theta.rank)]  # the projected samples
            eta = product(first, matrix_of(theta.core, order), ())
            return add_linear(theta, eta, Z), Pullback(theta, rows, total=total)
        xbar, *xparts = project(X, theta.factors[:order], center=self.center, scale=scale)
        hbar, eta = _predict(theta, xbar, Z)
        return eta, TensorPullback(theta, None, xbar, xparts, hbar, Z)

    def _swept(
        self, theta: Tucker, X: Array, Z: Array | None, scale: Array | None, score: Array | None
    ) -> tuple[Array, Array | None]:
        """Derivatives of all blocks, and a sum of the samples if there are scores for it."""
        point, center = (theta.factors, theta.core), self.center
        if score is None:
            return derivatives(X, *point, center=center, scale=scale, beside=Z), None
        rows, total = derivatives_and_sum(X, *point, score, center=center, scale=scale, beside=Z)
        return rows, self._centred(total, namespace(score).sum(score))

    def _centred(self, total: Array, weight: Array) -> Array:
        """A weighted sum of samples as one of what is left of them without the centre."""
        return total if self.center is None else total - weight * self.center

    def norms(self, chunk: Chunk) -> Array:
        """Norms of the centred covariates, kept with the samples."""
        return chunk.norms(self.center, norms)

    def norms_of_all(self, data: Samples) -> Array:
        """The same of all samples."""
        return data.norms(self.center, norms)

    def inner(self, tensor: Array, X: Array, scale: Array | None = None) -> Array:
        """``<A, X_i>`` for a full tensor A."""
        order, xp = X.ndim - 1, namespace(X)
        if not xp.any(tensor != 0):  # where starts begin: X need not be read
            return like(np.zeros((X.shape[0], *tensor.shape[order:])), X)
        matrix = matrix_of(tensor, order)
        eta = product(X, matrix, tensor.shape[order:])
        if self.center is not None:
            eta = eta - product(self.center[None, ...], matrix, tensor.shape[order:])
        return eta if scale is None else eta * column(scale, eta.ndim)

    def inners(self, thetas: Sequence[Tucker], X: Array) -> Iterator[Array | None]:
        """``<A, X_i>`` of several points, which share their reads of X.

        As many tensors A at a time as there are samples: they take no more memory than X. None
        where responses have modes of their own, and A need not be formed.
        """
        if X.ndim - 1 < thetas[0].order:
            yield from [None] * len(thetas)
            return
        xp, n = namespace(X), X.shape[0]
        for low in range(0, len(thetas), n):
            tensors = [theta.full() for theta in thetas[low : low + n]]
            found = self.inner(xp.stack(tensors, axis=-1), X)
            yield from (found[:, i] for i in range(len(tensors)))

    def adjoint(self, score: Array, X: Array, scale: Array | None = None) -> Array:
        """``Σ_i X_i ∘ s_i``: the gradient with respect to the full tensor, of summed losses."""
        return self.adjoints([score if scale is None else score * column(scale, score.ndim)], X)[0]

    def adjoints(self, scores: Sequence[Array], X: Array) -> list[Array]:
        """The same for several scores, which share a read of X."""
        xp, rows, response = namespace(X), flat(scores).T, tuple(scores[0].shape[1:])
        total = reshape(matmul(rows, matrix_of(X, 1)), (rows.shape[0], *X.shape[1:]))
        total = self._centred(total, column(xp.sum(rows, axis=1), X.ndim))
        total = xp.reshape(total, (len(scores), *response, *X.shape[1:]))
        first, last = range(len(response)), range(len(response), total.ndim - 1)
        return [xp.permute_dims(total[i, ...], (*last, *first)) for i in range(len(scores))]

    def predict(
        self, theta: Tucker, X: Array, Z: Array | None = None, scale: Array | None = None
    ) -> Array:
        """Return the linear predictors alone."""
        order = X.ndim - 1
        if order == theta.order:  # one product of X with a vector
            return add_linear(theta, self.inner(theta.full(), X, scale), Z)
        factors = theta.factors[:order]
        xbar = project(X, factors, center=self.center, scale=scale, partials=False)[0]
        return _predict(theta, xbar, Z)[1]


@dataclass(frozen=True)
class Direct(Covariate):
    """Noisy copies of A itself: ``η_i = A`` (tensor PCA, section 3.4 of the paper).

    This is the scalar covariate ``x_i = 1``; linear predictors are a batch of one that broadcasts
    over the n responses.

    Examples
    --------
    >>> import numpy as np
    >>> theta = Tucker(np.ones((1, 1)), [np.ones((3, 1)), np.ones((2, 1))])
    >>> Direct().linearise(theta, None)[0].shape
    (1, 3, 2)
    """

    init: ClassVar[str] = "decompose"

    def linearise(
        self,
        theta: Tucker,
        X: Array | None,
        Z: Array | None = None,
        scale: Array | None = None,
        score: Array | None = None,
    ) -> tuple[Array, Pullback]:
        """Return A as a batch of one, and the map from scores (n, p_1, ..., p_d) to gradients."""
        return theta.full()[None, ...], DirectPullback(theta, None)

    def predict(
        self,
        theta: Tucker,
        X: Array | None,
        Z: Array | None = None,
        scale: Array | None = None,
    ) -> Array:
        """Return A as a batch of one."""
        return self.inner(theta.full(), X)

    def inner(self, tensor: Array, X: Array | None, scale: Array | None = None) -> Array:
        """A as a batch of one."""
        return tensor[None, ...]

    def inners(self, thetas: Sequence[Tucker], X: Array | None) -> Iterator[Array | None]:
        """None of each: there is nothing to share."""
        yield from [None] * len(thetas)

    def adjoints(self, scores: Sequence[Array], X: Array | None) -> list[Array]:
        """``Σ_i s_i`` of each."""
        return [namespace(score).sum(score, axis=0) for score in scores]


def _predict(theta: Tucker, xbar: Array, Z: Array | None) -> tuple[Array, Array]:
    """Contract projected covariates with the core; return that, and the linear predictors."""
    order = xbar.ndim - 1
    hbar = product(xbar, matrix_of(theta.core, order), theta.rank[order:])
    eta = multi_mode_dot(hbar, theta.factors[order:], first=1)
    return hbar, add_linear(theta, eta, Z)


def add_linear(theta: Tucker, eta: Array, Z: Array | None) -> Array:
    """Linear predictors with the part of the vector covariates, where there are any."""
    if Z is None:
        return eta
    linear = theta.blocks[-1]
    return eta + product(Z, matrix_of(linear, 1), linear.shape[1:])


def _columns(batch: Array) -> Array:
    """Each sample as a matrix of one column."""
    return reshape(batch, (batch.shape[0], math.prod(batch.shape[1:]), 1))


def _unfolded(batch: Array, mode: int) -> Array:
    """Each sample as a matrix: one mode by the others."""
    first = namespace(batch).moveaxis(batch, mode + 1, 1)
    return reshape(first, (*first.shape[:2], math.prod(first.shape[2:])))
