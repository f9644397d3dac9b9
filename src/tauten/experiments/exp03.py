"""Experiment 3: the error by the direction of most variance of the covariates (Figure 3)."""

import math

from .base import Cell, Experiment, theory_threshold
from .statements import local_moments

EXPERIMENT = Experiment(
    name="exp03",
    title="Experiment 3: dependence on local moments",
    figure="Figure 3",
    grid=tuple(
        Cell(
            model,
            n=n,
            panel=f"Model {model}",
            series=theta0,
            x=n,
            covariates=f"kronecker:{theta0 * math.pi / 8!r}",
            noise="normal" if model == "I" else f"kronecker:{theta0 * math.pi / 8!r}",
            tau=theory_threshold(n),
        )
        for model in ("I", "II")
        for theta0 in (0, 1, 2, 3, 4)
        for n in (300, 400, 500, 600, 700)
    ),
    claims=local_moments(),
    measure="error",
    slabel="θ₀",
    note="The paper gives no τ here; that of Experiment 1 is used.",
    quick=lambda cell: cell.x in {300, 700} and cell.series in {0, 2, 4},
)
