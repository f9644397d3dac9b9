"""Experiment 8: how the error of PCA falls with n, by the tail of the noise (Figure 8)."""

from .base import Cell, Experiment, theory_threshold
from .exp02 import EPSILONS
from .statements import rates

EXPERIMENT = Experiment(
    name="exp08",
    title="Experiment 8: dependence on the tail of the noise, PCA",
    figure="Figure 8",
    grid=tuple(
        Cell(
            "IV",
            n=200 * 2**m,
            panel="Model IV",
            series=epsilon,
            x=m,
            noise=f"t:{1 + epsilon:g}",
            tau=theory_threshold(200 * 2**m, epsilon),
        )
        for epsilon in EPSILONS
        for m in (1, 2, 3, 4, 5)
    ),
    claims=rates(),
    measure="-log error",
    xlabel="m (n = 200·2ᵐ)",
    slabel="ε",
    note="Model IV has one tensor and the experiment n: n independent copies are used.",
    quick=lambda cell: cell.x <= 3 and cell.series in {0.1, 0.7, 1.0, 1.6},
)
