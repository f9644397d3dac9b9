"""The sections of the page, in order. Each takes a fit and returns HTML, empty to be left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import plot
from .._html import (
    Html,
    code,
    definitions,
    element,
    escape,
    figure,
    number,
    paragraph,
    table,
)
from .._versions import versions
from . import words
from .fit import Fit, hill_index

MOST_COEFFICIENTS = 30
MOST_FACTORS = 6


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
    return _joined(element("p", text, class_="warning") for text in found)


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
        found.append(_picture(lambda ax: plot.rank_path(fit.model, ax=ax), alt, (6.5, 3.8)))
    if hasattr(fit.model, "cv_results_"):
        alt = "Cross-validated error of each threshold tried, with the chosen one marked."
        found.append(_picture(lambda ax: plot.threshold_path(fit.model, ax=ax), alt))
    return _joined(found)


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
            found.append(_picture(draw, alt, (5.6, 4.0)))
    sizes = fit.gradient_sizes
    if np.count_nonzero(sizes) >= 20:
        alt = "Hill's tail index of the gradients' norms against the share of values it uses."
        draw = lambda ax: plot.hill(sizes, ax=ax, name="gradient norms")  # noqa: E731
        found.append(_picture(draw, alt, (6.2, 3.6)))
    if fit.kurtosis is not None and np.isfinite(fit.kurtosis).any():
        found.append(_kurtosis_picture(fit))
    return _joined(found)


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
    return _picture(lambda ax: plot.kurtosis(X, ax=ax, names=names), alt, (6.2, 4.6))


def convergence(fit: Fit) -> Html:
    """Convergence, and what was truncated on the way."""
    result = fit.model.result_
    found = [paragraph(f"{result.reason[:1].upper()}{result.reason[1:]}.")]
    if result.history:
        last = result.history[-1]
        alt = f"Relative change of A in each iteration, {last.change:.1e} in the last."
        found.append(_picture(lambda ax: plot.convergence(fit.model, ax=ax), alt))
        share = max(last.truncated)
        alt = f"Share of gradient entries truncated in each iteration; in the last, {share:.1%}."
        found.append(_picture(lambda ax: plot.truncation(fit.model, ax=ax), alt))
    return _joined(found)


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
    picture = _picture(
        lambda ax: plot.influence(fit.model, ax=ax, sample_names=fit.sample_names), alt, (6.5, 5.0)
    )
    return _joined([paragraph(text), table(columns, rows, caption), picture])


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


def coefficients(fit: Fit) -> Html:
    """The coefficient tensor and its factors."""
    shape = words.shape(fit.theta.shape)
    alt = f"The coefficient tensor, {shape}: red above zero, blue below."
    found = [
        _picture(lambda ax: plot.coefficients(fit.model, ax=ax, names=fit.mode_names), alt, (7, 5))
    ]
    if fit.theta.order > 1:
        found.append(_loadings(fit))
    return _joined(found)


def _loadings(fit: Fit) -> Html:
    shown = [k for k, p in enumerate(fit.theta.shape) if p > 1][:MOST_FACTORS]
    text = "The factors: one picture per mode, one colour per column. A column's sign is arbitrary."
    if fit.loadings is not None:
        text += " Whiskers and bands: 95% intervals of the column space, after rotation to the fit."

    def draw(k: int) -> Html:
        options: dict[str, Any] = {"names": fit.mode_names, "intervals": fit.loadings}
        alt = f"Loadings of {fit.mode_names[k]}."
        return _picture(lambda ax: plot.loadings(fit.model, k, ax=ax, **options), alt, (7, 3.3))

    return paragraph(text) + _joined(draw(k) for k in shown)


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
    picture = _picture(lambda ax: plot.coefficients(fit.model, ax=ax, **options), alt, (7, 5))
    order = np.argsort(-np.abs(found.estimate), axis=None)[:MOST_COEFFICIENTS]
    rows = []
    for k in order:
        place = np.unravel_index(k, found.estimate.shape)
        values = (found.estimate, found.stderr, found.lower, found.upper)
        rows.append([", ".join(map(str, map(int, place))), *(float(v.flat[k]) for v in values)])
    columns = [", ".join(fit.mode_names), "estimate", "standard error", "lower", "upper"]
    return _joined([paragraph(text), picture, table(columns, rows, "The largest coefficients.")])


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


def _picture(draw: Callable[[Any], Any], alt: str, size: tuple[float, float] = (6.2, 3.6)) -> Html:
    from matplotlib.figure import Figure

    fig = Figure(figsize=size, layout="constrained")
    draw(fig.subplots())
    return figure(fig, alt, alt)


def _joined(parts: Any) -> Html:
    return Html("\n".join(escape(part) for part in parts))


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
