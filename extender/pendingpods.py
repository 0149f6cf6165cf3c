"""What the release needs to know of managed pods that are not bound, and the model does not keep.

The model has rows and numbers; a PATCH needs names, and the pod as it was read where it
has node affinity of its own, because that is replaced as a whole. Kept from the first
sight of a managed pod until it is bound or gone.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from extender.config.settings import PinSetting
from muster.cluster.ids import PodUid
from muster.cluster.specs.podconstraints import PodClass
from muster.kube.kinds import multus
from muster.kube.names import PLAN
from muster.kube.translation.planannotation import plan_note, required_terms, without_pin
from muster.kube.wire import Condition, OwnerReference, Pod
from muster.kube.writing import podwrites
from muster.kube.writing.podbodies import POD_SCHEDULED
from muster.kube.writing.podwrites import PodRef
from muster.workloads.managedpods import has_gate

CONTROLLERS_KEPT: Final = 10_000  # of jobs whose pods wait; others are shared from anew


@dataclass(frozen=True, slots=True)
class PendingPod:
    """One managed pod that is not bound yet."""

    ref: PodRef
    #: the pod as it was read if it has node affinity of its own
    seen: Pod | None
    #: whether Muster's gate still holds it
    gated: bool
    #: whether a controller would replace it
    owned: bool
    #: whether a pin could make its plan fail (``suffers_from_pin``): it must be free to go
    #: elsewhere
    soft: bool
    #: whether it was released with its plan in its spec, which nothing can change any more
    pinned: bool
    #: whether kube-scheduler has it, and found no node that it may go to and passes its filters
    refused: bool = False
    #: id of the plan that it carries, "" while it is gated
    plan_id: str = ""
    #: resource version of its release, once the reply has been taken over, else ""
    released_as: str = ""
    #: resource version that was read
    version: str = ""
    #: digest of the cause in its condition (``headline_digest``), 0 for a pod without our gate
    told: int = 0
    #: who would replace it
    controller: OwnerReference | None = None
    #: its annotation for Multus as it was read
    networks: str = ""

    def pin(self, configured: PinSetting) -> podwrites.PinKind:
        """Return how to tie this pod to its plan.

        The spec of a pod that is not gated any more cannot be changed. A pinned pod whose
        node is lost can only be replaced, which needs a controller; and a pin is wrong for
        a pod whose constraints are not all known.
        """
        if not self.gated or configured is PinSetting.NOMINATE:
            return podwrites.PinKind.NOMINATE
        if configured is PinSetting.AFFINITY or (self.owned and not self.soft):
            return podwrites.PinKind.AFFINITY
        return podwrites.PinKind.NOMINATE


def suffers_from_pin(pod_class: PodClass) -> bool:
    """Return whether a required node affinity could make a good plan fail for such pods.

    Constraints the model does not know may need another node. And kube-scheduler counts
    spread domains only among nodes that the pod's affinity allows (nodeAffinityPolicy
    Honor): with a pin fewer than ``minDomains`` are left, the global minimum counts as 0,
    and a node with matching pods is refused (podtopologyspread/filtering.go).
    """
    crowded = any(c.min_domains > 1 and c.honor_node_affinity for c in pod_class.spread)
    return bool(pod_class.unmodelled) or crowded


def pending(pod: Pod, *, soft: bool, controller: OwnerReference | None = None) -> PendingPod:
    """Return the record of ``pod``; ``controller`` is its own, shared with its siblings."""
    meta, affinity = pod.metadata, pod.spec.affinity
    gated, written = has_gate(pod), pod.metadata.annotations.get(PLAN, "")
    note = plan_note(written) if written and not gated else None
    return PendingPod(
        ref=PodRef(meta.namespace, meta.name, meta.uid),
        seen=pod if affinity is not None and affinity.node_affinity is not None else None,
        gated=gated,
        owned=any(owner.controller for owner in meta.owner_references),
        soft=soft,
        pinned=is_pinned(pod),
        refused=not gated and any(map(_says_unschedulable, pod.status.conditions)),
        plan_id="" if note is None else note.plan_id,
        version=meta.resource_version,
        told=_told(pod) if gated else 0,
        controller=controller,
        networks=meta.annotations.get(multus.ANNOTATION, ""),
    )


def headline_digest(message: str) -> int:
    """Return a digest of a reason for waiting: of the part before the numbers."""
    return hash(message.partition(";")[0])


def _told(pod: Pod) -> int:
    found = (c.message for c in pod.status.conditions if c.type == POD_SCHEDULED)
    return headline_digest(next(found, ""))


def _says_unschedulable(condition: Condition) -> bool:
    return (condition.type, condition.reason) == (POD_SCHEDULED, "Unschedulable")


def is_pinned(pod: Pod) -> bool:
    """Return whether the plan that a pod carries stands in its node affinity."""
    if pod.spec.affinity is None:
        return False
    terms = required_terms(pod.spec.affinity)
    note = plan_note(pod.metadata.annotations.get(PLAN, ""))
    return terms is not None and without_pin(terms, note) != terms


@dataclass(slots=True)
class PendingPods:
    """The records by UID."""

    _pods: dict[PodUid, PendingPod] = field(default_factory=dict)
    #: the pods that kube-scheduler refuses
    refused: set[PodUid] = field(default_factory=set)
    #: versions that releases made, of pods that no watch has shown bound yet
    echoes: set[bytes] = field(default_factory=set)
    _controllers: dict[str, OwnerReference] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: PodUid) -> PendingPod | None:
        """Return the record, None once the pod is bound, finished or gone."""
        return self._pods.get(uid)

    def put(self, uid: PodUid, pod: PendingPod) -> None:
        """Remember or replace a record."""
        self._forget_echo(uid)
        self._pods[uid] = pod
        if pod.refused:
            self.refused.add(uid)
        else:
            self.refused.discard(uid)

    def controller(self, pod: Pod) -> OwnerReference | None:
        """Return who made ``pod``: one object for all that it made, which may be thousands."""
        for owner in pod.metadata.owner_references:
            if owner.controller:
                if len(self._controllers) >= CONTROLLERS_KEPT:
                    self._controllers.clear()
                return self._controllers.setdefault(owner.uid, owner)
        return None

    def released(self, uid: PodUid, version: str) -> None:
        """Take over the reply of a release with affinity.

        Not for a pod whose node affinity had to be read: it reads differently now.
        """
        pod = self._pods.get(uid)
        if pod is not None and pod.seen is None:
            self._forget_echo(uid)
            self.echoes.add(version.encode())
            self._pods[uid] = replace(pod, gated=False, pinned=True, released_as=version)

    def drop(self, uid: PodUid) -> None:
        """Forget a pod; unknown ones are no error."""
        self._forget_echo(uid)
        self._pods.pop(uid, None)
        self.refused.discard(uid)

    def _forget_echo(self, uid: PodUid) -> None:
        before = self._pods.get(uid)
        if before is not None:
            self.echoes.discard(before.released_as.encode())
