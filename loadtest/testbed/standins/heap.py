"""Python's cycle collector in programs that hold a whole cluster.

A full collection walks through all that a program holds: with a million pods for seconds, in
which a stand-in neither asks nor answers and its neighbours see a fault that nobody made.
"""

import gc
from typing import Final

THRESHOLDS: Final = (100_000, 50, 1000)  # a full collection comes late, and finds little to walk


def settle() -> None:
    """Collect once, and walk through what is there by now never again; it is freed all the same."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
