"""Checks of what users pass in: each error names the argument, what is expected and what came."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ._array import Array, is_foreign, namespace, quiet
from ._labels import Labels
from .data import in_memory, lazy
from .data.rows import WORTH_THREADS
from .data.threads import BLAS, Team, available_threads

SOME = 5_000  # entries that tell what is typical


def check_tensor(
    name: str,
    value: Any,
    *,
    missing: bool = False,
    min_ndim: int = 1,
    anywhere: bool = False,
    finite: bool = True,
    n_jobs: int | None = None,
) -> Array:
    """Return a finite real array of floats, without a copy where it already is one.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    value : array-like
    missing : bool
        Whether nan is allowed, as a missing value.
    min_ndim : int
        Fewest axes.
    anywhere : bool
        Whether an array may stay where it is: on disk, in a dask cluster (both are checked for
        finite numbers when they are read), or in another array library. Else it becomes numpy's.
    finite : bool
        Whether to read a numpy array for numbers that are not finite; if not, :func:`check_norms`
        has to follow.
    n_jobs : int, optional
        Most threads that look for numbers that are not finite.
    """
    if value is None:
        raise ValueError(
            f"{name} must be an array of numbers; got None. Expected array-like (array or "
            f"non-string sequence), got None"
        )
    array = _find(name, value, missing) if anywhere else None
    if array is None:
        array = _as_numpy(name, in_memory(value))
        if finite:
            _check_finite(name, array, missing, n_jobs)
    if array.ndim < min_ndim:
        raise ValueError(
            f"{name} must have at least {min_ndim} axes; got shape {array.shape}. Reshape your "
            f"data: axis 0 is for the samples"
        )
    if math.prod(array.shape) == 0:
        raise ValueError(
            f"{name} must hold at least one sample and one entry per sample; got {array.shape[0]} "
            f"sample(s), {math.prod(array.shape[1:])} feature(s) (shape={array.shape}) while a "
            f"minimum of 1 is required."
        )
    return array


def _find(name: str, value: Any, missing: bool) -> Array | None:
    """An array that is not numpy's own in memory, or None."""
    if not is_foreign(value):
        return lazy(name, value)
    xp = namespace(value)
    if not xp.isdtype(value.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"{name} must be an array of numbers; got dtype {value.dtype}")
    if value.dtype not in (xp.float32, xp.float64):
        value = xp.astype(value, xp.float64)
    if bool(xp.any(xp.isinf(value) if missing else ~xp.isfinite(value))):
        what = "infinity" if missing else "NaN or infinity"
        raise ValueError(f"{name} must be an array of numbers: it contains {what}")
    return value


def _as_numpy(name: str, value: Any) -> np.ndarray:
    with _naming(name), quiet():  # numbers may be too large for a float
        return check_array(
            value,
            dtype=[np.float64, np.float32],
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            ensure_all_finite=False,
            input_name=name,
        )


def _check_finite(name: str, array: np.ndarray, missing: bool, n_jobs: int | None) -> None:
    with quiet():  # infinities of both signs make it warn before it finds them
        finite = _finite_sums(array, n_jobs)
    if not finite:
        _assert_finite(name, array, missing)


def _assert_finite(name: str, array: np.ndarray, missing: bool = False) -> None:
    with _naming(name), quiet():
        assert_all_finite(array, allow_nan=missing, input_name=name)


def check_norms(name: str, array: np.ndarray, norms: np.ndarray) -> None:
    """Raise unless an array is finite, as it is where the norms of its samples are."""
    if not np.isfinite(norms).all():
        _assert_finite(name, array)  # its entries may be finite all the same, if they are huge


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors of scikit-learn, whose messages may not name the argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        why = str(error).partition("\n")[0].rstrip(".")  # scikit-learn goes on about its own models
        why = re.sub(r"np\.str_\((.*)\)", r"\1", why)
        raise kind(f"{name} must be an array of numbers: {why}{_advice(why)}") from error


def _finite_sums(array: np.ndarray, n_jobs: int | None) -> bool:
    """Whether the sums of an array's parts are finite, as they are not where an entry is not."""
    if array.nbytes < WORTH_THREADS:
        return bool(np.isfinite(array.sum()))
    team = Team(available_threads(n_jobs))
    with BLAS.single():
        return all(team.map(_finite_sum, np.array_split(array, team.size)))


def _finite_sum(array: np.ndarray) -> bool:
    """The same of a large array, or a part: squares are summed as fast as they are read."""
    if not array.flags.forc:
        return bool(np.isfinite(array.sum()))
    entries = array.ravel(order="K")
    return bool(np.isfinite(np.dot(entries, entries)))


def _advice(why: str) -> str:
    """What to do about entries that are no numbers."""
    if "string" in why:
        return ". Code text as numbers; classes are for TensorClassifier"
    if "NaN" in why or "infinity" in why:
        return ". Fill in or leave out such entries or samples; nan is missing in TensorPCA only"
    return ""


def check_samples(estimator: Any, X: Any, **options: Any) -> Array:
    """Return samples like those that an estimator was fitted to: in shape, names and labels.

    The options are those of :func:`check_tensor`.
    """
    check_is_fitted(estimator)
    samples = check_tensor("X", X, min_ndim=2, **options)
    shape, kind = estimator.sample_shape_, type(estimator).__name__
    if estimator.labels_ is not None:
        estimator.labels_.first(len(shape)).check("X", Labels.of(X))
    if tuple(samples.shape[1:]) != shape:
        alone = ". A single sample is X[None]" if tuple(samples.shape) == shape else ""
        raise ValueError(
            f"X must have samples of shape {shape}, as in fit; got {samples.shape[1:]}: X has "
            f"{samples.shape[1]} features, but {kind} is expecting {shape[0]} features as input"
            f"{alone}"
        )
    validate_data(estimator, X, skip_check_array=True, reset=False)
    return samples


def check_size(name: str, array: np.ndarray) -> None:
    """Raise unless entries are typically of a size whose powers are still numbers.

    A few entries may be of any size: that is what robust estimates are for.
    """
    if array.size > SOME:  # drawn, not strided: that may meet one channel of an image only
        drawn = np.random.default_rng(0).integers(array.size, size=SOME)
        array = array[np.unravel_index(drawn, array.shape)]  # which need not be in one piece
    sizes = np.abs(array[np.isfinite(array) & (array != 0)])
    typical = float(np.median(sizes)) if sizes.size else 1.0
    largest = float(np.finfo(array.dtype).max) ** 0.25  # so that its fourth power is a number
    if not 1 / largest <= typical <= largest:
        raise ValueError(
            f"{name} must have entries of a size between {1 / largest:.0e} and {largest:.0e}; got "
            f"{typical:.0e} (median). Rescale {name}, for example with TensorScaler"
        )


def check_same_length(X: Array, y: Array, name: str = "y") -> None:
    """Raise unless two arrays have the same number of samples."""
    if X.shape[0] != y.shape[0]:
        raise ValueError(
            f"X and {name} must have the same number of samples along axis 0; got "
            f"inconsistent numbers of samples {X.shape[0]} and {y.shape[0]}"
        )


def check_covariates(covariates: Any, X: Array, n_jobs: int | None = None) -> Array:
    """Return vector covariates (n, c) of the samples."""
    Z = check_tensor("covariates", covariates, min_ndim=2, anywhere=True, n_jobs=n_jobs)
    if Z.ndim > 2:
        raise ValueError(f"covariates must have shape (n, c), one row per sample; got {Z.shape}")
    check_same_length(X, Z, "covariates")
    return Z


def check_weight(weight: Any, n: int) -> np.ndarray | None:
    """Return the weights of n samples, in memory; None where all count the same."""
    if weight is None:
        return None
    rows = np.broadcast_to(0.0, (n,))  # stands for the samples, which may not be in memory
    weight = _check_sample_weight(in_memory(weight), rows, ensure_non_negative=True)
    if not weight.any():  # scikit-learn itself refuses these in its later versions
        raise ValueError("sample_weight must hold at least one non-zero number")
    return weight


def check_classes(y: Any) -> np.ndarray:
    """Return class labels (n,) that can be sorted."""
    y = column_or_1d(in_memory(y), warn=True)
    assert_all_finite(y, input_name="y")
    try:
        check_classification_targets(y)
        np.unique(y)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one kind, to be sorted: {error}") from error
    except ValueError as error:
        why = str(error).partition(". ")[0]
        raise ValueError(f"y must hold a class per sample: {why}. Is it a regression?") from error
    return y


def check_number(name: str, value: Any, *, integer: bool = False, zero: bool = False) -> None:
    """Raise unless a number is positive, or zero where that is allowed."""
    if not isinstance(value, Integral if integer else Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {'an integer' if integer else 'a number'}; got {value!r}")
    if not (float(value) > 0 or (zero and value == 0)):
        raise ValueError(f"{name} must {'not be negative' if zero else 'be positive'}; got {value}")


def check_generator(random_state: Any) -> np.random.Generator:
    """Return the generator of what is random in a fit: always the same, unless asked otherwise."""
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be a whole number from 0 on, a numpy Generator or None; got "
            f"{random_state!r}"
        ) from error


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Return Tucker ranks that fit a shape.

    One int stands for the largest feasible rank up to it in every mode; one int per mode is taken
    at its word and must be feasible: ``1 ≤ r_k ≤ min(p_k, Π_{j≠k} r_j)``.

    Examples
    --------
    >>> check_rank(4, (10, 10, 3))
    (4, 4, 3)
    """
    rank = rank.tolist() if isinstance(rank, np.ndarray) else rank
    if isinstance(rank, Integral) and not isinstance(rank, bool):
        if rank < 1:
            raise ValueError(f"rank must be at least 1; got {rank}")
        return feasible_rank([min(int(rank), p) for p in shape])
    entries = rank if isinstance(rank, Sequence) else [rank]
    if isinstance(rank, Real) or not all(_is_whole(r) for r in entries):
        raise TypeError(
            f"rank must be an int or one int per mode, or for an estimator 'auto' or 'cv'; got "
            f"{rank!r}"
        )
    if len(rank) != len(shape):
        raise ValueError(
            f"rank must have one entry per mode of the coefficient tensor, whose shape is "
            f"{tuple(shape)} (covariate modes first, then response modes); got {tuple(rank)}"
        )
    ranks = tuple(int(r) for r in rank)
    for k, (r, p) in enumerate(zip(ranks, shape, strict=True)):
        if not 1 <= r <= p:
            raise ValueError(
                f"rank of mode {k + 1} must be a whole number from 1 to its dimension {p}; got {r}"
            )
        others = math.prod(ranks) // r
        if r > others and len(ranks) > 1:
            raise ValueError(
                f"rank of mode {k + 1} is {r}, larger than the product {others} of the others: no "
                f"tensor has ranks {ranks}. Use at most {others}"
            )
    return ranks


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and value % 1 == 0


def feasible_rank(rank: Sequence[int]) -> tuple[int, ...]:
    """Lower ranks until none exceeds the product of the others.

    Examples
    --------
    >>> feasible_rank((5, 2, 2))
    (4, 2, 2)
    """
    ranks = list(rank)
    while len(ranks) > 1:
        capped = [min(r, math.prod(ranks) // r) for r in ranks]
        if capped == ranks:
            break
        ranks = capped
    return tuple(ranks)


def check_theta(theta: Any, shape: Sequence[int], name: str = "theta0") -> None:
    """Raise unless a starting point is a Tucker tensor of the right shape."""
    if not hasattr(theta, "factors"):
        raise TypeError(f"{name} must be a tauten.Tucker; got {type(theta).__name__}")
    if theta.shape != tuple(shape):
        raise ValueError(
            f"{name} must have the shape {tuple(shape)} of the coefficient tensor (covariate modes "
            f"first, then response modes); got {theta.shape}"
        )
    if not all(np.all(np.isfinite(block)) for block in theta.blocks):
        raise ValueError(f"{name} must be finite; it holds nan or inf")
