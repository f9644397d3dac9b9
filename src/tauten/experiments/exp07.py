"""Experiment 7: the methods compared in logistic regression (Figure 7)."""

from .base import Cell, Experiment
from .statements import comparison

CASES = {"N": "normal", "t2.1": "t:2.1"}

EXPERIMENT = Experiment(
    name="exp07",
    title="Experiment 7: comparison of methods, logistic",
    figure="Figure 7",
    grid=tuple(
        Cell("III", 500, "Model III", "", case, covariates=covariates)
        for case, covariates in CASES.items()
    ),
    claims=comparison(light="N"),
    measure="log error",
    methods=("VGD", "RGD"),
    start="data",
    xlabel="covariates",
    note="The loss of the cross-validation is not given: deviance without its largest tenth is "
    "used. The text speaks of four cases and defines two.",
)
