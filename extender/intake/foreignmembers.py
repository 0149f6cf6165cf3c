"""Pending pods that belong to one of our gangs but name another scheduler.

A gang that waits for such a member waits forever. Neither scheduler can report why, because each
sees only its own pods. The pods are stored here, so that the problem is found in either order: the
pod before the gang, or the gang before the pod.
"""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey, PodUid
from muster.kube.wire import Pod


@dataclass(slots=True)
class ForeignMembers:
    """Pending pods of other schedulers, by UID and by gang. Bound pods are not stored."""

    _gangs: dict[PodUid, GangKey] = field(default_factory=dict)
    #: the pods that each gang lacks
    pods: dict[GangKey, dict[PodUid, Pod]] = field(default_factory=dict)

    def put(self, uid: PodUid, gang: GangKey, pod: Pod) -> None:
        """Store a pod."""
        self.drop(uid)
        self._gangs[uid] = gang
        self.pods.setdefault(gang, {})[uid] = pod

    def drop(self, uid: PodUid) -> None:
        """Forget a pod; unknown ones are no error."""
        gang = self._gangs.pop(uid, None)
        if gang is None:
            return
        pods = self.pods[gang]
        del pods[uid]
        if not pods:
            del self.pods[gang]

    def of(self, gang: GangKey) -> list[Pod]:
        """Return the pods that a gang lacks."""
        return list(self.pods.get(gang, {}).values())
