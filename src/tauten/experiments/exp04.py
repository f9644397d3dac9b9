"""Experiment 4: the methods compared in regression (Figure 4)."""

from .base import PAPER_METHODS, Cell, Experiment
from .statements import comparison

CASES = {
    "N/N": ("normal", "normal"),
    "N/t1.2": ("normal", "t:1.2"),
    "t2.1/N": ("t:2.1", "normal"),
    "t2.1/t1.2": ("t:2.1", "t:1.2"),
}

EXPERIMENT = Experiment(
    name="exp04",
    title="Experiment 4: comparison with other methods",
    figure="Figure 4",
    grid=tuple(
        Cell(model, 500, f"Model {model}", "", case, covariates=covariates, noise=noise)
        for model in ("I", "II")
        for case, (covariates, noise) in CASES.items()
    ),
    claims=comparison(light="N/N"),
    measure="log error",
    methods=PAPER_METHODS,
    start="data",
    xlabel="covariates / noise",
    note="The loss of the cross-validation is not given: mean absolute residuals are used, and the "
    "thresholds of HUB are chosen in the same way.",
    quick=lambda cell: cell.model == "II" or cell.x in {"N/N", "t2.1/t1.2"},
)
