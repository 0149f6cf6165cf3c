"""Objects that describe gangs, turned into the events of the gangs they describe.

One object describes one gang at a time, but not always the same one (a restarted JobSet
begins a new gang) and not always any (a Job scaled to zero). Only an object's identity is
left when it is deleted, so its last key is remembered.
"""

from collections.abc import Iterable

from cluster.events import Event, GangGone, GangUpserted
from cluster.gangs import GangSpec
from cluster.ids import GangKey


class GangObjects:
    """UID → gang key, for all watched kinds together."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, GangKey] = {}

    def upserted(self, uid: str, spec: GangSpec | None) -> list[Event]:
        """Return the events of an object that now describes ``spec``."""
        before = self._keys.get(uid)
        if spec is None:
            return self.gone(uid)
        self._keys[uid] = spec.key
        events: list[Event] = [GangUpserted(spec)]
        if before is not None and before != spec.key:
            events.append(GangGone(before))
        return events

    def gone(self, uid: str) -> list[Event]:
        """Return the events of a deleted object, none if it described no gang."""
        key = self._keys.pop(uid, None)
        return [] if key is None else [GangGone(key)]

    def retain(self, uids: Iterable[str]) -> list[Event]:
        """Return the events of a relist: every object not in ``uids`` is gone."""
        lost = self._keys.keys() - set(uids)
        return [event for uid in sorted(lost) for event in self.gone(uid)]
