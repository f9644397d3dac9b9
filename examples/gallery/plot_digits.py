"""
Images to classes: odd and even digits
======================================

Scikit-learn's handwritten digits are small images. Is the digit odd? A
:class:`~tauten.TensorClassifier` keeps the rows and columns of the images, and learns a coefficient
image of rank 3.

We spoil one training image in twenty: it is twenty times too bright, and its label is wrong.
"""

# %%
# The data
# --------
# The outer columns are blank in almost every image. A pixel that does not vary says nothing about
# the classes, so we leave these columns out.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import tauten as tt

digits = load_digits()
images, odd = digits.images[:, :, 1:7] / 16, digits.target % 2
X, X_test, y, y_test = train_test_split(images, odd, test_size=0.5, random_state=0, stratify=odd)

rng = np.random.default_rng(0)
spoilt = rng.choice(len(X), size=len(X) // 20, replace=False)
X_wild, y_wild = X.copy(), y.copy()
X_wild[spoilt] *= 20
y_wild[spoilt] = 1 - y[spoilt]

# %%
# Three fits of each
# ------------------
# The non-robust fits need not converge on spoilt data.

warnings.simplefilter("ignore", ConvergenceWarning)


def flat(images):
    return images.reshape(len(images), -1)


models, accuracy = {}, {}
for name, images, labels in [("clean", X, y), ("wild", X_wild, y_wild)]:
    plain = LogisticRegression(max_iter=5000).fit(flat(images), labels)
    accuracy["scikit-learn", name] = plain.score(flat(X_test), y_test)
    for robust in ("none", "auto"):
        model = tt.TensorClassifier(rank=3, robust=robust).fit(images, labels)
        models[robust, name] = model
        accuracy[f"tauten, {robust}", name] = model.score(X_test, y_test)

print("share of the test labels predicted right")
for method in ("scikit-learn", "tauten, none", "tauten, auto"):
    print(f"{method:15} clean {accuracy[method, 'clean']:.3f}  wild {accuracy[method, 'wild']:.3f}")

# %%
# On clean images the three do about equally well. On spoilt ones the robust fit loses little.
#
# What was learned
# ----------------
# Red pixels speak for odd digits, blue ones for even digits. The wild images turn the non-robust
# coefficients into something else; the robust ones stay as they were.

figure, axes = plt.subplots(2, 2, figsize=(6.4, 6.8), layout="constrained")
for row, robust in zip(axes, ("none", "auto"), strict=True):
    for axis, name in zip(row, ("clean", "wild"), strict=True):
        image = models[robust, name].coef_
        limit = np.abs(image).max()
        axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
        share = accuracy[f"tauten, {robust}", name]
        axis.set(xticks=[], yticks=[], title=f'robust="{robust}", {name}\n{share:.0%} right')
plt.show()
