"""
Tensor responses: antibodies and the course of COVID-19
=======================================================

How does the antibody profile of a patient change with the severity of the disease? The response of
each of 438 samples is a matrix, 6 antigens of the virus by 11 antibodies and receptors [1]_; the
covariates say how severe the disease was. The coefficients are a tensor, course × antigen ×
receptor, and a low rank says that few patterns explain it.

The data come with TensorLy. We spoil one training sample in thirty, as a plate that was read on the
wrong scale would.
"""

# %%
# The data
# --------
# The reference group are the samples without COVID-19. The other four have an indicator each.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from tensorly.datasets import load_covid19_serology

import tauten as tt

data = load_covid19_serology()
labels, antigens, receptors = data.ticks
courses = ["Mild", "Moderate", "Severe", "Deceased"]
indicators = np.column_stack([labels == course for course in courses]).astype(float)
X, X_test, Y, Y_test = train_test_split(
    indicators, np.asarray(data.tensor), test_size=0.5, random_state=0, stratify=labels
)

rng = np.random.default_rng(0)
spoilt = rng.choice(len(Y), size=len(Y) // 30, replace=False)
Y_wild = Y.copy()
Y_wild[spoilt] *= rng.normal(scale=30, size=(len(spoilt), 1, 1))

# %%
# Three fits of each
# ------------------
# Scikit-learn fits each of the 66 entries by itself: group means. The error is the mean absolute
# error on the samples left out, which are clean.

warnings.simplefilter("ignore", ConvergenceWarning)  # of the non-robust fits, on wild data

coef, error = {}, {}
for name, response in [("clean", Y), ("wild", Y_wild)]:
    plain = LinearRegression().fit(X, response.reshape(len(X), -1))
    error["scikit-learn", name] = np.abs(
        plain.predict(X_test).reshape(Y_test.shape) - Y_test
    ).mean()
    for robust in ("none", "auto"):
        model = tt.TensorRegressor(rank=2, robust=robust).fit(X, response)
        coef[robust, name] = model.coef_
        error[f"tauten, {robust}", name] = np.abs(model.predict(X_test) - Y_test).mean()

print("mean absolute error on clean test samples")
for method in ("scikit-learn", "tauten, none", "tauten, auto"):
    print(f"{method:15} clean {error[method, 'clean']:.3f}  wild {error[method, 'wild']:.3f}")

# %%
# The profile of severe disease
# -----------------------------
# The difference to samples without COVID-19. Antibodies and receptors rise together, less so for
# the antigen S2. In the wild data least squares sees about half of it.

panels = {
    "robust, clean data": coef["auto", "clean"],
    "robust, wild data": coef["auto", "wild"],
    "least squares, wild data": coef["none", "wild"],
}
figure, axes = plt.subplots(3, 1, figsize=(6.4, 8.5), layout="constrained")
for axis, (title, tensor) in zip(axes, panels.items(), strict=True):
    picture = axis.imshow(tensor[courses.index("Severe")], cmap="RdBu_r", vmin=-5, vmax=5)
    axis.set_xticks(range(len(receptors)), receptors if axis is axes[-1] else [], rotation=60)
    axis.set_yticks(range(len(antigens)), antigens)
    axis.set_title(title)
figure.colorbar(picture, ax=axes, shrink=0.5, extend="both", label="difference to no COVID-19")
plt.show()

# %%
# .. [1] T. Zohar and others (2020), Compromised humoral functional evolution tracks with
#        SARS-CoV-2 mortality, *Cell* 183; Z. C. Tan and others (2021), Tensor-structured
#        decomposition improves systems serology analysis, *Molecular Systems Biology* 17.
