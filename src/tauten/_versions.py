"""Versions of what is in use, for reports of fits and of bugs."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from .kernels import in_use

REQUIRED = ("tauten", "numpy", "scipy", "scikit-learn", "array-api-compat")
OPTIONAL = (
    "matplotlib",
    "xarray",
    "pandas",
    "polars",
    "dask",
    "torch",
    "h5py",
    "zarr",
    "nibabel",
    "pillow",
    "tensorly",
)


def version_of(package: str) -> str | None:
    """Version of an installed package, found without importing it; None where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


VERSION = version_of("tauten") or "unknown"  # a source tree that was never installed


def versions() -> str:
    """Return what :func:`show_versions` prints.

    Examples
    --------
    >>> "scikit-learn" in versions()
    True
    """
    lines = {"python": sys.version.split()[0], "platform": platform.platform()}
    lines |= {name: version_of(name) or "unknown" for name in REQUIRED}
    lines["sweep"] = in_use()
    lines |= {f"linear algebra {k}": pool for k, pool in enumerate(_thread_pools(), start=1)}
    lines |= {name: found for name in OPTIONAL if (found := version_of(name))}
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def _thread_pools() -> list[str]:
    """Libraries of linear algebra and of threads that are loaded, with their numbers of threads."""
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool['version'] or '(version unknown)'}, "
        f"{pool['num_threads']} thread(s)"
        for pool in threadpool_info()
    ]


def show_versions() -> None:
    """Print the versions of Python, of tauten and of what it uses, for a report of a bug.

    Examples
    --------
    >>> import tauten as tt
    >>> tt.show_versions()
    python ...
    """
    print(versions())
