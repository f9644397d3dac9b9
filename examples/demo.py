"""Fit the same heavy-tailed data with and without robustness, and look at the coefficients.

The true coefficient image is a τ of rank 2. Each of 800 samples is a 40 x 40 image of Student-t
noise (2.1 degrees of freedom); the response adds noise with no variance (t, 1.2) and one sample in
thirty is simply wrong.
"""

from __future__ import annotations

import base64
import html
import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import tauten as tt

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


def draw(truth: np.ndarray, fits: dict, errors: dict) -> Path:
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
    path = OUTPUT / "coefficients.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def write_page(rows: list[tuple[str, str, str]], picture: Path) -> Path:
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    data = base64.b64encode(picture.read_bytes()).decode()
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>tauten demo</title>
<meta name="viewport" content="width=device-width"><style>
:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui;max-width:70rem;margin:2rem auto;
padding:0 1rem}}img{{width:100%;background:#fff}}td,th{{padding:.3rem 1rem;text-align:left}}
</style><h1>The same data, four fits</h1><p>{html.escape(" ".join((__doc__ or "").split()))}</p>
<table><thead><tr><th>method</th><th>relative error</th><th>seconds</th></tr></thead>
<tbody>{body}</tbody></table>
<p><img alt="True and estimated coefficient images side by side" src="data:image/png;base64,{data}">
</p></html>"""
    path = OUTPUT / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    X, y, truth = make_data(np.random.default_rng(1))
    print(f"{X.shape[0]} samples of shape {X.shape[1:]}, heavy-tailed X and y, 1 in 30 wrong\n")
    fits = fit_all(X, y)
    errors = {name: tt.metrics.relative_error(fits[name][0].coef_, truth) for name in METHODS}
    rows = [(METHODS[m], f"{errors[m]:.3f}", f"{fits[m][1]:.1f}") for m in METHODS]
    print(f"{'method':<34}{'relative error':>15}{'seconds':>10}")
    for method, error, seconds in rows:
        print(f"{method:<34}{error:>15}{seconds:>10}")
    print("\n(an estimate of zero everywhere has relative error 1)")
    picture = draw(truth, fits, errors)
    page = write_page(rows, picture)
    print(f"\npicture: {picture}\nreport:  {page}")


if __name__ == "__main__":
    main()
