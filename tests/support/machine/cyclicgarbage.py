"""What only the cycle collector finds.

::

    objects that refer to themselves ──► no longer used ──► left until the collector comes
    all others ────────────────────────► no longer used ──► freed at once
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_cycles() -> Iterator[Counter[type]]:
    """Count by type the objects that became garbage in between; the counter is full at the end."""
    found: Counter[type] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(map(type, gc.garbage))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
