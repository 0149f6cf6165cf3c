"""The best set of devices of one kind: trivial cases, then exact up to 16, then bounded."""

from collections.abc import Sequence

from deviceplugin.allocation import beam
from deviceplugin.allocation.exact import MOST, ExactChooser
from deviceplugin.allocation.pairs import Pairs


class DeviceChooser:
    """Chooses by one matrix of pairs; the exact chooser caches its results."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._exact = ExactChooser(pairs) if len(pairs.names) <= MOST else None

    def choose(self, available: Sequence[str], must: Sequence[str], size: int) -> tuple[str, ...]:
        """Return ``size`` names of ``available`` and ``must``, all of ``must`` among them.

        They are in the order of the inventory. Names that the inventory lacks have no score and
        are taken last. Fewer names are returned where there are not enough.
        """
        index = self.pairs.index
        known = sorted({index[name] for name in (*available, *must) if name in index})
        fixed = sorted({index[name] for name in must if name in index})
        strange = sorted({name for name in (*available, *must) if name not in index})
        forced = [name for name in strange if name in must]
        others = [name for name in strange if name not in must]
        wanted = max(min(size - len(forced), len(known)), len(fixed))
        chosen = [self.pairs.names[i] for i in self._indices(known, fixed, wanted)]
        return (*chosen, *forced, *others[: max(size - len(chosen) - len(forced), 0)])

    def _indices(self, known: list[int], fixed: list[int], size: int) -> Sequence[int]:
        if size >= len(known):
            return known
        if size <= len(fixed):
            return fixed
        if self._exact is not None:
            return self._exact.choose(known, fixed, size)
        return beam.choose(self.pairs, known, fixed, size)
