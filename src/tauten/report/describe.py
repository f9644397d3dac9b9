"""Models and arrays in a few lines of plain text, for a terminal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._html import number
from . import words
from .fit import hill_index

SEEN = 2**20  # entries of an array that are looked at


def describe(model: Any) -> str:
    """Return what is known of a model, line by line.

    Parameters
    ----------
    model : estimator, preprocessing step or Tucker
        Whatever :func:`tauten.load` returns.

    Examples
    --------
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, shape=(4, 3), noise="t:1.5", rng=0)
    >>> print(tt.report.describe(tt.TensorRegressor(rank=1).fit(data.X, data.y)))
    TensorRegressor of 300 samples, 4 × 3 each; loss squared
    The rank, 1 × 1, was given.
    ...
    """
    if hasattr(model, "factors"):
        return f"Tucker tensor {words.shape(model.shape)} of rank {words.shape(model.rank)}"
    if not hasattr(model, "tucker_"):
        fitted = f", fitted to samples of shape {words.shape(s)}" if (s := _shape(model)) else ""
        return f"{model!r}{fitted or ', not fitted'}"
    lines = [
        _head(model),
        words.rank_choice(model),
        *words.thresholds(model),
        _end(model),
        _cuts(model),
    ]
    return "\n".join(filter(None, lines))


def _shape(model: Any) -> tuple[int, ...] | None:
    return getattr(model, "sample_shape_", None)


def _head(model: Any) -> str:
    kind, n, shape = type(model).__name__, len(model.influence_), _shape(model)
    if shape is None:
        copies = f"{n} copies of a tensor" if n > 1 else "one tensor"
        return f"{kind} of {copies}, {words.shape(model.tucker_.shape)}"
    told = [f"{kind} of {n} samples, {words.shape(shape)} each"]
    if hasattr(model, "classes_"):
        told.append(f"classes {', '.join(map(str, model.classes_[:10]))}")
    elif model.intercept_.ndim:
        told.append(f"responses {words.shape(model.intercept_.shape)}")
    if len(model.covariate_coef_):
        count = len(model.covariate_coef_)
        told.append(f"{count} covariate{'s'[: count > 1]}")
    return "; ".join([*told, f"loss {model.loss_.name}"])


def _end(model: Any) -> str:
    if model.result_.converged:
        return f"converged after {model.n_iter_} iterations: {model.result_.reason}."
    return f"NOT converged: {model.result_.reason.removeprefix('not converged ')}."


def _cuts(model: Any) -> str:
    cut = model.influence_
    if len(cut) == 1:  # at the end nothing is left of the one gradient, however little was bent
        return ""
    if not cut.any():
        return "No sample was cut."
    return (
        f"{np.mean(cut > words.HALF):.0%} of the samples lost more than half of their gradient, "
        f"most of all sample {int(np.argmax(cut))} (counted from 0)."
    )


def describe_array(array: Any) -> str:
    """Return the type, shape, range and tails of an array, from its first million entries.

    Parameters
    ----------
    array : array-like
        With ``shape`` and ``dtype``; it may lie in a file.

    Examples
    --------
    >>> import numpy as np
    >>> describe_array(np.array(["a", "b", "a"]))
    '<U1 (3,): 2 different values, such as a, b'
    """
    head = f"{array.dtype} {tuple(array.shape)}"
    values = np.ravel(_first(array))
    if not values.size:
        return f"{head}: empty"
    if values.dtype.kind not in "biuf":
        found = np.unique(values.astype(str))
        shown = ", ".join(map(str, found[:5]))
        return f"{head}: {len(found)} different value{'s'[: len(found) > 1]}, such as {shown}"
    values = values.astype(float)
    finite = values[np.isfinite(values)]
    missing = f", {1 - finite.size / values.size:.1%} missing or infinite"
    told = missing if finite.size < values.size else ""
    if not finite.size:
        return f"{head}{told}"
    low, middle, high = np.quantile(finite, [0, 0.5, 1])
    span = f"{head}: {number(low)} to {number(high)}, median {number(middle)}{told}"
    index = hill_index(finite - middle)
    if index is None:  # too few values to tell
        return span
    tails = words.tail("", index).removeprefix(": ").partition(". ")[0].rstrip(".")
    return f"{span}; {tails}"


def _first(array: Any) -> np.ndarray:
    """The first samples of an array, as many as are looked at."""
    if math.prod(array.shape) <= SEEN or not array.shape:
        return np.asarray(array[...])
    rows = max(1, SEEN // math.prod(array.shape[1:]))
    return np.asarray(array[:rows])
