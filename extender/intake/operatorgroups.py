"""PodGroups that operators made, known by their controllers: the pods' owners go before them."""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey
from muster.kube import wire
from muster.workloads.keys.operatorgroups import is_operators


@dataclass(slots=True)
class OperatorGroups:
    """Keys of such groups, by the UID of the object."""

    _keys: dict[str, GangKey] = field(default_factory=dict)
    _owned: set[GangKey] = field(default_factory=set)

    def seen(self, key: GangKey, meta: wire.ObjectMeta) -> bool:
        """Take a group over; return whether it is an operator's that was not known before."""
        if not is_operators(meta) or key in self._owned:
            return False
        self._keys[meta.uid] = key
        self._owned.add(key)
        return True

    def gone(self, uid: str) -> None:
        """Forget a group that is gone; others are no error."""
        key = self._keys.pop(uid, None)
        if key is not None:
            self._owned.discard(key)

    def is_owned(self, key: GangKey) -> bool:
        """Return whether a group is an operator's."""
        return key in self._owned
