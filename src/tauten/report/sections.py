"""The sections of the page, in order. Each takes a fit and returns HTML, empty to be left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import plot
from .._html import Html, code, definitions, element, number, paragraph, table
from .._versions import versions
from . import words
from .coefficients import coefficients, uncertainty
from .fit import Fit
from .influence import influence
from .pictures import joined, picture
from .tails import tails


def lead(fit: Fit) -> Html:
    """The page in two sentences."""
    n, model = fit.problem.data.n, fit.model
    if fit.direct:
        copies = f"{n} noisy copies of a tensor" if n > 1 else "one noisy tensor"
        what = f"The low-rank part of {copies}, {words.shape(fit.theta.shape)}"
    else:
        what = f"{n} samples, {words.shape(model.sample_shape_)} each"
    end = "converged" if model.result_.converged else "did not converge"
    return paragraph(
        f"{what}; rank {words.shape(fit.theta.rank)}; robust gradient “{model.robust_.name}”. "
        f"The fit {end} after {model.n_iter_} iterations."
    )


def cautions(fit: Fit) -> Html:
    """Warnings in words."""
    found = words.warnings_of(fit)
    if not found:
        return paragraph("None: nothing in this fit asks for a warning.")
    return joined(element("p", text, class_="warning") for text in found)


def fitted(fit: Fit) -> Html:
    """What was fitted, and on what."""
    model, data = fit.model, fit.problem.data
    pairs: list[tuple[str, object]] = [("Estimator", type(model).__name__), ("Samples", data.n)]
    if fit.direct:
        missing = np.isnan(data.y).mean()
        pairs += [("Tensor", words.shape(fit.theta.shape)), ("Missing entries", f"{missing:.1%}")]
    else:
        pairs += [("Each sample", words.shape(model.sample_shape_)), ("Response", _response(fit))]
    extra = [name.replace("_", " ") for name in fit.data]
    pairs += [
        ("Modes", ", ".join(fit.mode_names)),
        ("Loss", model.loss_.name),
        ("Given as well", ", ".join(extra) or "nothing"),
        ("Size of A", f"Frobenius norm {number(fit.theta.norm())}"),
    ]
    return definitions(pairs)


def _response(fit: Fit) -> str:
    if fit.problem.loss.classes:
        classes = fit.model.classes_.tolist()
        shown = ", ".join(map(str, classes[:10])) + (", …" if len(classes) > 10 else "")
        return f"{len(classes)} classes: {shown}"
    return words.shape(fit.problem.data.y.shape[1:])


def choices(fit: Fit) -> Html:
    """Rank and thresholds, and why."""
    found = [paragraph(words.rank_choice(fit.model))]
    found.append(element("ul", *(element("li", text) for text in words.thresholds(fit.model))))
    if len(getattr(getattr(fit.model, "rank_path_", None), "ranks", [])) > 1:
        alt = f"The ranks tried, best first. {words.rank_choice(fit.model)}"
        found.append(picture(lambda ax: plot.rank_path(fit.model, ax=ax), alt, (6.5, 3.8)))
    if hasattr(fit.model, "cv_results_"):
        alt = "Cross-validated error of each threshold tried, with the chosen one marked."
        found.append(picture(lambda ax: plot.threshold_path(fit.model, ax=ax), alt))
    return joined(found)


def convergence(fit: Fit) -> Html:
    """Convergence, and what was truncated on the way."""
    result = fit.model.result_
    found = [paragraph(f"{result.reason[:1].upper()}{result.reason[1:]}.")]
    if result.history:
        last = result.history[-1]
        alt = f"Relative change of A in each iteration, {last.change:.1e} in the last."
        found.append(picture(lambda ax: plot.convergence(fit.model, ax=ax), alt))
        share = max(last.truncated)
        alt = f"Share of gradient entries truncated in each iteration; in the last, {share:.1%}."
        found.append(picture(lambda ax: plot.truncation(fit.model, ax=ax), alt))
    return joined(found)


def held_out(fit: Fit) -> Html:
    """The fit beside the same model without robustness."""
    found = fit.held_out
    if found is None:
        return Html("")
    if isinstance(found, str):
        return paragraph(f"It could not be computed: {found}.")
    rival = {"none": "not robust", "auto": "robust='auto'"}[found.rival]
    what = "entries" if fit.direct and fit.problem.data.n == 1 else "samples"
    text = (
        f"Both fits, with the same rank and the same loss (“{fit.model.loss_.name}”), were made "
        f"{fit.folds} times, each time without one of {fit.folds} parts of the data, and judged on "
        f"that part. This fit predicts {found.wins:.0%} of the {len(found.ours)} {what} better."
    )
    caption = "Loss on data left out; smaller is better. Wild data dominate a plain mean."
    columns = ["summary", "this fit", f"the same, {rival}"]
    return paragraph(text) + table(columns, found.summaries(), caption, sortable=False)


def reproduce(fit: Fit) -> Html:
    """Versions, and the code that repeats the fit."""
    given = ["X"] if fit.direct else ["X", "y"]
    given += [f"{name}={name}" for name in fit.data]
    call = ", ".join(given)
    lines = [
        "import tauten as tt",
        "",
        f"model = {_source(fit.model)}",
        f"model.fit({call})",
        f'model.report("report.html", {call})',
    ]
    return code("\n".join(lines)) + code(versions())


def _source(value: Any) -> str:
    """Code that makes a parameter, or the model itself, with what differs from the defaults."""
    if not hasattr(value, "get_params"):
        return repr(value)
    package = type(value).__module__.split(".")[1]  # where the public name lives, for our own
    home = "tt." if package == "estimators" else f"tt.{package}."
    defaults = inspect.signature(type(value)).parameters
    given = [
        f"{name}={_source(part)}"
        for name, part in value.get_params(deep=False).items()
        if repr(part) != repr(defaults[name].default)
    ]
    return f"{home}{type(value).__name__}({', '.join(given)})"


SECTIONS: tuple[tuple[str, Callable[[Fit], Html]], ...] = (
    ("Warnings", cautions),
    ("What was fitted", fitted),
    ("Rank and thresholds", choices),
    ("How heavy the tails are", tails),
    ("Convergence", convergence),
    ("Who was cut", influence),
    ("Coefficients", coefficients),
    ("Uncertainty", uncertainty),
    ("On data left out", held_out),
    ("To repeat it", reproduce),
)
