"""Are the data heavy-tailed, and where: local moments (section 3.1), kurtosis, tail index."""

from .moments import gaussian_local_moment, local_moment
from .tails import TailIndex, kurtosis_map, tail_index

__all__ = ["TailIndex", "gaussian_local_moment", "kurtosis_map", "local_moment", "tail_index"]
