"""Experiment 10: the methods compared in PCA (Figure 10)."""

from .base import PAPER_METHODS, Cell, Experiment
from .statements import comparison

CASES = {"N": "normal", "t1.2": "t:1.2"}

EXPERIMENT = Experiment(
    name="exp10",
    title="Experiment 10: comparison of methods, PCA",
    figure="Figure 10",
    grid=tuple(Cell("IV", 500, "Model IV", "", case, noise=noise) for case, noise in CASES.items()),
    claims=comparison(light="N"),
    measure="log error",
    methods=PAPER_METHODS,
    start="data",
    xlabel="noise",
    note="HUB is not defined for PCA: entries of the residual tensors are truncated. The loss of "
    "the cross-validation is not given: mean absolute residuals of tensors left out are used.",
)
