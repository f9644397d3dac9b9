"""Work for other processes, in a module that they can import."""

import numpy as np

import tauten as tt
from tauten.data import available_threads

LARGE = (2200, 10, 10, 10)  # 17 MB: worth several threads


def problem(seed, shape=LARGE):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    y = X[:, :2].reshape(shape[0], -1).sum(axis=1) + rng.standard_t(2, size=shape[0])
    return X, y


def fit(seed, shape=LARGE, **options):
    model = tt.TensorRegressor(rank=1, robust="truncate:tau=20", **options)
    return model.fit(*problem(seed, shape))


def bits(seed, shape=LARGE, **options):
    """Everything that a fit finds, to the last bit."""
    model = fit(seed, shape, **options)
    return model.coef_.tobytes() + model.intercept_.tobytes() + model.influence_.tobytes()


def threads(_=None):
    return available_threads()
