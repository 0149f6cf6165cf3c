"""The controller of an object, by group and kind."""

from typing import Final

from muster.kube import wire

_SERVICES: Final = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("", "ReplicationController"),
        ("apps.kruise.io", "CloneSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("ray.io", "RayService"),
    }
)
"""(group, kind) of controllers whose pods serve requests; Knative, KServe and Argo Rollouts use
them, too."""


def owner(meta: wire.ObjectMeta, group: str, kind: str) -> str:
    """Return the name of the controller of that group and kind, or "".

    The group matters: Volcano has a kind Job too.
    """
    for reference in meta.owner_references:
        same_group = reference.api_version.partition("/")[0] == group
        if reference.controller and reference.kind == kind and same_group:
            return reference.name
    return ""


def is_service(meta: wire.ObjectMeta) -> bool:
    """Return whether a controller of pods that serve requests made an object."""
    for reference in meta.owner_references:
        group, _, _ = reference.api_version.rpartition("/")
        if reference.controller and (group, reference.kind) in _SERVICES:
            return True
    return False
