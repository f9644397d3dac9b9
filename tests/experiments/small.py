"""A small study: quick to run whole, with several groups, batches and methods."""

import sys

from tauten.experiments import Cell, Experiment, Settings, run
from tauten.experiments.base import theory_threshold
from tauten.experiments.statements import rates


class Small(Experiment):
    """Ours is left out: it would take most of the time."""

    def fits_ours(self, settings, replication):
        return False


EXPERIMENT = Small(
    name="small",
    title="A small study",
    figure="Figure 0",
    grid=tuple(
        Cell("II", 10 * m, "Model II", eps, m, noise=f"t:{1 + eps:g}", tau=theory_threshold(10 * m))
        for eps in (0.7, 1.0, 1.6)
        for m in (1, 2, 3)
    ),
    claims=rates(),
    measure="-log error",
    batch=3,
)
SETTINGS = Settings(replications=12)

if __name__ == "__main__":
    run(EXPERIMENT, SETTINGS, sys.argv[1], jobs=int(sys.argv[2]))
