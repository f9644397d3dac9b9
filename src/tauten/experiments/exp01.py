"""Experiment 1: who converges, by the tail of the covariates (Figure 1)."""

from .base import Cell, Experiment, theory_threshold
from .statements import convergence

LAMBDAS = (0.1, 0.4, 0.7, 1.0, 1.3, 1.6)

EXPERIMENT = Experiment(
    name="exp01",
    title="Experiment 1: dependence on the tail of the covariates",
    figure="Figure 1",
    grid=tuple(
        Cell(
            model,
            n=10 * 2**m,
            panel=f"Model {model}",
            series=lam,
            x=m,
            covariates=f"t:{2 + 2 * lam:g}",
            noise="t:1.5",
            tau=theory_threshold(10 * 2**m),
        )
        for model in ("I", "II")
        for lam in LAMBDAS
        for m in (1, 2, 3, 4, 5)
    ),
    claims=convergence(),
    measure="settled",
    xlabel="m (n = 10·2ᵐ)",
    slabel="λ",
    quick=lambda cell: cell.x in {1, 3, 5},
)
