"""Memory that a process needs again in a moment."""

from __future__ import annotations

import ctypes
import os
from functools import cache

import numpy as np

# Of glibc's malloc.h, in bytes: what is free at the end of the heap and kept (M_TRIM_THRESHOLD),
# and from what size on memory comes from the system and goes back to it (M_MMAP_THRESHOLD).
MALLOC = {-1: 2**26, -3: 2**25}
KEPT = 2**22  # bytes: more than any array that a pass makes of a chunk of small samples


@cache
def keep_memory() -> None:
    """Let this process keep some megabytes of memory that it will need again in a moment.

    A pass makes the same arrays for each chunk, and would wait for the system to clear the same
    pages for each. glibc gives memory back until an array of its size was freed once: so one is.
    dask starts workers with an allocator that gives back every page, always (the environment's
    MALLOC_TRIM_THRESHOLD_): there it takes an option.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        np.empty(KEPT, np.uint8)
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc's allocator
        return
    for option, size in MALLOC.items():
        set_option(option, size)
