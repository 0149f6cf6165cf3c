"""What the release needs to know of managed pods that are not bound, and the model does not keep.

The model has rows and numbers; a PATCH needs names, the resourceVersion, and the pod's
own required affinity, which is rewritten as a whole. Kept from the first sight of a
managed pod until it is bound or gone.
"""

from dataclasses import dataclass, field

from cluster.ids import PodUid
from kube.plan import required_terms
from kube.wire import NodeSelectorTerm, Pod
from workloads.managed import has_gate


@dataclass(frozen=True, slots=True)
class PendingPod:
    """One managed pod that is not bound yet.

    ``terms``: its own required node affinity, None where it has none. ``gated``: our gate
    still holds it. ``owned``: a controller would replace it. ``soft``: it has a
    constraint the model does not know, so it must be free to go elsewhere.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    terms: tuple[NodeSelectorTerm, ...] | None
    gated: bool
    owned: bool
    soft: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def pending(pod: Pod, *, soft: bool) -> PendingPod:
    """Return the record of ``pod``."""
    meta = pod.metadata
    return PendingPod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        terms=required_terms(pod.spec.affinity),
        gated=has_gate(pod),
        owned=any(owner.controller for owner in meta.owner_references),
        soft=soft,
    )


@dataclass(slots=True)
class PendingPods:
    """The records by UID."""

    _pods: dict[PodUid, PendingPod] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: PodUid) -> PendingPod | None:
        """Return the record, None once the pod is bound, finished or gone."""
        return self._pods.get(uid)

    def put(self, uid: PodUid, pod: PendingPod) -> None:
        """Remember or replace a record."""
        self._pods[uid] = pod

    def drop(self, uid: PodUid) -> None:
        """Forget a pod; unknown ones are no error."""
        self._pods.pop(uid, None)
