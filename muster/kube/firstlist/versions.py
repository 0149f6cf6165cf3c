"""Resource versions and times of many objects, as numbers."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
"""Seconds since the epoch; 0 for no time, NaN for text that is none."""
Versions = NDArray[np.int64]
"""Resource versions, which are numbers (KEP-5504); ``NO_VERSION`` for one that is none."""
NO_VERSION: Final = -1
VERSION_DIGITS: Final = 18  # any number of so many digits fits an int64


def version(text: str) -> int:
    """Return a resource version as a number."""
    known = text.isascii() and text.isdecimal() and len(text) <= VERSION_DIGITS
    return int(text) if known else NO_VERSION
