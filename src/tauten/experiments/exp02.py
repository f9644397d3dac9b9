"""Experiment 2: how the error falls with n, by the tail of the noise (Figure 2)."""

from .base import Cell, Experiment, theory_threshold
from .statements import rates

EPSILONS = (0.1, 0.4, 0.7, 1.0, 1.3, 1.6)
COVARIATES = {"normal": "N(0, 1)", "t:3": "t₃"}

EXPERIMENT = Experiment(
    name="exp02",
    title="Experiment 2: dependence on the tail of the noise",
    figure="Figure 2",
    grid=tuple(
        Cell(
            model,
            n=200 * 2**m,
            panel=f"Model {model}, {label} covariates",
            series=epsilon,
            x=m,
            covariates=covariates,
            noise=f"t:{1 + epsilon:g}",
            tau=theory_threshold(200 * 2**m, epsilon),
        )
        for model in ("I", "II")
        for covariates, label in COVARIATES.items()
        for epsilon in EPSILONS
        for m in (1, 2, 3, 4, 5)
    ),
    claims=rates(),
    measure="-log error",
    xlabel="m (n = 200·2ᵐ)",
    slabel="ε",
    note="Within a replication all ε share their covariates.",
    quick=lambda cell: cell.x <= 3 and cell.series in {0.1, 0.7, 1.0, 1.6},
)
