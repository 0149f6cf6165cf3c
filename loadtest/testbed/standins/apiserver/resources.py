"""What is served: built-in resources, and those that CustomResourceDefinitions add."""

from dataclasses import dataclass
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, dig, items_at, text_at


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    #: Whether strategic merge is supported, and list items carry no type.
    builtin: bool = True
    #: Whether the status subresource exists: the main endpoint then ignores ``status`` in updates.
    status_split: bool = False
    #: Whether ``metadata.generation`` grows with changes of the spec.
    counts_generation: bool = False

    @property
    def api_version(self) -> str:
        """``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> tuple[str, str]:
        """Key of the collection; versions of one resource share it."""
        return self.group, self.plural


# group/version: plural:Kind, with flags c (cluster scope), s (status), g (generation)
_BUILTIN: Final = {
    "v1": "pods:Pod:sg nodes:Node:cs namespaces:Namespace:cs events:Event secrets:Secret "
    "configmaps:ConfigMap services:Service:s endpoints:Endpoints serviceaccounts:ServiceAccount "
    "persistentvolumes:PersistentVolume:cs persistentvolumeclaims:PersistentVolumeClaim:s "
    "replicationcontrollers:ReplicationController:sg resourcequotas:ResourceQuota:s "
    "limitranges:LimitRange podtemplates:PodTemplate:g",
    "apps/v1": "deployments:Deployment:sg replicasets:ReplicaSet:sg statefulsets:StatefulSet:sg "
    "daemonsets:DaemonSet:sg",
    "batch/v1": "jobs:Job:sg cronjobs:CronJob:sg",
    "coordination.k8s.io/v1": "leases:Lease",
    "discovery.k8s.io/v1": "endpointslices:EndpointSlice:g",
    "events.k8s.io/v1": "events:Event",
    "policy/v1": "poddisruptionbudgets:PodDisruptionBudget:sg",
    "scheduling.k8s.io/v1": "priorityclasses:PriorityClass:cg",
    "storage.k8s.io/v1": "storageclasses:StorageClass:c csinodes:CSINode:c csidrivers:CSIDriver:c "
    "csistoragecapacities:CSIStorageCapacity volumeattachments:VolumeAttachment:cs",
    "resource.k8s.io/v1": "resourceclaims:ResourceClaim:s resourceslices:ResourceSlice:cg "
    "deviceclasses:DeviceClass:cg resourceclaimtemplates:ResourceClaimTemplate",
    "admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations:"
    "MutatingWebhookConfiguration:cg "
    "validatingwebhookconfigurations:ValidatingWebhookConfiguration:cg",
    "apiextensions.k8s.io/v1": "customresourcedefinitions:CustomResourceDefinition:csg",
    "rbac.authorization.k8s.io/v1": "clusterroles:ClusterRole:c "
    "clusterrolebindings:ClusterRoleBinding:c roles:Role rolebindings:RoleBinding",
}


def builtin_resources() -> list[Resource]:
    """Return every built-in resource."""
    return [
        _builtin(api_version, entry)
        for api_version, entries in _BUILTIN.items()
        for entry in entries.split()
    ]


def _builtin(api_version: str, entry: str) -> Resource:
    plural, kind, flags = (*entry.split(":"), "")[:3]
    group, _, version = api_version.rpartition("/")
    return Resource(
        group, version, plural, kind,
        namespaced="c" not in flags, status_split="s" in flags, counts_generation="g" in flags,
    )  # fmt: skip


def custom_resources(crd: JsonObject) -> list[Resource]:
    """Return the resources that a CustomResourceDefinition serves, one per served version."""
    return [
        Resource(
            text_at(crd, "spec", "group"),
            text_at(version, "name"),
            text_at(crd, "spec", "names", "plural"),
            text_at(crd, "spec", "names", "kind"),
            namespaced=text_at(crd, "spec", "scope") != "Cluster",
            builtin=False,
            status_split=isinstance(dig(version, "subresources", "status"), dict),
            counts_generation=True,
        )
        for version in items_at(crd, "spec", "versions")
        if version.get("served")
    ]


class Registry:
    """Resources by (group, version, plural)."""

    def __init__(self) -> None:
        self._by_path = {(r.group, r.version, r.plural): r for r in builtin_resources()}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource of a path, ``None`` when it is not served."""
        return self._by_path.get((group, version, plural))

    def all(self) -> list[Resource]:
        """Return every resource, for discovery."""
        return list(self._by_path.values())

    def add(self, crd: JsonObject) -> None:
        """Serve what a CustomResourceDefinition describes."""
        for resource in custom_resources(crd):
            self._by_path[resource.group, resource.version, resource.plural] = resource

    def remove(self, crd: JsonObject) -> None:
        """Stop serving what a CustomResourceDefinition described."""
        for resource in custom_resources(crd):
            self._by_path.pop((resource.group, resource.version, resource.plural), None)
