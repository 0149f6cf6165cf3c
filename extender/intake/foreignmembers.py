"""Pending pods that belong to a gang of ours but whom another scheduler has.

A gang that waits for such a member waits for ever, and neither scheduler can tell why:
each sees only its own pods. Whichever comes first, the member or the gang, the other is
then there to be told of.
"""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey, PodUid
from muster.kube.wire import Pod


@dataclass(slots=True)
class Outsiders:
    """By UID, to be dropped, and by gang, to be found. Bound ones are nobody's concern."""

    _gangs: dict[PodUid, GangKey] = field(default_factory=dict)
    #: the pods that each gang lacks
    pods: dict[GangKey, dict[PodUid, Pod]] = field(default_factory=dict)

    def put(self, uid: PodUid, gang: GangKey, pod: Pod) -> None:
        """Remember a pod."""
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
