"""Conformance checks of losses and robustifiers, for ours and for yours.

Run them in the tests of a new one; whatever does not hold is an AssertionError in a sentence.
"""

from .losses import check_loss
from .robustifiers import check_robustifier

__all__ = ["check_loss", "check_robustifier"]
