"""A progress bar on the standard error: one user of the runner's callback."""

from __future__ import annotations

import math
import sys
from typing import Any, TextIO

from .runner import Progress


class ProgressBar:
    """Shows how far a run is and how long it will take; with tqdm if that is installed.

    Parameters
    ----------
    stream : file, optional
        The standard error by default.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> ProgressBar(stream)(Progress("exp02", "unit-paper", 12, 24, 4000.0))
    >>> "1 h 06 min left" in stream.getvalue()
    True
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bars: dict[tuple[str, str], Any] = {}

    def __call__(self, progress: Progress) -> None:
        """Show a state."""
        name = f"{progress.experiment} {progress.label}"
        left = f"{duration(progress.seconds_left)} left"
        try:
            from tqdm import tqdm
        except ImportError:
            self._stream.write(f"{name}: {progress.done}/{progress.total}, {left}\n")
            return
        key = (progress.experiment, progress.label)
        if key not in self._bars:
            form = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}"
            self._bars[key] = tqdm(
                total=progress.total, desc=name, file=self._stream, bar_format=form
            )
        bar = self._bars[key]
        bar.set_postfix_str(left, refresh=False)
        bar.update(progress.done - bar.n)
        if progress.done == progress.total:
            bar.close()


def duration(seconds: float) -> str:
    """Say a time as people do.

    Examples
    --------
    >>> duration(4000), duration(75), duration(float("nan"))
    ('1 h 06 min', '1 min 15 s', 'unknown time')
    """
    if math.isnan(seconds):  # not every kind of task has been timed
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
