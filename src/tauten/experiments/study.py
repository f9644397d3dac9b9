"""Reproduce: the one function behind ``tauten reproduce``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from . import exp01, exp02, exp03, exp04, exp05, exp06, exp07, exp08, exp09, exp10
from .base import OURS, PAPER_METHODS, Experiment, Settings
from .report import Section, experiment_section, write_report
from .runner import Callback, results_file, run
from .store import Results

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (exp01, exp02, exp03, exp04, exp05, exp06, exp07, exp08, exp09, exp10)
}
CT = "ct"
NAMES = (*EXPERIMENTS, CT)
QUICK_SPLITS = 5


def reproduce(
    names: str | Sequence[str] = "all",
    *,
    reading: str | Sequence[str] = "unit",
    tuning: str | Sequence[str] = "paper",
    methods: str | Sequence[str] = PAPER_METHODS,
    replications: int = 200,
    seed: int = 0,
    jobs: int = 1,
    quick: bool = False,
    out: str | Path = "reproduction",
    data: str | Path | None = None,
    splits: int = 50,
    report_only: bool = False,
    callback: Callback | None = None,
) -> Path:
    """Run experiments of the paper, judge its claims, and write a report.

    What is done already, in `out`, is not done again; a run may be killed at any moment.

    Parameters
    ----------
    names : str or sequence of str
        ``"exp01"`` to ``"exp10"``, ``"ct"``, or ``"all"``.
    reading : str or sequence of str
        ``"unit"``, ``"ones"``: of the paper's A*, see :func:`tauten.datasets.truth`.
    tuning : str or sequence of str
        ``"paper"``, its 300 steps of 0.001, or ``"converged"``.
    methods : str or sequence of str
        Of ``"VGD"``, ``"RGD"``, ``"HUB"``; ours, ``"auto"``, always runs.
    replications, seed, jobs : int
    quick : bool
        A part of each grid, six replications at most, five splits of the images.
    out : path
        Folder of results and report.
    data : path, optional
        For ``"ct"``: folders or zips of the COVID-CT images, or an npz of them; without, images
        are simulated, and the report says so.
    splits : int
        Random splits of the images.
    report_only : bool
        Report on what was done already: experiments with a replication of every cell, and splits
        of the images, however many there are.
    callback : callable, optional
        Called with a :class:`~.runner.Progress` as work gets done.

    Returns
    -------
    Path
        The page ``report.html``; figures (PNG, SVG) and tables (CSV) are beside it.

    Examples
    --------
    The names and what they stand for; a run takes minutes to hours::

        reproduce(["exp01", "exp04"], quick=True, out="reproduction")

    >>> EXPERIMENTS["exp02"].title
    'Experiment 2: dependence on the tail of the noise'
    """
    chosen, methods = _names(names), _several(methods)
    runs = [
        (name, Settings(r, t, tuple(methods), replications, seed, quick))
        for name in chosen
        if name != CT
        for r, t in product(_several(reading), _several(tuning))
    ]
    images = None
    if CT in chosen:
        from .ct_data import load, synthetic

        images = synthetic(seed) if data is None else load(data)
    out = Path(out)
    # Files of other settings are found before any work is done.
    done = [results_file(EXPERIMENTS[name], settings, out).read() for name, settings in runs]
    options: dict[str, Any] = {"jobs": jobs, "callback": callback}
    if not report_only:
        done = [run(EXPERIMENTS[name], settings, out, **options) for name, settings in runs]
    by_name: dict[str, list[Results]] = {}
    for results in done:
        if results.begun:
            by_name.setdefault(results.experiment.name, []).append(results)
    sections: list[Section] = [experiment_section(found) for found in by_name.values()]
    if images is not None:
        from .ct import study

        few = min(splits, QUICK_SPLITS) if quick else splits
        options |= {"splits": few, "seed": seed, "report_only": report_only}
        sections += filter(None, [study(images, out, **options)])
    if not sections:
        raise ValueError(
            f"report_only needs results of {', '.join(chosen)} in {out}, a replication of every "
            f"cell or a split of either kind at least; there are none under these settings. Run "
            f"them first"
        )
    told: dict[str, object] = {
        "names": ", ".join(chosen),
        "readings": ", ".join(_several(reading)),
        "tunings": ", ".join(_several(tuning)),
        "methods": ", ".join([*(m for m in methods if m != OURS), OURS]),
        "replications": "those that were done" if report_only else replications,
        "report only": report_only,
        "seed": seed,
        "quick": quick,
    }
    return write_report(out, sections, told, _command(told, methods, jobs, out))


def _names(names: str | Sequence[str]) -> list[str]:
    asked = list(NAMES) if names == "all" else _several(names)
    unknown = [name for name in asked if name not in NAMES]
    if unknown or not asked:
        raise ValueError(
            f"names must be 'all' or among {', '.join(NAMES)}; got {', '.join(unknown) or 'none'}"
        )
    return list(dict.fromkeys(asked))


def _several(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _command(told: dict[str, object], methods: Sequence[str], jobs: int, out: Path) -> str:
    parts = [f"tauten reproduce {str(told['names']).replace(',', '')}"]
    parts += [f"--reading {str(told['readings']).replace(',', '')}"]
    parts += [f"--tuning {str(told['tunings']).replace(',', '')}"]
    few = [method for method in PAPER_METHODS if method in methods]
    parts += [f"--methods {' '.join(few)}"] if 0 < len(few) < len(PAPER_METHODS) else []
    done = f"--replications {told['replications']}"
    parts += ["--report-only" if told["report only"] else done]
    parts += [f"--seed {told['seed']} --jobs {jobs}"]
    return " ".join([*parts, *(["--quick"] if told["quick"] else []), f"--out {out.name}"])
