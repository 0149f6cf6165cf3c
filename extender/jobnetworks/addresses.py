"""Which pods have an address in a job's network. The annotations of the pods decide.

::

    release: extras() ──► the pod's rank, or the lowest free place ──► written with the PATCH
    watch:   the annotation has name and address ───────────────────► taken until the pod ends

A place that was chosen and is not written yet is taken, too. If the release fails, the pod has the
same place in its next release.
"""

from collections import Counter
from dataclasses import dataclass, field

from muster.cluster.ids import PodUid
from muster.kube.kinds import multus
from muster.kube.kinds.jobnetworks import attachment_name
from muster.kube.wire import ObjectMeta
from muster.kube.writing.podwrites import PodRef
from muster.vni.addresses import Subnet, place_of, slot


@dataclass(frozen=True, slots=True)
class _Carried:
    """The network in a pod's annotation."""

    vni: int
    #: "" for an address that Muster did not write
    address: str
    pod: PodRef


@dataclass(slots=True)
class AttachedPods:
    """Pods with a job's network, by UID, and places that were chosen for a release."""

    _carried: dict[PodUid, _Carried] = field(default_factory=dict)
    _chosen: dict[PodUid, tuple[int, int]] = field(default_factory=dict)  # VNI, place
    _pods: dict[int, set[PodUid]] = field(default_factory=dict)  # by VNI
    #: number of living pods with each VNI in their annotation
    users: Counter[int] = field(default_factory=Counter)

    def ref(self, uid: PodUid) -> PodRef | None:
        """Return the name of a pod that carries a job's network."""
        carried = self._carried.get(uid)
        return None if carried is None else carried.pod

    def see(self, uid: PodUid, meta: ObjectMeta, ended: bool) -> None:  # noqa: FBT001  a listener
        """Note the network in a pod's annotation; ``ended``: the pod has finished."""
        text = meta.annotations.get(multus.ANNOTATION, "")
        vni = None if ended or not text else multus.vni_of(text)
        if vni is None:
            if uid in self._carried:
                self._forget_carried(uid)
            return
        address = multus.address_of(text, attachment_name(vni)) or ""
        carried = _Carried(vni, address, PodRef(meta.namespace, meta.name, meta.uid))
        if self._carried.get(uid) != carried:
            self._forget_carried(uid)
            self._carried[uid] = carried
            self._pods.setdefault(vni, set()).add(uid)
            self.users[vni] += 1

    def drop(self, uid: PodUid) -> None:
        """Forget a deleted pod."""
        self._forget_carried(uid)
        chosen = self._chosen.pop(uid, None)
        if chosen is not None:
            self._leave(chosen[0], uid)

    def place(self, uid: PodUid, vni: int, subnet: Subnet, rank: int) -> int | None:
        """Return the pod's place in the subnet; choose one if it has none. None: it is full."""
        chosen = self._chosen.get(uid)
        if chosen is not None and chosen[0] == vni:
            return chosen[1]
        mine = self._carried.get(uid)
        found = place_of(subnet, mine.address) if mine is not None and mine.vni == vni else None
        if found is None:
            found = slot(rank, self._taken(vni, subnet, but=uid), subnet)
        if found is not None:
            self._chosen[uid] = vni, found
            self._pods.setdefault(vni, set()).add(uid)
        return found

    def _taken(self, vni: int, subnet: Subnet, *, but: PodUid) -> set[int]:
        taken = set()
        for uid in self._pods.get(vni, ()):
            chosen, carried = self._chosen.get(uid), self._carried.get(uid)
            if uid == but:
                continue
            if chosen is not None and chosen[0] == vni:
                taken.add(chosen[1])
            elif carried is not None and (place := place_of(subnet, carried.address)) is not None:
                taken.add(place)
        return taken

    def _forget_carried(self, uid: PodUid) -> None:
        carried = self._carried.pop(uid, None)
        if carried is None:
            return
        self.users[carried.vni] -= 1
        if not self.users[carried.vni]:
            del self.users[carried.vni]
        chosen = self._chosen.get(uid)
        if chosen is None or chosen[0] != carried.vni:
            self._leave(carried.vni, uid)

    def _leave(self, vni: int, uid: PodUid) -> None:
        pods = self._pods.get(vni)
        if pods is not None:
            pods.discard(uid)
            if not pods:
                del self._pods[vni]
