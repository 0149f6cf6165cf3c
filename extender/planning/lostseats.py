"""The seats of lost members, kept for their successors for a short while.

A member that fails or is deleted leaves its node at once; its controller makes the next
one some seconds later (a Job waits 10 s after a failure). In between, any waiting gang
would take the room, and the gang that lost one member would stand useless beside it::

    bound member of a partial gang, with a controller, is gone ──► its node is left out of the
                                                            plans of all other gangs
    successor placed, gang whole or gone, time is up ─────► free for everybody

Only Muster's own plans keep off: what kube-scheduler does with pods that are not ours is
its business.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from extender.engine import Engine
from muster.cluster.ids import GangKey
from muster.cluster.tables.pods import PodFlag
from muster.queueing.order import begun

MOST_SEATS: Final = 4096  # the oldest are given up; thousands of pods may be deleted at once
REVIEW_S: Final = 0.2  # between two looks at whose seats are still wanted


@dataclass(frozen=True, slots=True)
class _Seat:
    gang: GangKey
    node: str
    until: float


class LostSeats:
    """Seats by node. ``keep_s``: seconds that one is kept, 0: not at all."""

    def __init__(self, engine: Engine, keep_s: float) -> None:
        self._engine = engine
        self._keep_s = keep_s
        self._seats: deque[_Seat] = deque(maxlen=MOST_SEATS)
        self._reviewed_at = 0.0

    def note(self, gang: GangKey, node: str) -> None:
        """Keep the seat that a member of ``gang`` has just left."""
        if self._keep_s:
            self._seats.append(_Seat(gang, node, self._engine.clock() + self._keep_s))

    def kept_from(self, key: GangKey) -> tuple[str, ...]:
        """Return the nodes that are kept for other gangs than ``key``."""
        if not self._seats:
            return ()
        self._review()
        return tuple({seat.node for seat in self._seats if seat.gang != key})

    def _review(self) -> None:
        """Drop what is not wanted any more: a gang is looked at once for all its seats."""
        now = self._engine.clock()
        if 0 <= now - self._reviewed_at < REVIEW_S:
            return
        wanting = {gang for gang in {seat.gang for seat in self._seats} if self._wants(gang)}
        kept = [s for s in self._seats if s.until > now and s.gang in wanting]
        self._seats = deque(kept, maxlen=MOST_SEATS)
        self._reviewed_at = now if self._seats else 0.0

    def _wants(self, gang: GangKey) -> bool:
        view = self._engine.state.gang(gang)
        if view is None or not begun(view) or not len(view.bound):
            return False
        pods = self._engine.state.snapshot().pods
        return bool(pods.has(view.bound, PodFlag.OWNED).all())  # and so was the lost one
