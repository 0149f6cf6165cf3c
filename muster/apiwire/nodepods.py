"""``GET /v1/nodes/NODE/pods``: the pods of a node, as Kubernetes lists and watches them.

The answers are those of the API server to ``GET /api/v1/pods?fieldSelector=spec.nodeName=NODE``,
with the fields of ``shown`` alone and as one page: a PodList, with ``watch=1`` one event per line,
and a Status for a refusal. So what follows pods at the API server follows them here, too.
"""

from typing import Final
from urllib.parse import quote

from muster.kube import wire
from muster.kube.names import PLAN

PATH: Final = "/v1/nodes"
PLURAL: Final = "pods"


def path(node: str) -> str:
    """Return the path for one node."""
    return f"{PATH}/{quote(node, safe='')}/{PLURAL}"


def shown(pod: wire.Pod) -> wire.Pod:
    """Return a pod with what a device plugin needs: no command, variable, volume or label."""
    meta, spec = pod.metadata, pod.spec
    return wire.Pod(
        metadata=shown_metadata(meta),
        spec=wire.PodSpec(
            node_name=spec.node_name,
            containers=tuple(map(_asks, spec.containers)),
            init_containers=tuple(map(_asks, spec.init_containers)),
        ),
        status=wire.PodStatus(phase=pod.status.phase),
    )


def shown_metadata(meta: wire.ObjectMeta) -> wire.ObjectMeta:
    """Return what identifies a pod, its times and its plan."""
    return wire.ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        annotations={PLAN: meta.annotations[PLAN]} if PLAN in meta.annotations else {},
    )


def _asks(container: wire.Container) -> wire.Container:
    """Return a container's name, kind and extended resources (``DOMAIN/NAME``)."""
    limits = {name: amount for name, amount in container.resources.limits.items() if "/" in name}
    return wire.Container(
        name=container.name,
        resources=wire.Resources(limits=limits),
        restart_policy=container.restart_policy,
    )
