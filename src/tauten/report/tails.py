"""The section on tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import plot
from .._html import Html, element, number
from . import words
from .fit import Fit, hill_index
from .pictures import joined, picture


def tails(fit: Fit) -> Html:
    """How heavy the tails are."""
    names = {"Per-sample gradients": fit.gradient_sizes}
    if fit.problem.loss.residual:
        names = {"Residuals": fit.residuals} | names
    told = [element("li", words.tail(name, hill_index(x))) for name, x in names.items()]
    if fit.kurtosis is not None and np.isfinite(fit.kurtosis).any():
        middle, top = np.nanmedian(fit.kurtosis), np.nanmax(fit.kurtosis)
        text = f"Covariates: median kurtosis {number(middle)}, largest {number(top)}"
        told.append(element("li", f"{text} (a normal has 3)."))
    found = [element("ul", *told)]
    if fit.problem.loss.residual and np.isfinite(fit.residuals).sum() > 10:
        for draw, alt in _residual_pictures(fit):
            found.append(picture(draw, alt, (5.6, 4.0)))
    sizes = fit.gradient_sizes
    if np.count_nonzero(sizes) >= 20:
        alt = "Hill's tail index of the gradients' norms against the share of values it uses."
        draw = lambda ax: plot.hill(sizes, ax=ax, name="gradient norms")  # noqa: E731
        found.append(picture(draw, alt, (6.2, 3.6)))
    if fit.kurtosis is not None and np.isfinite(fit.kurtosis).any():
        found.append(_kurtosis_picture(fit))
    return joined(found)


def _residual_pictures(fit: Fit) -> list[tuple[Callable[[Any], Any], str]]:
    x = fit.residuals
    return [
        (
            lambda ax: plot.qq(x, ax=ax, name="residual"),
            "Quantiles of the residuals against those of a normal.",
        ),
        (
            lambda ax: plot.survival(x, ax=ax, name="residual"),
            "Share of residuals larger than each size, on two log scales.",
        ),
    ]


def _kurtosis_picture(fit: Fit) -> Html:
    X, names = fit.problem.data.X, fit.mode_names[: fit.kurtosis.ndim]  # type: ignore[union-attr]
    alt = "Kurtosis of each covariate over the samples."
    return picture(lambda ax: plot.kurtosis(X, ax=ax, names=names), alt, (6.2, 4.6))
