"""Python's cycle collector, which must not walk through the model (ADR 0032), and malloc's heap.

::

                      ┌── nothing found: half as often, up to LONGEST ──┐
    tick ──► due? ──► collect what is young ──► freeze everything ◄─────┤
               └─no─────────────────────────────────┘                   │
                      └── cycles found: again at the next tick ─────────┘

The model has no cycles, and objects of a request or a plan seldom have any: in a measurement of 25
s, collections of 100,000 young objects took 70 ms each and found nothing. A frozen object is still
freed when its last reference is gone, but the collector does not walk through it again. A cycle
that was alive when its generation was frozen is never freed. Such cycles are few while collections
find nothing; when many errors occur (an exception refers to its frames), every tick collects.

What malloc does with freed memory, of which a start has hundreds of megabytes::

    answer of 20 MB ──► read ──► free ──► held for the next answer ··· listed ──► given back

By default glibc returns the memory of an answer to the kernel as soon as it is free, and for the
next answer the kernel has to find and clear pages again: that is a tenth of the time to read a
list, and much more in a virtual machine that returns free memory to its host.
"""

import ctypes
import gc
from typing import Final

THRESHOLDS: Final = (100_000, 50, 1000)  # a full collection comes late, and finds little to walk
LONGEST: Final = 16  # ticks between collections
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_HELD_BYTES: Final = 128 << 20  # a few answers: one is read while others are applied
_LONGEST_BYTES: Final = 32 << 20  # the most that glibc allows; answers have 20 MB
_LIBC: Final = ctypes.CDLL(None)


class Collector:
    """Collects and freezes; ``tick`` is called about once a second.

    It changes the whole process: the collector's thresholds, and how much memory malloc holds.
    """

    def __init__(self) -> None:
        self._every = 1
        self._left = 1
        self._listed = False
        gc.set_threshold(*THRESHOLDS)
        hold_free_memory()

    def tick(self) -> None:
        """Freeze all objects; look for cycles before if that is due."""
        self._left -= 1
        if not self._left:
            found = gc.collect(0)
            self._every = 1 if found else min(2 * self._every, LONGEST)
            self._left = self._every
        gc.freeze()
        if self._listed:
            self._listed = False
            give_back_free_memory()

    def settle(self) -> None:
        """Collect all objects that were never frozen, once: those that a start leaves behind."""
        gc.collect()
        gc.freeze()
        give_back_free_memory()

    def listed(self) -> None:
        """Note that a list was read again: its last page is in use until the next tick."""
        self._listed = True


def settle() -> None:
    """Collect once, freeze what is there, and make full collections rare from now on.

    For programs that hold a whole cluster and do not tick, like the stand-ins of a load test. A
    full collection walks through a million pods for seconds, in which such a program does not
    answer, and other programs would see a fault that no test made.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def hold_free_memory() -> None:
    """Hold freed memory for the next answer. Does nothing without glibc."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_TRIM_THRESHOLD, _HELD_BYTES)
        _LIBC.mallopt(_MMAP_THRESHOLD, _LONGEST_BYTES)


def give_back_free_memory() -> None:
    """Return all freed memory of the heap to the kernel. Does nothing without glibc."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
