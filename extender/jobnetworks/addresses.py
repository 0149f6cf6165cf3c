"""Which pods have an address in a job's network: read from the pods, which are the truth of it.

::

    release: extras() ──► the pod's rank, or the lowest free place ──► written with the PATCH
    watch:   the annotation says name and address ──────────────────► taken until the pod ends

A place that was chosen and not written yet is taken, too. Should the release fail, the pod keeps
it for its next one.
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
class _Told:
    """What a pod carries. ``address``: "" for one in a form that is not ours."""

    vni: int
    address: str
    pod: PodRef


@dataclass(slots=True)
class Attached:
    """Pods with a job's network, by UID, and places that were given and not yet seen."""

    _told: dict[PodUid, _Told] = field(default_factory=dict)
    _given: dict[PodUid, tuple[int, int]] = field(default_factory=dict)  # VNI, place
    _pods: dict[int, set[PodUid]] = field(default_factory=dict)  # by VNI
    users: Counter[int] = field(default_factory=Counter)
    """How many living pods name each VNI."""

    def ref(self, uid: PodUid) -> PodRef | None:
        """Return the name of a pod that carries a job's network."""
        told = self._told.get(uid)
        return None if told is None else told.pod

    def see(self, uid: PodUid, meta: ObjectMeta, ended: bool) -> None:  # noqa: FBT001  a listener
        """Take over what a pod's annotation says."""
        text = meta.annotations.get(multus.ANNOTATION, "")
        vni = None if ended or not text else multus.vni_of(text)
        if vni is None:
            if uid in self._told:
                self._forget_told(uid)
            return
        address = multus.address_of(text, attachment_name(vni)) or ""
        told = _Told(vni, address, PodRef(meta.namespace, meta.name, meta.uid))
        if self._told.get(uid) != told:
            self._forget_told(uid)
            self._told[uid] = told
            self._pods.setdefault(vni, set()).add(uid)
            self.users[vni] += 1

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._forget_told(uid)
        given = self._given.pop(uid, None)
        if given is not None:
            self._leave(given[0], uid)

    def place(self, uid: PodUid, vni: int, subnet: Subnet, rank: int) -> int | None:
        """Return the pod's place in the subnet, choosing one at first; None: the subnet is full."""
        given = self._given.get(uid)
        if given is not None and given[0] == vni:
            return given[1]
        mine = self._told.get(uid)
        found = place_of(subnet, mine.address) if mine is not None and mine.vni == vni else None
        if found is None:
            found = slot(rank, self._taken(vni, subnet, but=uid), subnet)
        if found is not None:
            self._given[uid] = vni, found
            self._pods.setdefault(vni, set()).add(uid)
        return found

    def _taken(self, vni: int, subnet: Subnet, *, but: PodUid) -> set[int]:
        taken = set()
        for uid in self._pods.get(vni, ()):
            given, told = self._given.get(uid), self._told.get(uid)
            if uid == but:
                continue
            if given is not None and given[0] == vni:
                taken.add(given[1])
            elif told is not None and (place := place_of(subnet, told.address)) is not None:
                taken.add(place)
        return taken

    def _forget_told(self, uid: PodUid) -> None:
        told = self._told.pop(uid, None)
        if told is None:
            return
        self.users[told.vni] -= 1
        if not self.users[told.vni]:
            del self.users[told.vni]
        given = self._given.get(uid)
        if given is None or given[0] != told.vni:
            self._leave(told.vni, uid)

    def _leave(self, vni: int, uid: PodUid) -> None:
        pods = self._pods.get(vni)
        if pods is not None:
            pods.discard(uid)
            if not pods:
                del self._pods[vni]
