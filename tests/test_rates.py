"""How fast errors fall with n: the rates of the theorem, by the tail of the noise.

With moments of the noise up to order 1 + ε, truncation at ``τ = (n / log p̄)^{1/(1+ε)}``, ε at most
1, has a squared error of order ``n^{-2ε/(1+ε)}``. The noise is t with 1 + ε degrees of freedom.
"""

import math

import numpy as np
import pytest

import tauten as tt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SIZES, SEEDS, P = (200, 400, 800, 1600, 3200), range(40), 5
LARGEST_STDERR = 0.05
# At ε = 1 the variance of truncated noise grows like log τ: on these sizes that bends the slope by
# d log log τ / d log n, which is 1 / (2 log τ) or about 0.15.
MARGIN = 0.15


def squared_error(epsilon, n, seed, robust):
    data = tt.datasets.make_model("I", n, shape=(P, P, P), noise=f"t:{1 + epsilon}", rng=[seed, n])
    model = tt.TensorRegressor(1, robust=robust, init=data.truth, fit_intercept=False)
    return tt.metrics.frobenius_error(model.fit(data.X, data.y).coef_, data.truth, squared=True)


def slope(epsilon, robust):
    """Log-log slope of the error in n: its mean over the seeds, and the standard error of that."""
    logs = [[np.log(squared_error(epsilon, n, s, robust(n))) for n in SIZES] for s in SEEDS]
    slopes = np.polyfit(np.log(SIZES), np.transpose(logs), 1)[0]
    mean, stderr = slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))
    assert stderr < LARGEST_STDERR, f"the slope {mean:.3f} is known to ±{stderr:.3f} only"
    print(f"\nepsilon {epsilon}: slope {mean:.3f} ± {stderr:.3f}")
    return mean, stderr


def theory(epsilon):
    order = min(1.0, epsilon)
    return lambda n: tt.robust.Truncate((n / math.log(P)) ** (1 / (1 + order)))


@pytest.mark.parametrize("epsilon", [0.4, 0.7, 1.0, 2.0])
def test_truncation_has_the_rate_of_the_theorem(epsilon):
    order = min(1.0, epsilon)
    found, stderr = slope(epsilon, theory(epsilon))
    assert abs(found + 2 * order / (1 + order)) <= MARGIN + 2 * stderr


def test_truncation_is_slower_the_heavier_the_tail():
    (heavy, a), (light, b) = (slope(epsilon, theory(epsilon)) for epsilon in (0.4, 2.0))
    assert heavy - light > 3 * math.hypot(a, b)


@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_the_default_has_the_rate_of_light_tails_where_noise_is_symmetric(epsilon):
    found, stderr = slope(epsilon, lambda n: "auto")
    assert abs(found + 1) <= MARGIN + 2 * stderr
