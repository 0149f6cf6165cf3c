"""The gang, role and rank of managed pods, for as long as the pods' keys do not change.

A pod's labels and annotations hardly ever change, but its status changes several times. Reading
the keys again with each event would be a third of the cost of that event.
"""

from dataclasses import dataclass, field
from typing import Final

from muster.cluster.ids import PodUid
from muster.kube import names, wire
from muster.workloads.dialect import Member

# About 250 bytes each: all pods created and deleted within a minute at 1,600 pods/s.
MOST: Final = 100_000
# Copied from the node (kube-apiserver, plugin/pkg/admission/podtopologylabels).
_ADDED_BY_BINDING: Final = frozenset(
    {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
)


def digest_of(pod: wire.Pod) -> int:
    """Return a digest of everything that dialects read of a pod.

    It leaves out our own plan, and the labels that the API server adds with the binding.
    """
    meta = pod.metadata
    notes = frozenset(item for item in meta.annotations.items() if item[0] != names.PLAN)
    labels = frozenset(item for item in meta.labels.items() if item[0] not in _ADDED_BY_BINDING)
    owners = tuple(owner.uid for owner in meta.owner_references)
    return hash((labels, notes, owners, pod.spec.active_deadline_seconds))


@dataclass(slots=True)
class Memberships:
    """A cache by UID. A pod that is not in it (any more) is read again.

    It holds between ``most / 2`` and ``most`` pods, in two generations: when the younger one is
    full it replaces the older one. (Deleting the first entry of a single full dictionary would
    step over all entries that were deleted before it.)
    """

    #: the largest number of pods in the cache
    most: int = MOST
    _younger: dict[PodUid, tuple[int, Member]] = field(default_factory=dict)
    _older: dict[PodUid, tuple[int, Member]] = field(default_factory=dict)

    def get(self, uid: PodUid, digest: int) -> Member | None:
        """Return a pod's membership if its ``digest_of`` has not changed since ``put``."""
        known = self._younger.get(uid) or self._older.get(uid)
        return known[1] if known is not None and known[0] == digest else None

    def put(self, uid: PodUid, digest: int, member: Member) -> None:
        """Store a pod's membership."""
        if len(self._younger) >= self.most // 2 and uid not in self._younger:
            self._younger, self._older = {}, self._younger
        self._younger[uid] = digest, member

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is deleted, or is no longer a member of any gang."""
        self._younger.pop(uid, None)
        self._older.pop(uid, None)
