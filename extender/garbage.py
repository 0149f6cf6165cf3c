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
"""

import gc
from typing import Final

from extender import heap

THRESHOLDS: Final = (100_000, 50, 1000)  # should a second ever bring more; the tick comes first
LONGEST: Final = 16  # ticks between collections


class Collector:
    """Collects and freezes; ``tick`` is called about once a second."""

    def __init__(self) -> None:
        self._every = 1
        self._left = 1
        self._listed = False
        gc.set_threshold(*THRESHOLDS)
        heap.keep()

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
            heap.give_back()

    def settle(self) -> None:
        """Collect all that was never frozen, once: what a start leaves behind."""
        gc.collect()
        gc.freeze()
        heap.give_back()

    def listed(self) -> None:
        """Note that a list was read again: its last page is in use until the next tick."""
        self._listed = True
