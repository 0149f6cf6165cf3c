"""Objects that describe gangs, turned into the events of the gangs they describe.

Most objects describe one gang at a time, but not always the same one (a restarted JobSet
begins a new gang) and not always any (a Job scaled to zero); a Workload describes several.
Only an object's identity is left when it is deleted, so its last keys are remembered.
"""

from collections.abc import Iterable

from cluster.events import Event, GangGone, GangUpserted
from cluster.ids import GangKey
from workloads.dialect import Specs


class GangObjects:
    """UID → gang keys, for all watched kinds together."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, GangKey | tuple[GangKey, ...]] = {}  # nearly always one

    def upserted(self, uid: str, specs: Specs) -> list[Event]:
        """Return the events of an object that now describes ``specs``."""
        told = () if specs is None else specs if isinstance(specs, tuple) else (specs,)
        if not told:
            return self.gone(uid)
        keys = tuple(spec.key for spec in told)
        before = _tuple(self._keys.get(uid, ()))
        self._keys[uid] = keys[0] if len(keys) == 1 else keys
        events: list[Event] = [GangUpserted(spec) for spec in told]
        return events + [GangGone(key) for key in before if key not in keys]

    def gone(self, uid: str) -> list[Event]:
        """Return the events of a deleted object, none if it described no gang."""
        return [GangGone(key) for key in _tuple(self._keys.pop(uid, ()))]

    def retain(self, uids: Iterable[str]) -> list[Event]:
        """Return the events of a relist: every object not in ``uids`` is gone."""
        lost = self._keys.keys() - set(uids)
        return [event for uid in sorted(lost) for event in self.gone(uid)]


def _tuple(keys: GangKey | tuple[GangKey, ...]) -> tuple[GangKey, ...]:
    return keys if isinstance(keys, tuple) else (keys,)
