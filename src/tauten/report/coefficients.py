"""The sections on the coefficients and their uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import plot
from .._html import Html, paragraph, table
from . import words
from .fit import Fit
from .pictures import joined, picture

MOST_COEFFICIENTS = 30
MOST_FACTORS = 6


def coefficients(fit: Fit) -> Html:
    """The coefficient tensor and its factors."""
    shape = words.shape(fit.theta.shape)
    alt = f"The coefficient tensor, {shape}: red above zero, blue below."
    found = [
        picture(lambda ax: plot.coefficients(fit.model, ax=ax, names=fit.mode_names), alt, (7, 5))
    ]
    if fit.theta.order > 1:
        found.append(_loadings(fit))
    return joined(found)


def _loadings(fit: Fit) -> Html:
    shown = [k for k, p in enumerate(fit.theta.shape) if p > 1][:MOST_FACTORS]
    text = "The factors: one picture per mode, one colour per column. A column's sign is arbitrary."
    if fit.loadings is not None:
        text += " Whiskers and bands: 95% intervals of the column space, after rotation to the fit."

    def draw(k: int) -> Html:
        options: dict[str, Any] = {"names": fit.mode_names, "intervals": fit.loadings}
        alt = f"Loadings of {fit.mode_names[k]}."
        return picture(lambda ax: plot.loadings(fit.model, k, ax=ax, **options), alt, (7, 3.3))

    return paragraph(text) + joined(draw(k) for k in shown)


def uncertainty(fit: Fit) -> Html:
    """Intervals of the coefficients."""
    found = fit.intervals
    if isinstance(found, str):
        return paragraph(f"There are no intervals: {found}.")
    certain = found.lower * found.upper > 0
    text = (
        f"Of {certain.size} coefficients, {certain.mean():.0%} have a {found.level:.0%} interval "
        f"(by the {found.method}) that does not hold zero; about {1 - found.level:.0%} would by "
        f"chance alone. The others are left blank in the picture of an image or a tensor."
    )
    alt = f"Coefficients whose interval does not hold zero: {certain.mean():.0%} of them."
    options: dict[str, Any] = {"names": fit.mode_names, "intervals": found}
    drawn = picture(lambda ax: plot.coefficients(fit.model, ax=ax, **options), alt, (7, 5))
    order = np.argsort(-np.abs(found.estimate), axis=None)[:MOST_COEFFICIENTS]
    rows = []
    for k in order:
        place = np.unravel_index(k, found.estimate.shape)
        values = (found.estimate, found.stderr, found.lower, found.upper)
        rows.append([", ".join(map(str, map(int, place))), *(float(v.flat[k]) for v in values)])
    columns = [", ".join(fit.mode_names), "estimate", "standard error", "lower", "upper"]
    return joined([paragraph(text), drawn, table(columns, rows, "The largest coefficients.")])
