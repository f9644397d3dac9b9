"""The fit report: one HTML page that says what was fitted, why so, and how far to trust it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _html
from .._checks import check_number
from .._files import check_writable
from .describe import describe, describe_array
from .fit import Fit
from .sections import SECTIONS, lead

__all__ = ["describe", "describe_array", "write"]


def write(
    model: Any,
    path: str | os.PathLike[str],
    X: Any,
    y: Any = None,
    *,
    covariates: Any = None,
    sample_weight: Any = None,
    sample_names: Sequence[object] | None = None,
    mode_names: Sequence[str] | None = None,
    title: str | None = None,
    folds: int = 3,
    most: int = 50,
) -> Path:
    """Write the report of a fitted model; also ``model.report(path, X, y)``.

    The page is one file that loads nothing, and follows light and dark. It needs matplotlib.

    Parameters
    ----------
    model : fitted estimator
    path : str or path
        Where to write it; a file that exists is replaced, once the new one is complete.
    X, y, covariates, sample_weight
        As given to ``fit``: the model keeps no data. For PCA, X is Y.
    sample_names : sequence, optional
        One name per sample; by default their numbers, from 0.
    mode_names : sequence of str, optional
        One name per mode of the coefficient tensor.
    title : str, optional
    folds : int
        Held-out performance is by cross-validation in so many folds, which takes twice as many
        fits; 0 leaves it out.
    most : int
        Longest table of samples.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tauten as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3, size=(120, 5, 4))
    >>> y = X[:, :2].sum(axis=(1, 2)) + rng.standard_t(1.5, size=120)
    >>> model = tt.TensorRegressor(rank=1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model.report(f"{folder}/report.html", X, y, folds=0)
    ...     "Who was cut" in page.read_text(encoding="utf-8")
    True
    """
    check_possible(path, folds)
    import matplotlib as mpl
    import matplotlib.style

    data = {"covariates": covariates, "sample_weight": sample_weight}
    data = {name: value for name, value in data.items() if value is not None}
    names: dict[str, Any] = {"sample_names": sample_names, "mode_names": mode_names}
    fit = Fit.of(model, X, y, data, **names, folds=folds, most=most)
    with mpl.rc_context():
        mpl.style.use(["default", _html.FIGURE_STYLE])
        sections = [(heading, make(fit)) for heading, make in SECTIONS]
    page = _html.page(
        title or f"{type(model).__name__}: report of a fit",
        [(heading, body) for heading, body in sections if body],
        lead=lead(fit),
    )
    return _html.write(path, page)


def check_possible(path: str | os.PathLike[str], folds: int) -> None:
    """Raise if a report could not be drawn or written: before a fit, or the report's own work."""
    check_number("folds", folds, integer=True, zero=True)
    if folds == 1:
        raise ValueError("folds must be 0, for none, or at least 2; got 1")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('a report needs matplotlib: pip install "tauten[plot]"') from error
    check_writable(path)
