"""Where samples live. The only place that knows how to go over them.

===========  =====================================================================================
class        samples
===========  =====================================================================================
``Rows``     in memory: numpy, torch, cupy, any library of the array API standard
``Files``    on disk: numpy memmaps, HDF5 datasets, zarr arrays; within a memory budget. Integers
             in memory too, if they are many
``Blocks``   on the workers of a dask cluster, or of any other scheduler of dask
===========  =====================================================================================

A fit asks for sums over samples, and for a few samples to look at; each class gives the same ones.
"""

from __future__ import annotations

from .base import Chunk, Reads, Samples
from .blocks import Blocks
from .files import Files
from .gather import gather, in_memory, lazy, memory_bytes
from .rows import Rows
from .threads import available_threads

__all__ = [
    "Blocks",
    "Chunk",
    "Files",
    "Reads",
    "Rows",
    "Samples",
    "available_threads",
    "gather",
    "in_memory",
    "lazy",
    "memory_bytes",
]
