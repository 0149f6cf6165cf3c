"""The gangs of the last wave that have no place again yet: the next wave waits for them.

::

    ordered ─► ends ─► ended ─► placed again, or late after ``settleSeconds``: settled
      └─ has not ended after ``HANGS_S``, or is let alone: settled, too
"""

import math
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from extender.engine import Engine
from muster.cluster.ids import GangKey
from muster.queueing.order import placed

HANGS_S: Final = 300.0
"""How long a gang that does not end keeps others; its members are named long before."""


@dataclass(slots=True)
class UnsettledGang:
    """A gang that was ordered to leave."""

    #: seconds since the epoch
    ordered_at: float
    #: pods that each disruption budget holds
    held: Mapping[str, int]
    #: seconds since the epoch, infinite: it has not ended
    ended_at: float = math.inf


class UnsettledGangs:
    """Follows the gangs of a wave."""

    def __init__(self, engine: Engine, leaving: Container[GangKey], settle_seconds: float) -> None:
        """``leaving``: the gangs that end now."""
        self._engine, self._leaving, self._settle_seconds = engine, leaving, settle_seconds
        self._gangs: dict[GangKey, UnsettledGang] = {}

    def __len__(self) -> int:
        """Return how many have not settled."""
        return len(self._gangs)

    def note(self, gang: GangKey, held: Mapping[str, int]) -> None:
        """Note a gang that was ordered to leave."""
        self._gangs[gang] = UnsettledGang(self._engine.clock(), held)

    def held(self) -> Counter[str]:
        """Return how many pods that end each budget may still count as there."""
        found = Counter[str]()
        for one in self._gangs.values():
            found.update(one.held)
        return found

    def settle(self, spared: Container[GangKey]) -> None:
        """Forget gangs that are placed again, late, or were let alone (``spared``)."""
        now = self._engine.clock()
        for gang, one in list(self._gangs.items()):
            if gang not in self._leaving:
                one.ended_at = min(one.ended_at, now)
            late = now - one.ended_at >= self._settle_seconds or now - one.ordered_at >= HANGS_S
            is_back = gang not in self._leaving and self._is_back(gang)
            if late or is_back or gang in spared:
                del self._gangs[gang]

    def _is_back(self, gang: GangKey) -> bool:
        view = self._engine.state.gang(gang)
        if view is None or view.spec is None or len(view.leaving):
            return False
        return placed(view) >= max(view.spec.min_count, 1)
