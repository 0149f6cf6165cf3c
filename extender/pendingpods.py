"""What a release needs about managed pods that are not bound, beyond what the model stores.

The model has rows and numbers. A PATCH needs names. If the pod has node affinity of its own, it
also needs the pod as it was read, because the affinity is replaced as a whole. A record is stored
from the first event of a managed pod until the pod is bound or deleted.
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

_NEVER: Final = "Never"  # core/v1 PreemptionPolicy
MOST_CONTROLLERS: Final = 10_000  # that are shared between pods; then the table starts again empty


@dataclass(frozen=True, slots=True)
class PendingPod:
    """One managed pod that is not bound yet."""

    #: namespace, name and UID
    ref: PodRef
    #: the pod as it was read if it has node affinity of its own
    seen: Pod | None
    #: whether it still has Muster's gate
    gated: bool
    #: whether a controller would replace it
    owned: bool
    #: whether a pin could make its plan fail (``suffers_from_pin``), so that it is not pinned
    soft: bool
    #: whether it was released with its plan in its node affinity, which is immutable then
    pinned: bool
    #: whether kube-scheduler has reported it as unschedulable
    refused: bool = False
    #: id of the plan that it carries, "" while it is gated
    plan_id: str = ""
    #: resource version of its release, "" before the reply has been applied
    released_as: str = ""
    #: resource version that was read
    version: str = ""
    #: digest of the cause in its condition (``headline_digest``), 0 for a pod without our gate
    condition_digest: int = 0
    #: the controller that would replace it
    controller: OwnerReference | None = None
    #: its annotation for Multus as it was read
    networks: str = ""
    #: whether it may make others give way (``preemptionPolicy`` is not Never)
    preempts: bool = True

    def pin(self, configured: PinSetting) -> podwrites.PinKind:
        """Return how to tie this pod to its plan.

        The node affinity of a pod without gates cannot be changed. If a pinned pod loses its node,
        it must be replaced, which needs a controller. A pin is wrong for a pod that has constraints
        unknown to the model.
        """
        if not self.gated or configured is PinSetting.NOMINATE:
            return podwrites.PinKind.NOMINATE
        if configured is PinSetting.AFFINITY or (self.owned and not self.soft):
            return podwrites.PinKind.AFFINITY
        return podwrites.PinKind.NOMINATE


def suffers_from_pin(pod_class: PodClass) -> bool:
    """Return whether a required node affinity could make a good plan fail for such pods.

    Constraints that the model does not know may need another node. And kube-scheduler counts
    spread domains only among nodes that the pod's affinity allows (nodeAffinityPolicy Honor). With
    a pin fewer than ``minDomains`` are left, so the global minimum counts as 0, and a node with
    matching pods is rejected (podtopologyspread/filtering.go).
    """
    crowded = any(c.min_domains > 1 and c.honor_node_affinity for c in pod_class.spread)
    return bool(pod_class.unmodelled) or crowded


def pending(pod: Pod, *, soft: bool, controller: OwnerReference | None = None) -> PendingPod:
    """Return the record of ``pod``; ``controller`` is an object shared with its siblings."""
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
        refused=not gated and any(map(_is_unschedulable, pod.status.conditions)),
        plan_id="" if note is None else note.plan_id,
        version=meta.resource_version,
        condition_digest=_condition_digest(pod) if gated else 0,
        controller=controller,
        networks=meta.annotations.get(multus.ANNOTATION, ""),
        preempts=pod.spec.preemption_policy != _NEVER,
    )


def headline_digest(message: str) -> int:
    """Return a digest of the part of a condition's message before the numbers."""
    return hash(message.partition(";")[0])


def _condition_digest(pod: Pod) -> int:
    found = (c.message for c in pod.status.conditions if c.type == POD_SCHEDULED)
    return headline_digest(next(found, ""))


def _is_unschedulable(condition: Condition) -> bool:
    return (condition.type, condition.reason) == (POD_SCHEDULED, "Unschedulable")


def is_pinned(pod: Pod) -> bool:
    """Return whether a pod's node affinity contains the plan that the pod carries."""
    if pod.spec.affinity is None:
        return False
    terms = required_terms(pod.spec.affinity)
    note = plan_note(pod.metadata.annotations.get(PLAN, ""))
    return terms is not None and without_pin(terms, note) != terms


@dataclass(slots=True)
class PendingPods:
    """The records by UID."""

    _pods: dict[PodUid, PendingPod] = field(default_factory=dict)
    #: the pods that kube-scheduler reported as unschedulable
    refused: set[PodUid] = field(default_factory=set)
    #: versions that releases made, of pods that no watch has shown as bound yet
    echoes: set[bytes] = field(default_factory=set)
    _controllers: dict[str, OwnerReference] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: PodUid) -> PendingPod | None:
        """Return the record, None once the pod is bound, finished or deleted."""
        return self._pods.get(uid)

    def put(self, uid: PodUid, pod: PendingPod) -> None:
        """Store or replace a record."""
        self._forget_echo(uid)
        self._pods[uid] = pod
        if pod.refused:
            self.refused.add(uid)
        else:
            self.refused.discard(uid)

    def controller(self, pod: Pod) -> OwnerReference | None:
        """Return the controller of ``pod``: one object shared by all its pods, maybe thousands."""
        for owner in pod.metadata.owner_references:
            if owner.controller:
                if len(self._controllers) >= MOST_CONTROLLERS:
                    self._controllers.clear()
                return self._controllers.setdefault(owner.uid, owner)
        return None

    def released(self, uid: PodUid, version: str) -> None:
        """Apply the reply to a release with a pin.

        A pod with node affinity of its own is skipped: its affinity has changed, so it must be read
        again.
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
