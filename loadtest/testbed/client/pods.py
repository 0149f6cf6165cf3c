"""Pods of gangs as a Job controller would create them, for drivers of load and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.nodes import GPU
from muster.kube import names

INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Gang:
    """What the pods of one gang have in common. `gpus` per pod; `minimum` defaults to `size`."""

    name: str
    size: int
    gpus: int = 8
    namespace: str = "default"
    required: str = ""  # a level's label key
    preferred: str = ""
    minimum: str = ""
    priority_class: str = ""
    spares: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    grace_s: int = 0  # how long its pods may take to end

    @property
    def annotations(self) -> dict[str, str]:
        """The keys that Muster reads; empty ones are left out."""
        keys = {
            names.GANG_SIZE: str(self.size),
            names.GANG_MIN: self.minimum,
            names.TOPOLOGY_REQUIRED: self.required,
            names.TOPOLOGY_PREFERRED: self.preferred,
            names.SPARES: self.spares,
        }
        return {key: value for key, value in keys.items() if value}


async def create_owner(api: Api, gang: Gang) -> JSON:
    """Create the suspended Job that owns the gang's pods; returns its owner reference.

    Pods with a controller may be pinned in their spec; a Job that is not suspended would make
    the Job controller, where it runs, create pods of its own.
    """
    made = await api.create(f"/apis/batch/v1/namespaces/{gang.namespace}/jobs", owning_job(gang))
    return owner_reference(gang, made["metadata"]["uid"])


def owning_job(gang: Gang) -> JSON:
    """Return a suspended Job of the gang's size."""
    container = {"name": "main", "image": "example.com/train"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": gang.name, "namespace": gang.namespace},
        "spec": {
            "suspend": True,
            "parallelism": gang.size,
            "completions": gang.size,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def owner_reference(gang: Gang, uid: str) -> JSON:
    """Return what the gang's pods say of their Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": gang.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def members(gang: Gang, owner: JSON | None = None) -> Iterator[JSON]:
    """Yield the gang's pods, in rank order."""
    for rank in range(gang.size):
        # As an Indexed Job writes it; Muster reads ranks from there.
        index = {INDEX: str(rank)}
        labels = {**gang.labels, names.GANG: gang.name, **index}
        yield pod(
            f"{gang.name}-{rank}",
            namespace=gang.namespace,
            gpus=gang.gpus,
            labels=labels,
            annotations={**gang.annotations, **index},
            owner=owner,
            priority_class=gang.priority_class,
            grace_s=gang.grace_s,
        )


def pod(
    name: str,
    *,
    namespace: str = "default",
    gpus: int = 0,
    cpu: str = "1",
    memory: str = "1Gi",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: JSON | None = None,
    priority_class: str = "",
    grace_s: int = 0,
) -> JSON:
    """Return a v1 Pod with one container; without gpus it is one that Muster does not manage."""
    resources = {"cpu": cpu, "memory": memory}
    if gpus:
        resources[GPU] = str(gpus)
    metadata: JSON = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    limits = {GPU: str(gpus)} if gpus else {}
    container = {
        "name": "main",
        "image": "example.com/train",
        "resources": {"requests": resources, "limits": limits},
    }
    spec: JSON = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
