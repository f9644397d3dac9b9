"""
Robust PCA of a hyperspectral image
===================================

Indian Pines [1]_ is an image of fields and woods in 200 bands of light: rows × columns × bands. Few
spectra mix in it, so it is close to a tensor of low Tucker rank. :class:`~tauten.TensorPCA` finds
that tensor also where some pixels are dead or saturated, without being told which.

The image comes with TensorLy, whose Tucker decomposition we compare with.
"""

# %%
# The data
# --------
# A part of the image, every eighth band, and a copy of it in which 2% of the values are either 0 or
# four times the largest.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tensorly import tucker_to_tensor
from tensorly.datasets import load_indian_pines
from tensorly.decomposition import tucker

import tauten as tt

image = np.asarray(load_indian_pines().tensor)[40:84, 20:64, ::8]
image /= image.std()

rng = np.random.default_rng(0)
broken = rng.random(image.shape) < 0.02
wild = np.where(broken, rng.choice([0, 4 * image.max()], size=image.shape), image)

# %%
# Three decompositions of each
# ----------------------------
# All of rank (12, 12, 4). The error is relative to the image as it was, also for the wild copy. The
# image is not exactly of low rank, so no method reaches 0.

warnings.simplefilter("ignore", ConvergenceWarning)  # of the non-robust fits, on wild data

rank = (12, 12, 4)
low_rank, error = {}, {}
for name, tensor in [("clean", image), ("wild", wild)]:
    low_rank["TensorLy", name] = tucker_to_tensor(tucker(tensor, rank))
    for robust in ("none", "auto"):
        solver = tt.solver.ScaledDescent(tol=1e-4)
        model = tt.TensorPCA(rank, robust=robust, solver=solver).fit(tensor)
        low_rank[f"tauten, {robust}", name] = model.low_rank_

print("relative error")
for method in ("TensorLy", "tauten, none", "tauten, auto"):
    for name in ("clean", "wild"):
        error[method, name] = tt.metrics.relative_error(low_rank[method, name], image)
    print(f"{method:15} clean {error[method, 'clean']:.3f}  wild {error[method, 'wild']:.3f}")

# %%
# With ``robust="none"`` tauten is the Tucker decomposition. The robust fit takes some edges of the
# clean image for outliers, at a small cost; on the broken image its error is a quarter of theirs.
#
# One band
# --------

band = 5
panels = {
    "as it was": image,
    "with broken values": wild,
    f"TensorLy: error {error['TensorLy', 'wild']:.2f}": low_rank["TensorLy", "wild"],
    f"tauten: error {error['tauten, auto', 'wild']:.2f}": low_rank["tauten, auto", "wild"],
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
for axis, (title, tensor) in zip(axes, panels.items(), strict=True):
    low, high = image[:, :, band].min(), image[:, :, band].max()
    axis.imshow(tensor[:, :, band], cmap="viridis", vmin=low, vmax=high)
    axis.set(xticks=[], yticks=[], title=title)
plt.show()

# %%
# .. [1] M. F. Baumgardner, L. L. Biehl, D. A. Landgrebe (2015), 220 Band AVIRIS Hyperspectral Image
#        Data Set, Purdue University Research Repository, doi:10.4231/R7RX991C (CC BY 3.0).
