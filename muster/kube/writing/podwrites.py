"""Releases, binds and evicts a pod, and returns what came of it.

Nothing is sent twice blindly. If the answer does not show in which state the pod is now,
the pod is read again, and the outcome states what was found::

    PATCH ── 200 ───────────────────────────────────────► Released
      │ 404, or 422 on metadata.uid ────────────────────► PodVanished
      │ 409 ────────────────────────────────────────────► Conflicted (read, plan again)
      │ 422 ──► read again ── gate gone ────────────────► AlreadyReleased (with the plan found)
      │                    └─ still gated ──────────────► Refused
      │ other answers ──────────────────────────────────► Refused
      └ no answer ──────────────────────────────────────► Unclear (repeating is harmless)

Releasing twice to the same nodes is answered 200 by the server and changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from muster.cluster.events import PlanNote
from muster.kube import names
from muster.kube.errors import APIError, Conflict, DecodeError, Invalid, NotFound, TransportError
from muster.kube.resources import PODS, Resource
from muster.kube.translation.planannotation import plan_note
from muster.kube.wire import PartialObject, Pod
from muster.kube.writing import podbodies
from muster.kube.writing.podbodies import NOTHING, ReleaseExtra

_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"


class PinKind(StrEnum):
    """How a pod is held to its plan; the values are those of the configuration."""

    AFFINITY = "affinity"  # required node affinity: binding
    NOMINATE = "nominate"  # status.nominatedNodeName: tried first, other nodes after it


@dataclass(frozen=True, slots=True)
class PodRef:
    """One particular pod: its name may be used again, its UID never is."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Released:
    """The gate is off and the pin is on."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class AlreadyReleased:
    """The gate was off before."""

    #: The plan that the pod carries.
    note: PlanNote | None
    #: The node that the pod is bound to.
    node: str | None


@dataclass(frozen=True, slots=True)
class PodVanished:
    """The pod is gone, or its name belongs to another one now."""


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The pod changed since it was read: read it again before anything else."""


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """The server does not accept the write; repeating it does not help."""

    message: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """There was no answer, so the write may have taken effect. Repeating it is harmless."""

    message: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is bound to the node that was asked for."""

    #: Whether it was bound there already.
    before: bool = False


@dataclass(frozen=True, slots=True)
class BoundElsewhere:
    """The pod is bound to another node."""

    node: str


ReleaseOutcome = Released | AlreadyReleased | PodVanished | Conflicted | WriteRefused | Unclear
BindOutcome = Bound | BoundElsewhere | PodVanished | WriteRefused | Unclear


class PodClient(Protocol):
    """What is needed of ``KubeClient``."""

    async def patch(
        self,
        resource: Resource[Pod],
        name: str,
        body: bytes,
        *,
        namespace: str | None = None,
        content_type: str = _STRATEGIC,
        subresource: str = "",
    ) -> PartialObject:
        """See ``KubeClient``."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """See ``KubeClient``."""
        ...

    async def post(self, path: str, body: Mapping[str, object], *, retry_429: bool = True) -> None:
        """See ``KubeClient``."""
        ...


async def release_pod(
    client: PodClient,
    pod: PodRef,
    note: PlanNote,
    *,
    pin: PinKind = PinKind.AFFINITY,
    seen: Pod | None = None,
    extra: ReleaseExtra = NOTHING,
) -> ReleaseOutcome:
    """Lift Muster's gate and hold the pod to ``note``.

    ``seen``: the pod as last read; needed if it may have node affinity of its own.
    ``PinKind.NOMINATE`` takes two writes: the node is nominated before the gate is lifted, so
    kube-scheduler never sees the pod without it. ``extra``: annotations that go with it. Raises
    ``ValueError`` as ``release.affinity_body`` does.
    """
    if pin is PinKind.AFFINITY:
        return await _patch(client, pod, podbodies.affinity_body(pod.uid, note, seen, extra))
    first = await nominate_pod(client, pod, note.node, extra.version)
    if not isinstance(first, Released):
        return first
    if extra.version:
        extra = replace(extra, version=first.resource_version)
    return await _patch(client, pod, podbodies.ungate_body(pod.uid, note, extra))


async def nominate_pod(
    client: PodClient, pod: PodRef, node: str, version: str = ""
) -> ReleaseOutcome:
    """Write ``status.nominatedNodeName``, "" takes it back; ``version``: only on that one."""
    body = podbodies.nominate_body(pod.uid, node, version)
    return await _patch(client, pod, body, content_type=_MERGE, subresource="status")


async def bind_pod(
    client: PodClient, pod: PodRef, node: str, *, annotations: Mapping[str, str] | None = None
) -> BindOutcome:
    """Create the Binding; a pod that is bound to ``node`` already counts as bound.

    The server adds ``annotations`` to the pod and refuses a UID that is not the pod's.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": dict(annotations or {}),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = PODS.path(pod.name, namespace=pod.namespace, subresource="binding")
    try:
        await client.post(path, body)
    except NotFound:
        return PodVanished()
    except Conflict as error:
        return await _after_bind_conflict(client, pod, node, error)
    except APIError as error:
        return WriteRefused(str(error))
    except (TransportError, DecodeError) as error:
        return Unclear(str(error))
    return Bound()


async def evict_pod(client: PodClient, pod: PodRef, *, unbound: bool = False) -> bool:
    """Evict through the Eviction API, only the pod of this UID.

    A pod that is gone, or a name that belongs to another pod now, counts as done. With
    ``unbound`` a pod that has a node by now is left alone, and False is returned. Raises
    ``TooManyRequests`` where a disruption budget does not allow it now, without a retry;
    ``Conflict`` where the pod changed in between.

    The pod is read first and evicted only at the version that was read, because in between
    kube-scheduler may bind it. With a resourceVersion an eviction is also answered at once. With
    a wrong UID alone kube-apiserver 1.35 repeats it for 10 s before it answers 409
    (pkg/registry/core/pod/storage/eviction.go).
    """
    path = PODS.path(pod.name, namespace=pod.namespace, subresource="eviction")
    try:
        found = await client.get_pod(pod.namespace, pod.name)
        if found.metadata.uid != pod.uid:
            return True
        if unbound and found.spec.node_name:
            return False
        seen = {"uid": pod.uid, "resourceVersion": found.metadata.resource_version}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": seen},
        }
        await client.post(path, body, retry_429=False)
    except NotFound:
        return True
    return True


async def _patch(
    client: PodClient,
    pod: PodRef,
    body: bytes,
    *,
    content_type: str = _STRATEGIC,
    subresource: str = "",
) -> ReleaseOutcome:
    try:
        meta = await client.patch(
            PODS,
            pod.name,
            body,
            namespace=pod.namespace,
            content_type=content_type,
            subresource=subresource,
        )
    except NotFound:
        return PodVanished()
    except Conflict:
        return Conflicted()
    except Invalid as error:
        if "metadata.uid" in error.fields:
            return PodVanished()
        return await _after_refusal(client, pod, str(error))
    except APIError as error:
        return WriteRefused(str(error))
    except (TransportError, DecodeError) as error:
        return Unclear(str(error))
    return Released(meta.metadata.resource_version)


async def _after_refusal(client: PodClient, pod: PodRef, message: str) -> ReleaseOutcome:
    """Return what a refused release means, by reading the pod again."""
    found = await _read(client, pod)
    if not isinstance(found, Pod):
        return found
    if any(gate.name == names.PLAN_GATE for gate in found.spec.scheduling_gates):
        return WriteRefused(message)
    text = found.metadata.annotations.get(names.PLAN)
    return AlreadyReleased(None if text is None else plan_note(text), found.spec.node_name or None)


async def _after_bind_conflict(
    client: PodClient, pod: PodRef, node: str, error: Conflict
) -> BindOutcome:
    """Return what a refused binding means: bound before, another pod, or still gated."""
    found = await _read(client, pod)
    if not isinstance(found, Pod):
        return found
    if found.spec.node_name:
        return (
            Bound(before=True)
            if found.spec.node_name == node
            else BoundElsewhere(found.spec.node_name)
        )
    return WriteRefused(str(error))


async def _read(client: PodClient, pod: PodRef) -> Pod | PodVanished | WriteRefused | Unclear:
    try:
        found = await client.get_pod(pod.namespace, pod.name)
    except NotFound:
        return PodVanished()
    except APIError as error:
        return WriteRefused(str(error))
    except (TransportError, DecodeError) as error:
        return Unclear(str(error))
    return found if found.metadata.uid == pod.uid else PodVanished()
