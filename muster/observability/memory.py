"""Python's cycle collector, kept from walking through the model (ADR 0032), and malloc's heap.

::

                      ┌── nothing found: half as often, up to LONGEST ──┐
    tick ──► due? ──► collect what is young ──► freeze everything ◄─────┤
               └─no─────────────────────────────────┘                   │
                      └── cycles found: again at the next tick ─────────┘

The model has no cycles, and what is left of a request or a plan seldom has: a collection of
100,000 young objects was seen to take 70 ms and to find nothing, 25 s long. What is frozen is
still freed when its last user is gone, just never walked through again. A cycle that was alive
when its generation was frozen stays for ever: they are few while collections find nothing, and
when something goes wrong at a high rate (each exception knows its frames) all are looked for.

What malloc does with memory that is free again, which a start has by the hundred megabytes::

    answer of 20 MB ──► read ──► free ──► kept for the next answer ··· listed ──► given back

By itself glibc gives an answer's memory back as soon as it is free, and the next answer is written
to pages that the kernel has to find and to clear first: a tenth of what reading a list takes, and
much more in a virtual machine that gives free memory back to its host.
"""

import ctypes
import gc
from typing import Final

THRESHOLDS: Final = (100_000, 50, 1000)  # a full collection comes late, and finds little to walk
LONGEST: Final = 16  # ticks between collections
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_KEPT_BYTES: Final = 128 << 20  # a few answers: one is read while others are applied
_LONGEST_BYTES: Final = 32 << 20  # as much as glibc takes from its heap at all; answers have 20 MB
_LIBC: Final = ctypes.CDLL(None)


class Collector:
    """Collects and freezes; ``tick`` is called about once a second.

    It changes the whole process: the collector's thresholds, and what malloc keeps.
    """

    def __init__(self) -> None:
        self._every = 1
        self._left = 1
        self._listed = False
        gc.set_threshold(*THRESHOLDS)
        keep_free_memory()

    def tick(self) -> None:
        """Freeze what is there, and look for cycles first if it is time to."""
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
        """Collect all that was never frozen, once: what a start leaves behind."""
        gc.collect()
        gc.freeze()
        give_back_free_memory()

    def listed(self) -> None:
        """Note that a list was read again: its last page is in use until the next tick."""
        self._listed = True


def settle() -> None:
    """Collect once, freeze what is there, and make full collections rare from now on.

    For programs that hold a whole cluster and do not tick, as the stand-ins of a load test: a
    full collection walks through a million pods for seconds, in which the program neither asks
    nor answers, and its neighbours see a fault that no test made.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def keep_free_memory() -> None:
    """Keep what is free for the next answer. Nothing happens but with glibc."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        _LIBC.mallopt(_MMAP_THRESHOLD, _LONGEST_BYTES)


def give_back_free_memory() -> None:
    """Give back all that is free, wherever it is in the heap. Nothing happens but with glibc."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
