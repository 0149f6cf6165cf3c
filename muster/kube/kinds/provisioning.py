"""ProvisioningRequests: how Cluster Autoscaler is asked for the nodes of a whole gang.

autoscaling.x-k8s.io/v1 (kubernetes/autoscaler, cluster-autoscaler/apis, types.go). A request
names PodTemplates and counts; its spec is immutable, and conditions state its progress::

    (made) ──► Accepted ──► Provisioned ──► BookingExpired, CapacityRevoked
                  └───────► Failed

Bodies are built here from the pod as the API server has it: the template must carry
everything that scheduling looks at, also what the model never reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final

import msgspec

from muster.kube import names
from muster.kube.resources import Resource
from muster.kube.wire import Condition, ObjectMeta, OwnerReference, Wire

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
BEST_EFFORT_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
MAX_POD_SETS: Final = 32  # types.go: validation:MaxItems
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "muster"
GANG_KEY: Final = names.PREFIX + "gang-key"  # annotation: which gang asks

_NAME_LIMIT: Final = 40  # characters of the gang's name; longer ones are cut
_DIGEST_BYTES: Final = 6
_NOT_IN_TEMPLATES: Final = (
    *("nodeName", "schedulingGates", "ephemeralContainers"),
    *("hostname", "subdomain"),  # each pod's own
)
_DECIDES: Final = (  # what scheduling looks at; the rest differs between equal pods
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead"),
    *("resources", "resourceClaims", "runtimeClassName", "priority", "hostNetwork"),
)


class WholePod(Wire, frozen=True):
    """A pod with its whole spec, not only the fields of ``wire.PodSpec``."""

    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, object] = msgspec.field(default_factory=dict)


class TemplateReference(Wire, frozen=True):
    """Reference to a PodTemplate of the same namespace."""

    name: str = ""


class PodSetSpec(Wire, frozen=True):
    """One kind of pods of a request."""

    pod_template_ref: TemplateReference = TemplateReference()
    count: int = 0


class RequestSpec(Wire, frozen=True):
    """Spec of a ProvisioningRequest."""

    provisioning_class_name: str = ""
    pod_sets: tuple[PodSetSpec, ...] = ()


class RequestStatus(Wire, frozen=True):
    """Status of a ProvisioningRequest."""

    conditions: tuple[Condition, ...] = ()


class ProvisioningRequest(Wire, frozen=True):
    """autoscaling.x-k8s.io/v1 ProvisioningRequest."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RequestSpec = RequestSpec()
    status: RequestStatus = RequestStatus()


class PodTemplateObject(Wire, frozen=True):
    """core/v1 PodTemplate, of which only the metadata is ever read back."""

    metadata: ObjectMeta = ObjectMeta()


WHOLE_PODS: Final = Resource("", "v1", "pods", WholePod)
POD_TEMPLATES: Final = Resource("", "v1", "podtemplates", PodTemplateObject)
REQUESTS: Final = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", ProvisioningRequest
)


class ProvisioningProgress(StrEnum):
    """How far a request has come."""

    MADE = "Made"
    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    EXPIRED = "Expired"


@dataclass(frozen=True, slots=True)
class ProvisioningStanding:
    """How far a request has come, and why."""

    progress: ProvisioningProgress
    #: The autoscaler's message, or its reason where it gives no message.
    message: str = ""


_BY_CONDITION: Final = (  # the first that is True counts
    ("Failed", ProvisioningProgress.FAILED),
    ("CapacityRevoked", ProvisioningProgress.EXPIRED),
    ("BookingExpired", ProvisioningProgress.EXPIRED),
    ("Provisioned", ProvisioningProgress.PROVISIONED),
    ("Accepted", ProvisioningProgress.ACCEPTED),
)


def standing(request: ProvisioningRequest) -> ProvisioningStanding:
    """Return how far a request has come."""
    true = {c.type: c for c in request.status.conditions if c.status == "True"}
    for name, progress in _BY_CONDITION:
        if name in true:
            return ProvisioningStanding(progress, true[name].message or true[name].reason)
    return ProvisioningStanding(ProvisioningProgress.MADE)


@dataclass(frozen=True, slots=True)
class WantedNodes:
    """The nodes that one gang needs."""

    #: The gang's key, as the annotation ``GANG_KEY`` has it.
    gang: str
    namespace: str
    gang_name: str
    provisioning_class: str
    #: Of the provisioning class.
    parameters: Mapping[str, str]
    #: One pod of each kind, and the number of pods of that kind.
    sets: Sequence[tuple[WholePod, int]]

    @property
    def name(self) -> str:
        """The request's name: different requests of one gang have different names.

        Names of volumes do not count: a member that was recreated asks for the same nodes.
        """
        kinds = [(_kind(pod), count) for pod, count in self.sets]
        wish = [self.gang, self.provisioning_class, dict(self.parameters), kinds]
        said = msgspec.json.encode(wish, order="deterministic")
        digest = blake2b(said, digest_size=_DIGEST_BYTES).hexdigest()
        readable = "".join(c if c.isalnum() else "-" for c in self.gang_name.lower())
        return f"muster-{readable[:_NAME_LIMIT].strip('-')}-{digest}"

    def template_names(self) -> list[str]:
        """Return the names of the PodTemplates, along ``sets``."""
        return [f"{self.name}-{index}" for index in range(len(self.sets))]

    def templates(self) -> list[dict[str, object]]:
        """Return the PodTemplates, along ``sets``."""
        return [
            {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": self._metadata(name),
                "template": {
                    "metadata": {"labels": pod.metadata.labels},
                    "spec": _template_spec(pod),
                },
            }
            for name, (pod, _) in zip(self.template_names(), self.sets, strict=True)
        ]

    def request(self) -> dict[str, object]:
        """Return the ProvisioningRequest."""
        return {
            "apiVersion": REQUESTS.api_version,
            "kind": "ProvisioningRequest",
            "metadata": self._metadata(self.name),
            "spec": {
                "provisioningClassName": self.provisioning_class,
                "parameters": dict(self.parameters),
                "podSets": [
                    {"podTemplateRef": {"name": name}, "count": count}
                    for name, (_, count) in zip(self.template_names(), self.sets, strict=True)
                ],
            },
        }

    def _metadata(self, name: str) -> dict[str, object]:
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {MANAGED_BY: MANAGER},
            "annotations": {GANG_KEY: self.gang},
            "ownerReferences": [_owner(self.sets[0][0].metadata)],
        }


def _owner(meta: ObjectMeta) -> dict[str, object]:
    """Return the owner reference that deletes an object with its gang: controller, or a member.

    Without ``blockOwnerDeletion``, which would need rights on the owner's finalizers.
    """
    controller = next((owner for owner in meta.owner_references if owner.controller), None)
    owner = controller or OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid)
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }


def _kind(pod: WholePod) -> dict[str, object]:
    containers = [
        [entry.get("resources") for entry in found if isinstance(entry, dict)]
        for field in ("containers", "initContainers")
        if isinstance(found := pod.spec.get(field), list)
    ]
    return {"containers": containers} | {key: pod.spec.get(key) for key in _DECIDES}


def _template_spec(pod: WholePod) -> dict[str, object]:
    return {key: value for key, value in pod.spec.items() if key not in _NOT_IN_TEMPLATES}
