"""Objects that describe gangs, turned into the events of the gangs they describe.

Most objects describe one gang at a time, but not always the same one (a restarted JobSet
begins a new gang), not always any (a Job scaled to zero), and some several (the groups of
a LeaderWorkerSet). Only an object's identity is left when it is deleted, so the keys it
described last are remembered.
"""

from collections.abc import Iterable

from muster.cluster.events import Event, GangGone, GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.workloads.dialect import Specs


class GangObjects:
    """UID → gang keys, for all watched kinds together."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, tuple[GangKey, ...]] = {}

    def upserted(self, uid: str, found: Specs) -> list[Event]:
        """Return the events of an object that now describes ``found``."""
        specs = _listed(found)
        before, now = self._keys.pop(uid, ()), tuple(spec.key for spec in specs)
        if now:
            self._keys[uid] = now
        events: list[Event] = [GangUpserted(spec) for spec in specs]
        kept = set(now)
        return events + [GangGone(key) for key in before if key not in kept]

    def gone(self, uid: str) -> list[Event]:
        """Return the events of a deleted object, none if it described no gang."""
        return [GangGone(key) for key in self._keys.pop(uid, ())]

    def retain(self, uids: Iterable[str]) -> list[Event]:
        """Return the events of a relist: every object not in ``uids`` is gone."""
        lost = self._keys.keys() - set(uids)
        return [event for uid in sorted(lost) for event in self.gone(uid)]


def _listed(found: Specs) -> tuple[GangSpec, ...]:
    if found is None:
        return ()
    return found if isinstance(found, tuple) else (found,)
