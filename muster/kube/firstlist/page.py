"""Pods as a list tells them, decoded only as far as most of them are ever looked at.

``ListedPage`` is what a page of them is read as, whatever it was written in: JSON here, protobuf
in ``muster.kube.firstlist.podpage``.

A cluster that starts up, or whose watch broke, is told of every pod at once, and nearly all of
them are bound, nobody's business, and alike: what their owner wrote into all of them is byte for
byte the same. So a listed pod is decoded to what sets it apart, and the rest stays JSON::

    metadata   name, uid, times     ◄── its own
    spec       nodeName             ◄── its own
    the rest   requests, ports, labels, owner … as bytes ──► ``kind``: equal bytes, equal pods

    pod() : all of it, as a ``wire.Pod``: the same as if it had been decoded at once

Volumes, conditions, and where a node affinity points to are kept, but are no part of the kind:
they differ for every pod, and are nothing that a *settled* pod
(``muster.kube.translation.podclass``) is judged by.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.uids import Uids
from muster.kube import wire
from muster.kube.errors import DecodeError
from muster.kube.names import PLAN
from muster.kube.resources import PODS, Resource
from muster.kube.translation.translate import pod_uids
from muster.kube.wire import Wire

Raw = msgspec.Raw
_ABSENT: Final = Raw()
"""JSON that is not looked at, empty where the field is absent."""

PLANNED: Final = f'"{PLAN}"'.encode()
MOST_TIMES: Final = 65_536
Times = NDArray[np.float64]
"""Seconds since the epoch, 0 for none, NaN for what is no time."""


Versions = NDArray[np.int64]
"""Resource versions, which are numbers (KEP-5504); ``NO_VERSION`` for one that is none."""
NO_VERSION: Final = -1
VERSION_DIGITS: Final = 18  # as many as an int64 holds for sure


def version(text: str) -> int:
    """Return a resource version as a number."""
    known = text.isascii() and text.isdecimal() and len(text) <= VERSION_DIGITS
    return int(text) if known else NO_VERSION


class ListedMeta(Wire, frozen=True):
    """meta/v1 ObjectMeta. Times are text."""

    name: str = ""
    generate_name: Raw = _ABSENT
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Raw = _ABSENT
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Raw = _ABSENT
    annotations: Raw = _ABSENT
    owner_references: Raw = _ABSENT


class ListedContainer(Wire, frozen=True):
    """core/v1 Container, and a container's status."""

    name: Raw = _ABSENT
    resources: Raw = _ABSENT
    ports: Raw = _ABSENT
    restart_policy: Raw = _ABSENT
    allocated_resources: Raw = _ABSENT


class ListedAffinity(Wire, frozen=True):
    """core/v1 Affinity."""

    node_affinity: Raw = _ABSENT
    pod_affinity: Raw = _ABSENT
    pod_anti_affinity: Raw = _ABSENT


class ListedSpec(Wire, frozen=True):
    """core/v1 PodSpec."""

    node_name: str = ""
    scheduler_name: Raw = _ABSENT
    scheduling_gates: Raw = _ABSENT
    containers: tuple[ListedContainer, ...] = ()
    init_containers: tuple[ListedContainer, ...] = ()
    overhead: Raw = _ABSENT
    resources: Raw = _ABSENT
    node_selector: Raw = _ABSENT
    affinity: ListedAffinity | None = None
    tolerations: Raw = _ABSENT
    topology_spread_constraints: Raw = _ABSENT
    priority: Raw = _ABSENT
    priority_class_name: Raw = _ABSENT
    preemption_policy: Raw = _ABSENT
    volumes: Raw = _ABSENT
    resource_claims: Raw = _ABSENT
    host_network: Raw = _ABSENT
    restart_policy: Raw = _ABSENT
    scheduling_group: Raw = _ABSENT
    workload_ref: Raw = _ABSENT


class ListedStatus(Wire, frozen=True):
    """core/v1 PodStatus."""

    phase: str = ""
    start_time: str | None = None
    nominated_node_name: Raw = _ABSENT
    conditions: Raw = _ABSENT
    container_statuses: tuple[ListedContainer, ...] = ()
    init_container_statuses: tuple[ListedContainer, ...] = ()


_NO_AFFINITY: Final = ListedAffinity()
_ENCODER: Final = msgspec.json.Encoder()
_POD: Final = msgspec.json.Decoder(wire.Pod)
_TIME: Final = msgspec.json.Decoder(datetime)


class ListedPod(Wire, frozen=True):
    """core/v1 Pod, of a list."""

    metadata: ListedMeta = ListedMeta()
    spec: ListedSpec = ListedSpec()
    status: ListedStatus = ListedStatus()

    def kind(self) -> bytes:
        """Return what pods have in common that differ in name, node, times and volumes only."""
        meta, spec, status = self.metadata, self.spec, self.status
        affinity = spec.affinity or _NO_AFFINITY
        # JSON has no NUL, so what is joined can be told apart again.
        return b"\0".join(
            (
                meta.namespace.encode(),
                b"deleted" if meta.deletion_timestamp is not None else b"",
                b"bound" if spec.node_name else b"",
                status.phase.encode(),
                meta.labels,
                meta.annotations,
                meta.owner_references,
                spec.scheduler_name,
                spec.scheduling_gates,
                spec.overhead,
                spec.resources,
                spec.node_selector,
                spec.tolerations,
                affinity.pod_affinity,
                affinity.pod_anti_affinity,
                spec.topology_spread_constraints,
                spec.priority,
                spec.priority_class_name,
                spec.preemption_policy,
                spec.resource_claims,
                spec.host_network,
                spec.restart_policy,
                spec.scheduling_group,
                spec.workload_ref,
                *_parts(spec.containers),
                *_parts(spec.init_containers),
                *_parts(status.container_statuses),
                *_parts(status.init_container_statuses),
            )
        )

    def pod(self) -> wire.Pod:
        """Return all of the pod. Raises ``DecodeError`` for what is no pod."""
        try:
            return _POD.decode(_ENCODER.encode(self))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            called = f"{self.metadata.namespace}/{self.metadata.name}"
            raise DecodeError(f"{PODS} {called}: {error}") from error


def _parts(containers: tuple[ListedContainer, ...]) -> list[Raw | bytes]:
    parts: list[Raw | bytes] = [b"."]
    for one in containers:
        named = one.name, one.resources, one.ports, one.restart_policy, one.allocated_resources
        parts += named
    return parts


class ListedPage(Sequence[ListedPod]):
    """Some pods of a list, in its order, and which of them are alike.

    ``leaders``: int[k], ascending, 0 first. From one of them to the next all are of one ``kind``.
    """

    leaders: NDArray[np.intp]

    @abstractmethod
    def uids(self) -> Uids:
        """Return the UID of each."""

    @abstractmethod
    def nodes(self) -> Sequence[str]:
        """Return the node of each, "" for one that is not bound."""

    @abstractmethod
    def versions(self) -> Versions:
        """Return the resource version of each."""

    @abstractmethod
    def created(self) -> Times:
        """Return when each was made."""

    @abstractmethod
    def started(self) -> Times:
        """Return when the kubelet first saw each."""

    @abstractmethod
    def kind(self, place: int) -> Hashable | None:
        """Return what pods have in common that differ in nothing of account but node and times.

        ``None``: it is to be decoded by itself.
        """

    @abstractmethod
    def namespace(self, place: int) -> str:
        """Return a pod's namespace."""

    @abstractmethod
    def is_planned(self, place: int) -> bool:
        """Whether a pod carries a plan of Muster's; may be true of one that only looks like it."""

    @abstractmethod
    def pod(self, place: int) -> wire.Pod:
        """Return all of a pod. Raises ``DecodeError`` for what is no pod."""


class JsonPage(ListedPage):
    """A page that came in JSON: each pod is looked at for itself."""

    def __init__(self, pods: Sequence[ListedPod]) -> None:
        self._pods = pods
        self.leaders = np.arange(len(pods))

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def __getitem__(self, place: int) -> ListedPod: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ListedPod]: ...
    def __getitem__(self, place: int | slice) -> ListedPod | Sequence[ListedPod]:
        return self._pods[place]

    def uids(self) -> Uids:
        """Return the UID of each."""
        return pod_uids([pod.metadata.uid for pod in self._pods])

    def nodes(self) -> list[str]:
        """Return the node of each, "" for one that is not bound."""
        return [pod.spec.node_name for pod in self._pods]

    def versions(self) -> Versions:
        """Return the resource version of each."""
        texts = [pod.metadata.resource_version for pod in self._pods]
        return np.array([version(text) for text in texts], dtype=np.int64)

    def created(self) -> Times:
        """Return when each was made."""
        return np.array([epoch(pod.metadata.creation_timestamp) for pod in self._pods])

    def started(self) -> Times:
        """Return when the kubelet first saw each."""
        return np.array([epoch(pod.status.start_time) for pod in self._pods])

    def kind(self, place: int) -> Hashable:
        """Return a pod's kind."""
        return self._pods[place].kind()

    def namespace(self, place: int) -> str:
        """Return a pod's namespace."""
        return self._pods[place].metadata.namespace

    def is_planned(self, place: int) -> bool:
        """Whether a pod carries a plan."""
        return PLANNED in bytes(self._pods[place].metadata.annotations)

    def pod(self, place: int) -> wire.Pod:
        """Return all of a pod."""
        return self._pods[place].pod()


@lru_cache(maxsize=MOST_TIMES)
def epoch(text: str | None) -> float:
    """Return a time as seconds since the epoch, 0 for none, NaN for what is no time."""
    try:
        return 0.0 if text is None else _TIME.decode(f'"{text}"').timestamp()
    except msgspec.MsgspecError:
        return float("nan")


LISTED_PODS: Final = Resource(PODS.group, PODS.version, PODS.plural, ListedPod)
"""The same pods, to be listed only."""
