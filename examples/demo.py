"""Fit the same heavy-tailed data with and without robustness, and look at the coefficients.

The true coefficient image is a τ of rank 2. Each of 800 samples is a 40 x 40 image of Student-t
noise (2.1 degrees of freedom); the response adds noise with no variance (t, 1.2) and one sample in
thirty is simply wrong.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import tauten as tt
from tauten import _html as page

OUTPUT = Path("demo-output")
METHODS = {
    "none": "least squares",
    "huber": "Huber residuals",
    "truncate": "truncated gradients (the paper)",
    "auto": "tauten's default",
}


def tau_image(size: int = 40) -> np.ndarray:
    image = np.zeros((size, size))
    image[7:13, 5:35] = 1.0
    image[13:34, 17:23] = 1.0
    return image


def make_data(rng: np.random.Generator, n: int = 800) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth = tau_image()
    X = rng.standard_t(2.1, size=(n, *truth.shape))
    y = np.tensordot(X, truth, axes=2) + 3.0 * rng.standard_t(1.2, size=n)
    wrong = rng.choice(n, size=n // 30, replace=False)
    X[wrong] *= 3.0
    y[wrong] *= -3.0
    return X, y, truth


def fit_all(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[tt.TensorRegressor, float]]:
    fits = {}
    for robust in METHODS:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # least squares need not converge on such data
            model = tt.TensorRegressor(rank=2, robust=robust).fit(X, y)
        fits[robust] = (model, time.perf_counter() - start)
    return fits


def draw(truth: np.ndarray, fits: dict, errors: dict) -> plt.Figure:
    panels = {"truth": truth} | {name: fits[name][0].coef_ for name in METHODS}
    titles = {"truth": "true coefficients"} | {
        name: f"{METHODS[name]}\nrelative error {errors[name]:.2f}" for name in METHODS
    }
    figure, axes = plt.subplots(1, len(panels), figsize=(15, 3.6), layout="constrained")
    for axis, (name, image) in zip(axes, panels.items(), strict=True):
        picture = axis.imshow(image, cmap="RdBu_r", vmin=-1.5, vmax=1.5)
        axis.set(xticks=[], yticks=[])
        axis.set_title(titles[name], fontsize=11)
    figure.colorbar(picture, ax=axes, shrink=0.8, extend="both")
    return figure


def write_page(rows: list[list], figure: plt.Figure) -> Path:
    columns = ["method", "relative error", "seconds"]
    caption = "An estimate of zero everywhere has relative error 1."
    alt = "True and estimated coefficient images side by side"
    body = page.table(columns, rows, caption) + page.figure(figure, alt)
    lead = page.paragraph(" ".join((__doc__ or "").split()))
    text = page.page("The same data, four fits", [("Errors and coefficients", body)], lead=lead)
    return page.write(OUTPUT / "report.html", text)


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    X, y, truth = make_data(np.random.default_rng(1))
    print(f"{X.shape[0]} samples of shape {X.shape[1:]}, heavy-tailed X and y, 1 in 30 wrong\n")
    fits = fit_all(X, y)
    errors = {name: tt.metrics.relative_error(fits[name][0].coef_, truth) for name in METHODS}
    rows = [[METHODS[m], round(errors[m], 3), round(fits[m][1], 1)] for m in METHODS]
    print(f"{'method':<34}{'relative error':>15}{'seconds':>10}")
    for method, error, seconds in rows:
        print(f"{method:<34}{error:>15.3f}{seconds:>10.1f}")
    print("\n(an estimate of zero everywhere has relative error 1)")
    picture = OUTPUT / "coefficients.png"
    draw(truth, fits, errors).savefig(picture, dpi=110)
    with mpl.rc_context(page.FIGURE_STYLE):
        report = write_page(rows, draw(truth, fits, errors))
    print(f"\npicture: {picture}\nreport:  {report}")


if __name__ == "__main__":
    main()
