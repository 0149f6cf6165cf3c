"""Vacancies: the nodes of lost members, left free for their successors for a short while.

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
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from extender.engine import Engine
from muster.cluster.ids import GangKey
from muster.cluster.tables.pods import PodFlag
from muster.queueing.order import begun

MOST_VACANCIES: Final = 4096  # the oldest are given up; thousands of pods may be deleted at once
REVIEW_S: Final = 0.2  # between two looks at which vacancies are still wanted


@dataclass(frozen=True, slots=True)
class _Vacancy:
    gang: GangKey
    node: str
    until: float


class Vacancies:
    """Vacancies by node. ``keep_s``: seconds that one is left free, 0: not at all."""

    def __init__(self, engine: Engine, keep_s: float) -> None:
        self._engine = engine
        self._keep_s = keep_s
        self._vacancies: deque[_Vacancy] = deque(maxlen=MOST_VACANCIES)
        self._reviewed_at = 0.0
        #: gangs that give way: they are to leave their nodes
        self.leaving: Container[GangKey] = ()

    def note(self, gang: GangKey, node: str) -> None:
        """Leave the node free that a member of ``gang`` has just left."""
        if self._keep_s and gang not in self.leaving:
            self._vacancies.append(_Vacancy(gang, node, self._engine.clock() + self._keep_s))

    def kept_from(self, key: GangKey) -> tuple[str, ...]:
        """Return the nodes that are left free for other gangs than ``key``."""
        if not self._vacancies:
            return ()
        self._review()
        return tuple({vacancy.node for vacancy in self._vacancies if vacancy.gang != key})

    def _review(self) -> None:
        """Drop what is not wanted any more: a gang is looked at once for all its vacancies."""
        now = self._engine.clock()
        if 0 <= now - self._reviewed_at < REVIEW_S:
            return
        wanting = {
            gang for gang in {vacancy.gang for vacancy in self._vacancies} if self._wants(gang)
        }
        kept = [s for s in self._vacancies if s.until > now and s.gang in wanting]
        self._vacancies = deque(kept, maxlen=MOST_VACANCIES)
        self._reviewed_at = now if self._vacancies else 0.0

    def _wants(self, gang: GangKey) -> bool:
        view = self._engine.state.gang(gang)
        if view is None or not begun(view) or not len(view.bound):
            return False
        pods = self._engine.state.snapshot().pods
        return bool(pods.has(view.bound, PodFlag.OWNED).all())  # and so was the lost one
