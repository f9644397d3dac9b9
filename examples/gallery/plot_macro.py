"""
An economy predicted from its lags
==================================

A vector autoregression predicts ten macroeconomic series from their own last quarters. With two
lags it has 2 × 10 × 10 coefficients, from 160 quarters; as a tensor of rank (1, 2, 2), lag × series
× response, it has 37 free ones.

The data are quarterly, of the United States, 1959 to 2009, and come with statsmodels. We make four
numbers of the training data a hundred times too large, as when fractions and percents are mixed.
"""

# %%
# The data
# --------
# Growth rates in percent, and changes of the two rates. :class:`~tauten.TensorScaler` centres and
# scales each series by its median and its median absolute deviation, which the errors do not move.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, RidgeCV
from statsmodels.datasets import macrodata

import tauten as tt

table = macrodata.load_pandas().data
levels = ["realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "pop"]
rates = ["tbilrate", "unemp"]
growth = 100 * np.diff(np.log(table[levels].to_numpy()), axis=0)
series = np.column_stack([growth, np.diff(table[rates].to_numpy(), axis=0)])
names = levels + rates

train, lags = 160, 2
rng = np.random.default_rng(0)
wild = series[:train].copy()
wild[rng.choice(train, size=4, replace=False), rng.integers(0, len(names), size=4)] *= 100

# %%
# Four fits of each
# -----------------
# :class:`~tauten.Tensorize` stacks the lags: each sample is a matrix, lag × series. The last ten
# years are predicted one quarter ahead, the crisis of 2008 included.

warnings.simplefilter("ignore", ConvergenceWarning)  # of the non-robust fits, on wild data

scaler = tt.TensorScaler().fit(series[:train])
step = tt.Tensorize(lags=lags)
X_test, y_test = step.pairs(scaler.transform(series[train - lags :]))


def flat(samples):
    return samples.reshape(len(samples), -1)


coef, error = {}, {}
for name, past in [("clean", series[:train]), ("wild", wild)]:
    X, y = step.pairs(tt.TensorScaler().fit_transform(past))
    for rival in (LinearRegression(), RidgeCV(alphas=np.logspace(-2, 5, 15))):
        predicted = rival.fit(flat(X), y).predict(flat(X_test))
        error[type(rival).__name__, name] = np.abs(predicted - y_test).mean()
    for robust in ("none", "auto"):
        model = tt.TensorRegressor(rank=(1, 2, 2), robust=robust).fit(X, y)
        coef[robust, name] = model.coef_
        error[f"tauten, {robust}", name] = np.abs(model.predict(X_test) - y_test).mean()

print("mean absolute error of the forecasts, in robust standard deviations of each series")
print(f"{'no model':16} {np.abs(y_test).mean():.3f}")
for method in ("LinearRegression", "RidgeCV", "tauten, none", "tauten, auto"):
    print(f"{method:16} clean {error[method, 'clean']:.3f}  wild {error[method, 'wild']:.3f}")

# %%
# Ten years of a stable economy and a crisis are hard to predict: on clean data the gain over no
# model is small, and ridge regression, which shrinks towards it, gains as much as a low rank. With
# four wrong numbers every other fit is clearly worse than no model; the robust one loses its gain.
#
# Who follows whom
# ----------------
# The coefficients of the first lag: how each series, in a row, moves the next quarter's others.

panels = {
    "robust, clean": coef["auto", "clean"],
    "robust, wild": coef["auto", "wild"],
    "least squares, wild": coef["none", "wild"],
}
figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained", sharey=True)
for axis, (title, tensor) in zip(axes, panels.items(), strict=True):
    picture = axis.imshow(tensor[0], cmap="RdBu_r", vmin=-0.4, vmax=0.4)
    axis.set_xticks(range(len(names)), names, rotation=90)
    axis.set_yticks(range(len(names)), names)
    axis.set(title=title, xlabel="next quarter")
axes[0].set_ylabel("this quarter")
figure.colorbar(picture, ax=axes, shrink=0.7, extend="both")
plt.show()
