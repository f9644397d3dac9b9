"""What tests of the estimators share: solvers, robustifiers, samples and naive fits."""

from __future__ import annotations

import math
import string

import numpy as np
from scipy.optimize import least_squares

from tauten.robust import (
    Adaptive,
    Catoni,
    HodgesLehmann,
    Huber,
    MedianOfMeans,
    NormClip,
    Robustifier,
    Shrink,
    Truncate,
)
from tauten.solver import Newton

TIGHT = Newton(n_iter=300, tol=1e-12)
STABLE = Newton(n_iter=300, tol=1e-9)  # for comparisons at 1e-6
NAMES = sorted(Robustifier.registry)
SMOOTH = ["none", "auto", "huber", "cauchy", "truncate", "normclip", "catoni", "shrink"]
SOME = ["none", "auto", "truncate", "normclip"]
INSTANCES = [
    Truncate(2.0),
    Truncate([2.0, 3.0, 3.0]),  # core and factors
    Truncate(np.inf),
    Huber(1.5),
    Shrink(4.0),
    NormClip(5.0),
    MedianOfMeans(5),
    HodgesLehmann(6),
    Catoni(8.0),
    Adaptive(omega=5.0, nu=1.5, tau=10.0),
]
NO_CONVERGENCE = "ignore::sklearn.exceptions.ConvergenceWarning"  # medians of blocks have kinks


def vectors(n=200, p=5, seed=0):
    """Draw covariates, coefficients and linear predictors of a plain regression."""
    rng = np.random.default_rng(seed)
    X, b = rng.normal(size=(n, p)), rng.normal(size=p)
    return X, X @ b + 2, rng


def close(mine, theirs, tol=1e-6):
    """Compare relative to the size of the whole array."""
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape
    gap, size = np.linalg.norm(mine - theirs), np.linalg.norm(theirs)
    assert gap <= tol * max(size, 1e-12), f"relative difference {gap / max(size, 1e-12):.1e}"


def naive_full(vector, shape, rank):
    """Make a tensor of the entries of its core and factors, by one einsum."""
    sizes = [math.prod(rank), *(p * r for p, r in zip(shape, rank, strict=True))]
    core, *factors = np.split(vector, np.cumsum(sizes)[:-1])
    inner, outer = string.ascii_lowercase[: len(rank)], string.ascii_uppercase[: len(rank)]
    pairs = ",".join(o + i for i, o in zip(inner, outer, strict=True))
    factors = [u.reshape(p, r) for u, p, r in zip(factors, shape, rank, strict=True)]
    return np.einsum(f"{inner},{pairs}->{outer}", core.reshape(rank), *factors)


def flat(point):
    return np.concatenate([np.ravel(block) for block in point.blocks])


def naive_fit(X, y, start, *, nu=np.inf):
    """Fit least squares, or Huber's, over the entries of core, factors and intercept by scipy."""
    shape, rank = start.shape, start.rank
    X2, y2 = X.reshape(len(X), -1), y.reshape(len(y), -1)

    def residuals(vector):
        split = vector.size - y2.shape[1]
        A = naive_full(vector[:split], shape, rank).reshape(X2.shape[1], -1)
        return (X2 @ A + vector[split:] - y2).ravel()

    first = np.concatenate([flat(start), y2.mean(axis=0)])
    options = {} if np.isinf(nu) else {"loss": "huber", "f_scale": nu}
    tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
    fit = least_squares(residuals, first, max_nfev=2000, **tight, **options)
    split = first.size - y2.shape[1]
    return naive_full(fit.x[:split], shape, rank), fit.x[split:].reshape(y.shape[1:])
