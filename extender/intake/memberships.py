"""Where pods that are Muster's belong, for as long as they say the same of it.

A pod's keys hardly ever change, but its status does several times; to read them anew with every
event is a third of what such an event costs.
"""

from dataclasses import dataclass, field
from typing import Final

from muster.cluster.ids import PodUid
from muster.kube import names, wire
from muster.workloads.dialect import Member

# Of some 250 bytes each: all that come and go within a minute at 1,600 pods/s.
MOST: Final = 100_000
# Copied from the node (kube-apiserver, plugin/pkg/admission/podtopologylabels).
_ADDED_BY_BINDING: Final = frozenset(
    {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
)


def said(pod: wire.Pod) -> int:
    """Return a digest of everything that dialects read of a pod.

    Our own plan is not, nor the labels that the API server adds with the binding.
    """
    meta = pod.metadata
    notes = frozenset(item for item in meta.annotations.items() if item[0] != names.PLAN)
    labels = frozenset(item for item in meta.labels.items() if item[0] not in _ADDED_BY_BINDING)
    owners = tuple(owner.uid for owner in meta.owner_references)
    return hash((labels, notes, owners))


@dataclass(slots=True)
class Places:
    """By UID, those that were read last: a pod that is not here any more is read again.

    At least ``most / 2`` are kept and at most ``most``, in two generations: when the younger one
    is full it becomes the older one, which goes. (To delete the first of one dictionary, each time
    it is full, looks at all that were deleted before it.)
    """

    #: pods that are kept at most
    most: int = MOST
    _younger: dict[PodUid, tuple[int, Member]] = field(default_factory=dict)
    _older: dict[PodUid, tuple[int, Member]] = field(default_factory=dict)

    def get(self, uid: PodUid, digest: int) -> Member | None:
        """Return a pod's place if it says (``said``) what it said then."""
        known = self._younger.get(uid) or self._older.get(uid)
        return known[1] if known is not None and known[0] == digest else None

    def put(self, uid: PodUid, digest: int, member: Member) -> None:
        """Note a pod's place."""
        if len(self._younger) >= self.most // 2 and uid not in self._younger:
            self._younger, self._older = {}, self._younger
        self._younger[uid] = digest, member

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone, or no member of anything any more."""
        self._younger.pop(uid, None)
        self._older.pop(uid, None)
