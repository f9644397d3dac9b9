"""What numbers mean, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._html import number
from ..diagnostics import TailIndex
from .fit import Fit, hill_index

HEAVY, FAIR = 2.0, 4.0  # tail indices below which there is no variance, no fourth moment
MUCH = 0.25  # a share of strongly cut samples that asks for a look
HALF = 0.5
TIGHT = 5  # observations per free parameter below which a fit is fragile


def shape(dimensions: Any) -> str:
    """Return dimensions as people write them."""
    return " × ".join(map(str, dimensions)) if len(dimensions) else "a number"


def tail(name: str, index: TailIndex | None) -> str:
    """Say how heavy a tail is."""
    if index is None:
        return f"{name}: too few values to tell."
    if not np.isfinite(index.alpha) or index.alpha > 20:
        return f"{name}: light tails."
    found = f"tail index {index.alpha:.1f} ± {1.96 * index.stderr:.1f}"
    if index.alpha < HEAVY:
        return f"{name}: very heavy tails, {found}. Not even a variance need exist."
    if index.alpha < FAIR:
        return f"{name}: heavy tails, {found}. There is a variance, but no fourth moment."
    return f"{name}: moderate or light tails, {found}."


def rank_choice(model: Any) -> str:
    """Say how the rank came about."""
    rank = shape(model.rank_)
    path = getattr(model, "rank_path_", None)
    if path is None:
        return f"The rank, {rank}, was given."
    if model.rank == "cv":
        within = "within one standard error of the least robust prediction error in five folds"
        return f"The rank, {rank}, is the simplest of {len(path.ranks)} tried that is {within}."
    others = sorted(path.criterion)
    gap = f"; the next best is {number(others[1] - others[0])} above it" if len(others) > 1 else ""
    tried = f"{len(path.ranks)} ranks" if len(path.ranks) > 1 else "the only one possible"
    return f"The rank, {rank}, has the least robust BIC of {tried}{gap}."


def thresholds(model: Any) -> list[str]:
    """Say which thresholds are in use, and what they were chosen by."""
    robust = model.robust_
    if robust.name == "none":
        return ["Nothing is bent: this is the ordinary mean of the gradients, which is not robust."]
    found = [f"Robust gradient: “{robust.name}”, {_bounds(robust)}."]
    nu, omega, tau = (getattr(robust, name, None) for name in ("nu_", "omega_", "tau_"))
    if omega is not None and hasattr(model, "sample_shape_"):  # PCA has no covariates
        found.append(_shrinking(omega))
    if nu is not None:
        found.append(_bending(robust, nu))
    if tau is not None:
        found.append(_truncating(model, tau))
    return found


def _bounds(robust: Any) -> str:
    if not robust.bounds:
        return "which bounds no influence"
    return f"which bounds the influence of wild {' and '.join(sorted(robust.bounds))}"


def _shrinking(omega: float) -> str:
    if np.isinf(omega):
        return "Covariates are not shrunk (ω = ∞)."
    return f"Covariates of a norm above ω = {number(omega)} are shrunk to it."


def _bending(robust: Any, nu: float) -> str:
    chosen = isinstance(getattr(robust, "nu", None), str)
    why = ", chosen by the estimated variance it leaves" if chosen and robust.name == "auto" else ""
    if np.isinf(nu):
        return f"Residuals are not bent (ν = ∞){why and ': bending would not have paid'}."
    family = getattr(robust, "psi_", robust.name)
    return f"Residuals are bent by the “{family}” score at ν = {number(nu)}{why}."


def _truncating(model: Any, tau: Any) -> str:
    sizes = np.concatenate([np.ravel(t) for t in (tau if isinstance(tau, list) else [tau])])
    rule = getattr(model.robust_, "tau", None)
    why = f", by the rule “{rule}”" if isinstance(rule, str) else ", as given"
    if hasattr(model, "cv_results_"):
        why = f", which has the least error of {len(model.cv_results_.taus)} in five folds"
    if np.isinf(sizes).all():
        return f"Gradient entries are not truncated (τ = ∞){why}."
    low, high = sizes[np.isfinite(sizes)].min(), sizes[np.isfinite(sizes)].max()
    span = number(low) if low == high else f"{number(low)} to {number(high)}, by entry"
    return f"Gradient entries are truncated at τ = {span}{why}."


def warnings_of(fit: Fit) -> list[str]:
    """Return what a reader should not overlook."""
    checks = (_convergence, _cut, _size, _tails, _uncertainty, _rivalry)
    return [warning for check in checks if (warning := check(fit))]


def _convergence(fit: Fit) -> str:
    result = fit.model.result_
    return "" if result.converged else f"The fit has not converged: {result.reason}."


def _cut(fit: Fit) -> str:
    share = float(np.mean(fit.model.influence_ > HALF))
    if share <= MUCH or len(fit.model.influence_) == 1:
        return ""
    return (
        f"{share:.0%} of the samples lost more than half of their gradient: the data are wild, "
        f"or the thresholds too tight, or the model does not fit."
    )


def _size(fit: Fit) -> str:
    free = sum(r * (p - r) for p, r in zip(fit.theta.shape, fit.theta.rank, strict=True))
    free += int(np.prod(fit.theta.rank))
    seen = int(np.isfinite(fit.problem.data.y).sum())
    if seen >= TIGHT * free:
        return ""
    smaller = ", or use a smaller rank" if max(fit.theta.rank) > 1 else ""
    return (
        f"There are {free} free coefficients and only {seen} observed responses: expect a large "
        f"error{smaller}."
    )


def _tails(fit: Fit) -> str:
    if fit.model.robust_.name != "none" or not fit.problem.loss.residual:
        return ""
    index = hill_index(fit.residuals)
    if index is None or index.alpha > HEAVY:
        return ""
    return "The residuals have very heavy tails and this fit is not robust: use robust='auto'."


def _uncertainty(fit: Fit) -> str:
    if fit.problem.data.n == 1 or not isinstance(fit.intervals, str):
        return ""  # of a single tensor there never are any, and the section says so
    return f"No intervals: {fit.intervals}."


def _rivalry(fit: Fit) -> str:
    found = fit.held_out
    if found is None:
        return ""
    if isinstance(found, str):
        return f"Held-out performance could not be computed: {found}."
    _, ours, theirs = found.summaries()[0]
    if ours <= theirs * 1.05:
        return ""
    return (
        f"On data left out, robust='{found.rival}' predicts better: a {found.summaries()[0][0]} of "
        f"{number(theirs)}, against {number(ours)}."
    )
