"""Algorithm 1 of the paper as one function."""

from __future__ import annotations

from functools import partial
from typing import Any

from ._checks import check_number, check_same_length, check_tensor, check_theta
from .data import gather
from .designs import Covariate, Direct
from .losses import Loss
from .problem import Problem
from .robust import Robustifier, Truncate
from .solver import GradientDescent, Result
from .solver.result import Callback
from .tucker import Tucker


def robust_gradient_descent(
    X: Any,
    Y: Any,
    theta0: Tucker,
    *,
    loss: str | Loss = "squared",
    tau: Any,
    step: float = 1e-3,
    a: float = 1.0,
    b: float = 1.0,
    n_iter: int = 300,
    robust: str | Robustifier | None = None,
    callback: Callback | None = None,
) -> Result:
    """Run Algorithm 1 of the paper, exactly as printed.

    No intercept, no automatic choices: the estimators have those.

    Parameters
    ----------
    X : array (n, p_1, ..., p_d0) or None
        Covariates; None means tensor PCA.
    Y : array (n, p_{d0+1}, ..., p_d)
        Responses; with ``X=None``, n noisy copies (n, p_1, ..., p_d) of the tensor, in which nan is
        a missing entry.
    theta0 : Tucker
        Starting point ``F^(0)``.
    loss : str or Loss
    tau : float or sequence
        Truncation threshold τ; ``inf`` is vanilla gradient descent. See
        :class:`tauten.robust.Truncate` for one per block or per entry.
    step : float
        Step size η.
    a, b : float
        Weight and scale of the balancing term.
    n_iter : int
        Number of iterations T.
    robust : str or Robustifier, optional
        Another robust gradient in place of truncation at `tau`.
    callback : callable, optional
        Called after each iteration with its record and the new point; a true value stops.

    Returns
    -------
    Result
        ``theta``, ``n_iter``, ``converged``, ``reason`` and ``history``. A run that diverges
        returns its last finite iterate, with ``converged=False`` and the reason in words.

    Examples
    --------
    >>> import numpy as np
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 200, noise="t:1.5", rng=0)
    >>> result = tt.robust_gradient_descent(data.X, data.y, data.truth, tau=5.0, n_iter=10)
    >>> result.reason
    'took the 10 steps asked for'
    """
    loss = Loss.get(loss)
    Y = check_tensor("Y", Y, missing=X is None, anywhere=True)
    if X is not None:
        X = check_tensor("X", X, anywhere=True)
        check_same_length(X, Y, "Y")
    design = Direct() if X is None else Covariate()
    check_theta(theta0, Y.shape[1:] if X is None else (*X.shape[1:], *Y.shape[1:]))
    check_number("step", step)
    check_number("a", a, zero=True)
    check_number("b", b)
    check_number("n_iter", n_iter, integer=True)
    robust = Truncate(tau) if robust is None else Robustifier.get(robust)
    data = gather(X, Y)
    data.each("y", partial(loss.check, missing=X is None))
    problem = Problem(data, loss, design, robust, missing=X is None)
    solver = GradientDescent(step_size=step, a=a, b=b, n_iter=n_iter)
    return solver.run(problem.calibrate(theta0), theta0, callback)
