"""The section on who was cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import plot
from .._html import Html, paragraph, table
from . import words
from .fit import Fit
from .pictures import joined, picture


def influence(fit: Fit) -> Html:
    """Who was cut: a sortable table."""
    share = fit.model.influence_
    if len(share) == 1:
        return paragraph("There is one tensor, and so nobody to compare it with.")
    if not share.any():
        return paragraph("No sample lost any of its gradient.")
    order = np.argsort(-share, kind="stable")[: fit.most]
    named = fit.sample_names != [str(k) for k in range(len(share))]
    numbers = [[int(k)] if named else [] for k in order]
    rows = [
        [fit.sample_names[k], *place, 100 * float(share[k]), *_numbers_of(fit, k)]
        for k, place in zip(order, numbers, strict=True)
    ]
    columns = ["sample", *(["number"] if named else []), "cut away, %", *_number_names(fit)]
    text = f"{np.mean(share > 0):.0%} of the samples lost some of their gradient, "
    text += f"{np.mean(share > words.HALF):.0%} more than half."
    caption = f"The {len(rows)} samples that were cut most. Press a heading to sort."
    alt = f"The samples that were cut most; first {fit.sample_names[order[0]]}."
    drawn = picture(
        lambda ax: plot.influence(fit.model, ax=ax, sample_names=fit.sample_names), alt, (6.5, 5.0)
    )
    return joined([paragraph(text), table(columns, rows, caption), drawn])


def _scalar(fit: Fit) -> bool:
    return fit.problem.data.y.ndim == 1


def _number_names(fit: Fit) -> list[str]:
    response = "class" if hasattr(fit.model, "classes_") else "response"
    names = [response, "residual"] if _scalar(fit) else ["size of residual"]
    return names if fit.direct else [*names, "norm of X"]


def _numbers_of(fit: Fit, k: int) -> list[Any]:
    residual = fit.residuals[k]
    found: list[Any] = [float(np.sqrt(np.nansum(residual**2)))]
    if _scalar(fit):
        y, classes = float(fit.problem.data.y[k]), getattr(fit.model, "classes_", None)
        found = [y if classes is None else str(classes[int(y)]), float(residual)]
    X = fit.problem.data.X
    return found if X is None else [*found, float(np.linalg.norm(X[k]))]
