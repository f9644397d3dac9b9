"""Experiment 5: who converges in logistic regression, by the tail of the covariates (Figure 5)."""

from .base import Cell, Experiment, theory_threshold
from .exp01 import LAMBDAS
from .statements import convergence

EXPERIMENT = Experiment(
    name="exp05",
    title="Experiment 5: dependence on the tail of the covariates, logistic",
    figure="Figure 5",
    grid=tuple(
        Cell(
            "III",
            n=10 * 2**m,
            panel="Model III",
            series=lam,
            x=m,
            covariates=f"t:{2 + 2 * lam:g}",
            tau=theory_threshold(10 * 2**m),
        )
        for lam in LAMBDAS
        for m in (1, 2, 3, 4, 5)
    ),
    claims=convergence(),
    measure="settled",
    xlabel="m (n = 10·2ᵐ)",
    slabel="λ",
    quick=lambda cell: cell.x in {1, 3, 5},
)
