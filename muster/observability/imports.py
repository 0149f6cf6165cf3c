"""Imports without the cycle collector, where a program begins.

While its modules are imported, a program makes some hundred thousand objects that stay. Python
looks for cycles among them all the while: a fifth of the CPU time until the extender's own code
runs, and it finds next to nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the collector for the block; what became garbage in it is found afterwards."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
