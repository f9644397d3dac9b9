"""Experiment 6: logistic error by the direction of most variance of the covariates (Figure 6)."""

import math

from .base import Cell, Experiment, theory_threshold
from .statements import local_moments

EXPERIMENT = Experiment(
    name="exp06",
    title="Experiment 6: dependence on local moments, logistic",
    figure="Figure 6",
    grid=tuple(
        Cell(
            "III",
            n=n,
            panel="Model III",
            series=theta0,
            x=n,
            covariates=f"kronecker:{theta0 * math.pi / 8!r}",
            tau=theory_threshold(n),
        )
        for theta0 in (0, 1, 2, 3, 4)
        for n in (300, 400, 500, 600, 700)
    ),
    claims=local_moments(),
    measure="error",
    slabel="θ₀",
    note="The paper gives no τ here; that of Experiment 5 is used.",
    quick=lambda cell: cell.x in {300, 700} and cell.series in {0, 2, 4},
)
