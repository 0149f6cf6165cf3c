"""Wire objects → ``muster.cluster.events``: the only place that knows both.

Translation never fails. What cannot be read is either named in the pod's class as
unmodelled (the pod is then placed softly) or returned as a problem to be logged.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Annotated, Final

import msgspec

from muster.cluster.columns.uids import UID_BYTES, Uids
from muster.cluster.events import (
    DeviceSpec,
    NamespaceGone,
    NamespaceUpserted,
    NodeGone,
    NodeUpserted,
    PlanNote,
    PodGone,
    PodUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.deviceshape import MigProfile
from muster.cluster.specs.podconstraints import LabelSet, Taint
from muster.kube import names, wire
from muster.kube.quantity import QuantityError
from muster.kube.translation import allocationsannotation
from muster.kube.translation.firmmarks import KEYS, is_firm
from muster.kube.translation.planannotation import encode_plan, plan_note
from muster.kube.translation.podclass import CLASS_LIMIT, ClassCache, DeviceAskReader
from muster.kube.translation.requests import amounts
from muster.kube.translation.selectors import UnknownOperator, kept_labels, taint
from muster.kube.translation.volumes import UNCONSTRAINED, VolumeLookup, restricts

__all__ = [
    "Translator", "encode_plan", "namespace_event", "namespace_gone", "node_event", "node_gone",
    "node_kind", "plan_note", "pod_event", "pod_gone", "pod_uid", "pod_uids", "read_node",
]  # fmt: skip

_UUID_LENGTH: Final = 36
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUIDS: Final = re.compile(rf"{_UUID}(?:\n{_UUID})*")
_MIRROR: Final = "kubernetes.io/config.mirror"  # annotation of static pods; core/v1
_STAYS: Final = (
    (names.MOVABLE, "false"),
    ("karpenter.sh/do-not-disrupt", "true"),  # karpenter, concepts/disruption
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),  # cluster-autoscaler's FAQ
)
"""Annotations of pods that must not be moved, and the value that forbids it."""


# Nodes write these numbers: values that the model cannot count are refused here.
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 15)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_MOST_DEVICES: Final = 4096  # of one node
_LAST_UIDS: Final = 256  # several handlers of one pod's event ask for the same one


class PlacementWire(msgspec.Struct, frozen=True, gc=False):
    """A MIG profile of a device."""

    name: str
    #: (start, bits of memory slices) of each of its places.
    masks: tuple[tuple[_Place, _Count], ...]


class DeviceWire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One device in the ``muster.dev/node-topology`` annotation."""

    name: _Name
    resource: str
    driver: str = ""
    pool: str = ""
    kind: str = ""
    numa: int = -1
    parent: str = ""
    healthy: bool = True
    counters: dict[str, _Count] = msgspec.field(default_factory=dict)
    family: str = ""
    model: str = ""
    tier: str = ""
    by_memory: bool = False
    placements: tuple[PlacementWire, ...] = ()
    #: Why it is not healthy, in fixed words ("XID 79"): nodes with different texts are of different
    #: kinds, so a text that changes all the time costs a new kind each time.
    reason: str = ""


class NodeTopologyWire(msgspec.Struct, frozen=True, gc=False):
    """The ``muster.dev/node-topology`` annotation; fields of later versions are ignored."""

    devices: Annotated[tuple[DeviceWire, ...], msgspec.Meta(max_length=_MOST_DEVICES)] = ()


DeriveDevices = Callable[[wire.Node], tuple[DeviceSpec, ...]]

_NO_ALLOCATIONS: Final[Mapping[PodUid, tuple[str, ...]]] = {}
_TOPOLOGY: Final = msgspec.json.Decoder(NodeTopologyWire)


class Translator:
    """Translates the pods of one cluster, sharing equal values between them.

    ``devices`` reads what pods ask of devices; without it only asks for whole devices are read.
    """

    def __init__(self, devices: DeviceAskReader | None = None) -> None:
        self._classes = ClassCache(devices)
        self._labels: dict[LabelSet, LabelSet] = {}

    def pod_event(
        self,
        pod: wire.Pod,
        *,
        gang: GangKey | None = None,
        role: str = "",
        rank: int = -1,
        managed: bool = False,
        queue: str = "",
        volumes: VolumeLookup | None = None,
    ) -> PodUpserted:
        """Return the event for ``pod``.

        ``gang`` to ``queue`` are what ``muster.workloads`` found. Without ``volumes``, and for
        settled pods, the pod's volumes put no constraint on it.
        """
        meta, spec, status = pod.metadata, pod.spec, pod.status
        note = _note(meta)
        settled = bool(spec.node_name) and not managed
        asks = volumes is not None and not settled and any(restricts(v) for v in spec.volumes)
        pod_class = self._classes.pod_class(
            pod,
            note=note,
            settled=settled,
            volumes=volumes.constraints(pod) if asks and volumes is not None else UNCONSTRAINED,
        )
        return PodUpserted(
            uid=pod_uid(meta.uid),
            namespace=meta.namespace,
            name=meta.name,
            pod_class=pod_class,
            labels=self._label_set(meta),
            node=spec.node_name or None,
            nominated=status.nominated_node_name or None,
            gates=frozenset(gate.name for gate in spec.scheduling_gates),
            gang=gang,
            role=role,
            rank=rank,
            priority=spec.priority or 0,
            preemptible=_MIRROR not in meta.annotations,
            stays=_stays(meta),
            firm=_is_firm(meta),
            created=_epoch(meta.creation_timestamp),
            started=_epoch(status.start_time),
            finished=status.phase in ("Succeeded", "Failed"),
            succeeded=status.phase == "Succeeded",
            terminating=meta.deletion_timestamp is not None,
            ends_by=_epoch(meta.deletion_timestamp),
            managed=managed,
            owned=any(owner.controller for owner in meta.owner_references),
            plan=note,
            queue=queue,
        )

    def event_as(
        self,
        like: PodUpserted,
        meta: wire.ObjectMeta,
        node: str,
        *,
        gang: GangKey | None,
        role: str,
        rank: int,
    ) -> PodUpserted:
        """Return the event of a pod that differs from ``like``'s in metadata and node only.

        The start time is that of ``like``: the caller reads the start times of many pods at once.
        """
        return replace(
            like,
            uid=pod_uid(meta.uid),
            name=meta.name,
            labels=self._label_set(meta),
            node=node,
            gang=gang,
            role=role,
            rank=rank,
            preemptible=_MIRROR not in meta.annotations,
            stays=_stays(meta),
            firm=_is_firm(meta),
            created=_epoch(meta.creation_timestamp),
            owned=any(owner.controller for owner in meta.owner_references),
            plan=_note(meta),
        )

    def _label_set(self, meta: wire.ObjectMeta) -> LabelSet:
        made = LabelSet(meta.namespace, kept_labels(meta.labels))
        if len(self._labels) >= CLASS_LIMIT:
            self._labels.clear()
        return self._labels.setdefault(made, made)


def pod_event(
    pod: wire.Pod,
    *,
    gang: GangKey | None = None,
    role: str = "",
    rank: int = -1,
    managed: bool = False,
    queue: str = "",
    volumes: VolumeLookup | None = None,
) -> PodUpserted:
    """Return one pod's event; a caller with many pods uses one ``Translator`` for all."""
    return Translator().pod_event(
        pod, gang=gang, role=role, rank=rank, managed=managed, queue=queue, volumes=volumes
    )


def pod_gone(meta: wire.ObjectMeta) -> PodGone:
    """Return the event for a deleted pod."""
    return PodGone(pod_uid(meta.uid))


def node_event(node: wire.Node) -> NodeUpserted:
    """Return the event for ``node``; see ``read_node`` for what could not be read."""
    return read_node(node)[0]


def read_node(
    node: wire.Node, derive: DeriveDevices | None = None
) -> tuple[NodeUpserted, tuple[str, ...]]:
    """Return the event for ``node``, and a message per part that could not be read.

    ``derive``: finds devices in other ways, for nodes without Muster's device plugin.

    A node without a ``Ready`` condition counts as ready: kube-scheduler only looks at taints.
    """
    meta = node.metadata
    problems: list[str] = []
    event = NodeUpserted(
        name=meta.name,
        labels=meta.labels,
        allocatable=_allocatable(node, problems),
        taints=tuple(_taints(node, problems)),
        unschedulable=node.spec.unschedulable,
        ready=_is_ready(node),
        devices=_devices(meta, problems) or (() if derive is None else derive(node)),
        allocations=_allocations(meta, problems),
    )
    return event, tuple(problems)


def node_kind(node: wire.Node, devices: Hashable = None) -> Hashable:
    """Return a key that is equal for nodes with events that differ in names and labels only.

    ``devices``: what ``derive`` depends on, besides our annotations and allocatable.
    """
    note = node.metadata.annotations.get
    amounts_of = tuple(node.status.allocatable.items())
    own = note(names.NODE_TOPOLOGY), note(names.NODE_ALLOCATIONS)
    return node.spec, _is_ready(node), amounts_of, own, devices


def node_gone(meta: wire.ObjectMeta) -> NodeGone:
    """Return the event for a deleted node."""
    return NodeGone(meta.name)


def namespace_event(namespace: wire.Namespace) -> NamespaceUpserted:
    """Return the event for ``namespace``."""
    return NamespaceUpserted(namespace.metadata.name, namespace.metadata.labels)


def namespace_gone(meta: wire.ObjectMeta) -> NamespaceGone:
    """Return the event for a deleted namespace."""
    return NamespaceGone(meta.name)


@lru_cache(_LAST_UIDS)
def pod_uid(text: str) -> PodUid:
    """Return 16 bytes for a UID: the UUID's own, or a digest of a UID of another form.

    Only a canonical, lower-case UUID is taken as such, so no two UIDs share their bytes.
    """
    if len(text) == _UUID_LENGTH and text == text.lower():
        dashes = text[8] + text[13] + text[18] + text[23]
        try:
            raw = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            raw = b""
        if dashes == "----" and len(raw) == UID_BYTES:
            return PodUid(raw)
    return PodUid(blake2b(text.encode(), digest_size=UID_BYTES).digest())


def pod_uids(texts: Sequence[str]) -> Uids:
    """Return ``pod_uid`` of each text, much faster if all of them are canonical UUIDs."""
    joined = "\n".join(texts)
    one_a_line = len(joined) + 1 == len(texts) * (_UUID_LENGTH + 1)
    if not one_a_line or _UUIDS.fullmatch(joined) is None:
        return Uids.of(map(pod_uid, texts))
    return Uids.from_bytes(bytes.fromhex(joined.replace("-", "")))  # skips the line breaks


def _note(meta: wire.ObjectMeta) -> PlanNote | None:
    text = meta.annotations.get(names.PLAN)
    return None if text is None else plan_note(text)


def _stays(meta: wire.ObjectMeta) -> bool:
    """Return whether the pod's owner forbids to move it, by the annotation of any known tool."""
    if meta.labels.get(names.MOVABLE) == "false":
        return True
    return any(meta.annotations.get(key) == value for key, value in _STAYS)


def _epoch(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()


def _is_ready(node: wire.Node) -> bool:
    return all(c.status == "True" for c in node.status.conditions if c.type == "Ready")


def _allocatable(node: wire.Node, problems: list[str]) -> Mapping[str, int]:
    try:
        return amounts(node.status.allocatable)
    except QuantityError:
        pass
    readable: dict[str, int] = {}
    for resource, quantity in node.status.allocatable.items():
        try:
            readable |= amounts({resource: quantity})
        except QuantityError as error:
            problems.append(f"node {node.metadata.name}: status.allocatable: {error}; taken as 0")
    return readable


def _taints(node: wire.Node, problems: list[str]) -> Iterable[Taint]:
    for source in node.spec.taints:
        try:
            yield taint(source)
        except UnknownOperator as error:
            problems.append(f"node {node.metadata.name}: spec.taints: {error}; ignored")


def _devices(meta: wire.ObjectMeta, problems: list[str]) -> tuple[DeviceSpec, ...]:
    text = meta.annotations.get(names.NODE_TOPOLOGY)
    if text is None:
        return ()
    try:
        found = _TOPOLOGY.decode(text).devices
    except (msgspec.MsgspecError, RecursionError) as error:
        problems.append(
            f"node {meta.name}: annotation {names.NODE_TOPOLOGY}: {error}; its devices are unknown"
        )
        return ()
    if len({device.name for device in found}) < len(found):
        problems.append(
            f"node {meta.name}: annotation {names.NODE_TOPOLOGY}: a device is listed twice; "
            "its devices are unknown"
        )
        return ()
    return tuple(map(_spec, found))


def _allocations(
    meta: wire.ObjectMeta, problems: list[str]
) -> Mapping[PodUid, tuple[str, ...]] | None:
    """Return the devices of pods by name, of all resources together: names are unique on a node."""
    text = meta.annotations.get(names.NODE_ALLOCATIONS)
    if text is None:
        return _NO_ALLOCATIONS
    try:
        found = allocationsannotation.decode(text)
    except allocationsannotation.AllocationsError as error:
        problems.append(
            f"node {meta.name}: annotation {names.NODE_ALLOCATIONS}: {error}; what it had before "
            "still counts"
        )
        return None
    return {
        pod_uid(uid): tuple(chain.from_iterable(devices.values()))
        for uid, devices in found.pods.items()
    }


def _spec(device: DeviceWire) -> DeviceSpec:
    fields = msgspec.structs.asdict(device)
    fields["placements"] = tuple(MigProfile(p.name, p.masks) for p in device.placements)
    return DeviceSpec(**fields)


def _is_firm(meta: wire.ObjectMeta) -> bool:
    """Return whether a pod never gives way; nearly none has such a mark."""
    if KEYS.isdisjoint(meta.labels) and KEYS.isdisjoint(meta.annotations):
        return False
    return is_firm(meta.labels, meta.annotations)
