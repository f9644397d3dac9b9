"""Experiment 9: the error of PCA by the direction of most variance of the noise (Figure 9)."""

import math

from .base import Cell, Experiment, theory_threshold
from .statements import local_moments

EXPERIMENT = Experiment(
    name="exp09",
    title="Experiment 9: dependence on local moments, PCA",
    figure="Figure 9",
    grid=tuple(
        Cell(
            "IV",
            n=n,
            panel="Model IV",
            series=theta0,
            x=n,
            noise=f"kronecker:{theta0 * math.pi / 8!r}",
            tau=theory_threshold(n),
        )
        for theta0 in (0, 1, 2, 3, 4)
        for n in (300, 400, 500, 600, 700)
    ),
    claims=local_moments(),
    measure="error",
    slabel="θ₀",
    note="The paper gives the covariance to covariates, which PCA has not: the noise gets it. It "
    "gives no τ; that of Experiment 1 is used.",
    quick=lambda cell: cell.x in {300, 700} and cell.series in {0, 2, 4},
)
