"""Memory that a process needs again in a moment.

A pass makes the same arrays for each chunk, and would wait for the system to clear the same pages
for each.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

import numpy as np

# Of glibc's malloc.h, in bytes: what is free at the end of the heap and kept (M_TRIM_THRESHOLD),
# and from what size on memory comes from the system and goes back to it (M_MMAP_THRESHOLD).
MALLOC = {-1: 2**26, -3: 2**25}
FREED = 2**25 - 2**16  # bytes: a little less than glibc takes for too large to learn from


@cache
def keep_memory() -> None:
    """Let this process keep arrays of some megabytes, as any does that has freed a larger one.

    glibc gives memory back until an array of its size was freed once, so one is. It is never
    written to, so that it takes no memory.
    """
    np.empty(FREED, np.uint8)


def keep_memory_of_worker() -> None:
    """The same for a worker of dask.

    They start with an allocator that gives back every page at once, whatever it saw freed (the
    environment's MALLOC_TRIM_THRESHOLD_): there it takes options.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc's allocator
        return
    for option, size in MALLOC.items():
        set_option(option, size)
