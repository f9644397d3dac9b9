"""The same heavy-tailed data fitted with and without robustness, and the coefficients side by side.

The true coefficient image is a τ of rank 2. Each sample is a 40 x 40 image of Student-t noise (2.1
degrees of freedom); the response adds noise with no variance (t, 1.2) and one sample in thirty is
simply wrong.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _html, metrics
from ._files import check_writable, write_whole
from .estimators import TensorRegressor

METHODS = {
    "none": "least squares",
    "huber": "Huber residuals",
    "truncate": "truncated gradients (the paper)",
    "auto": "tauten's default",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One method's fit.

    Attributes
    ----------
    method : str
        In words.
    coef : array
    error : float
        Relative error of the coefficients; that of zero everywhere is 1.
    seconds : float
    """

    method: str
    coef: np.ndarray
    error: float
    seconds: float


def tau_image(size: int = 40) -> np.ndarray:
    """Return the true coefficients: a τ."""
    image = np.zeros((size, size))
    image[7:13, 5:35] = 1.0
    image[13:34, 17:23] = 1.0
    return image


def make_data(n: int = 800, *, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples X and responses y."""
    rng, truth = np.random.default_rng(seed), tau_image()
    X = rng.standard_t(2.1, size=(n, *truth.shape))
    y = np.tensordot(X, truth, axes=2) + 3.0 * rng.standard_t(1.2, size=n)
    wrong = rng.choice(n, size=n // 30, replace=False)
    X[wrong] *= 3.0
    y[wrong] *= -3.0
    return X, y


def compare(X: np.ndarray, y: np.ndarray) -> Iterator[Outcome]:
    """Fit by each method in turn."""
    for robust, method in METHODS.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # least squares need not converge on such data
            coef = TensorRegressor(rank=2, robust=robust).fit(X, y).coef_
        seconds = time.perf_counter() - start
        yield Outcome(method, coef, metrics.relative_error(coef, tau_image()), seconds)


def check_output(folder: Path) -> None:
    """Make the folder; raise if the picture could not be drawn or written there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('the demo needs matplotlib: pip install "tauten[plot]"') from error
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / "report.html")


def write(folder: Path, outcomes: list[Outcome]) -> tuple[Path, Path]:
    """Write a picture and a page; return their paths."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    _draw(outcomes).savefig(buffer, dpi=110, format="png")
    picture = write_whole(folder / "coefficients.png", buffer.getvalue())
    with mpl.rc_context(_html.FIGURE_STYLE):
        page = _page(outcomes)
    return picture, _html.write(folder / "report.html", page)


def _draw(outcomes: list[Outcome]) -> Any:
    from matplotlib.figure import Figure

    panels = [("true coefficients", tau_image())]
    panels += [(f"{o.method}\nrelative error {o.error:.2f}", o.coef) for o in outcomes]
    figure = Figure(figsize=(15, 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for axis, (title, image) in zip(axes, panels, strict=True):
        picture = axis.imshow(image, cmap="RdBu_r", vmin=-1.5, vmax=1.5)
        axis.set(xticks=[], yticks=[])
        axis.set_title(title, fontsize=11)
    figure.colorbar(picture, ax=axes, shrink=0.8, extend="both")
    return figure


def _page(outcomes: list[Outcome]) -> str:
    rows = [[o.method, round(o.error, 3), round(o.seconds, 1)] for o in outcomes]
    caption = "An estimate of zero everywhere has relative error 1."
    alt = "True and estimated coefficient images side by side"
    table = _html.table(["method", "relative error", "seconds"], rows, caption)
    body = table + _html.figure(_draw(outcomes), alt)
    lead = _html.paragraph(" ".join((__doc__ or "").split()))
    return _html.page("The same data, four fits", [("Errors and coefficients", body)], lead=lead)
