"""Small random problems that the tests share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tauten.losses import Loss
from tauten.tucker import Affine, Tucker

sys.path.insert(0, str(Path(__file__).parent))  # for `import oracle` and `import browser`

# A shell starts what it puts in the background with SIGINT ignored; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2024)


@pytest.fixture
def make_theta(rng: np.random.Generator) -> Callable[..., Tucker]:
    """Make a random point; with `linear`, an affine one with coefficients of that shape."""

    def make(
        shape: Sequence[int], rank: Sequence[int], linear: Sequence[int] | None = None
    ) -> Tucker:
        core = rng.normal(scale=0.7, size=rank)
        factors = [rng.normal(scale=0.7, size=pair) for pair in zip(shape, rank, strict=True)]
        if linear is None:
            return Tucker(core, factors)
        return Affine(core, factors, rng.normal(scale=0.5, size=linear))

    return make


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    """Make an array of the library that a test's parameter names."""
    if request.param == "numpy":
        return np.asarray
    if request.param == "torch":
        return pytest.importorskip("torch").from_numpy
    import array_api_strict

    return array_api_strict.asarray


@pytest.fixture
def make_y(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Draw responses of a shape that lie in the domain of a loss."""

    def make(loss: Loss, shape: Sequence[int]) -> np.ndarray:
        return np.asarray(loss.draw(rng.normal(scale=0.7, size=shape), rng), dtype=float)

    return make


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium, where one is installed."""
    from browser import CHROMIUM, Browser

    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
