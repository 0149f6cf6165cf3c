"""Volcano's queues (scheduling.volcano.sh/v1beta1 Queue).

::

    root            volcano/root: the cluster, there whether it has an object or not
    ├── default     gangs that name no queue, where it exists
    └── research
        └── vision

**Numbers** as the plugin ``capacity`` has them (pkg/scheduler/plugins/capacity/capacity.go at
1.10): ``deserved`` can be taken back from others, ``guarantee`` of it stays free for the queue,
``capability`` is the most. A queue deserves at least its guarantee and at most its capability. What
a capability does not name is unlimited; so are a CPU and a memory of 0 in it. A parent's numbers
contain its children's. Where nothing is deserved (plugin ``proportion``) the weight divides the
cluster (``muster.queueing.shares.waterfilling``).

**State.** ``Closed`` and ``Closing``: what runs goes on, nothing new is admitted. Without Volcano's
controller no state is written; that is open.
"""

from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueSpec, ShareFunction
from muster.kube import quantity, wire
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.volcanopolicy import volcano_preemption
from muster.workloads.queues.reading import (
    QueueAlias,
    QueueReading,
    created_at,
    queue_name,
    whole_cluster,
)
from muster.workloads.queues.statusmeta import StatusMeta

DIALECT: Final = "volcano"
GROUP: Final = "scheduling.volcano.sh"
ROOT: Final = "root"
DEFAULT_QUEUE: Final = "default"
HIERARCHY: Final = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")

_ROOT_QUEUE: Final = whole_cluster(
    queue_name(DIALECT, ROOT),
    ShareFunction.WATER_FILLING,
    volcano_preemption(is_reclaimable=True),
)
_STATES: Final = ("Open", "Closed", "Closing", "Unknown")
_STRATEGIES: Final = ("traverse", "fifo")
_MOST_WEIGHT: Final = 65_535  # of the CRD
_MOST_PRIORITY: Final = 2**31 - 1
_UNBOUNDED_AT_ZERO: Final = (quantity.CPU, "memory")


class Guarantee(wire.Wire, frozen=True):
    """scheduling.volcano.sh/v1beta1 Guarantee."""

    resource: wire.Quantities = msgspec.field(default_factory=dict)


class VolcanoQueueSpec(wire.Wire, frozen=True):
    """scheduling.volcano.sh/v1beta1 QueueSpec."""

    weight: int = 0
    capability: wire.Quantities = msgspec.field(default_factory=dict)
    deserved: wire.Quantities = msgspec.field(default_factory=dict)
    guarantee: Guarantee = Guarantee()
    parent: str = ""
    priority: int = 0
    reclaimable: bool | None = None
    dequeue_strategy: str = ""
    state: str = ""  # before v1beta1
    affinity: dict[str, object] | None = None
    extend_clusters: tuple[dict[str, object], ...] = ()
    type: str = ""
    dra: dict[str, object] | None = None


class Queue(wire.Wire, frozen=True):
    """scheduling.volcano.sh/v1beta1 Queue."""

    metadata: StatusMeta = StatusMeta()
    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


def queue(found: Queue) -> QueueReading:
    """Return what a Queue says."""
    findings, name = QueueFindings(), found.metadata.name
    is_root = name == ROOT
    quotas = {} if is_root else _quotas(found.spec, findings)
    weight, priority = _weight(found.spec, findings), _priority(found.spec, findings)
    is_open = _is_open(found, findings)
    findings.one_of("spec.dequeueStrategy", found.spec.dequeue_strategy, _STRATEGIES)
    _unobeyed(found, findings)
    spec = QueueSpec(
        queue_name(DIALECT, name),
        None if is_root else queue_name(DIALECT, found.spec.parent or ROOT),
        quotas,
        weight,
        priority,
        is_whole=True,
        is_strict=found.spec.dequeue_strategy == "fifo",
        is_open=is_open and not findings.problems,
        is_cluster=is_root,
        shares=ShareFunction.WATER_FILLING if is_root else None,
        preemption=volcano_preemption(is_reclaimable=found.spec.reclaimable is not False),
    )
    texts = () if is_root else (name, "") if name == DEFAULT_QUEUE else (name,)
    return QueueReading(
        specs=(spec,),
        implied=() if is_root else (_ROOT_QUEUE,),
        aliases=tuple(QueueAlias(text, spec.name) for text in texts),
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(found.metadata),
    )


def _quotas(spec: VolcanoQueueSpec, findings: QueueFindings) -> dict[Cell, Quota]:
    guarantee = spec.guarantee.resource
    resources = dict.fromkeys([*spec.deserved, *guarantee, *spec.capability])
    return {Cell("", name): _quota(spec, name, findings) for name in resources}


def _quota(spec: VolcanoQueueSpec, name: str, findings: QueueFindings) -> Quota:
    """Return the numbers of one resource."""
    guarantee = _amount("spec.guarantee.resource", spec.guarantee.resource, name, 0, findings)
    deserved = _amount("spec.deserved", spec.deserved, name, 0, findings)
    limit = _amount("spec.capability", spec.capability, name, UNLIMITED, findings)
    if limit == 0 and name in _UNBOUNDED_AT_ZERO:
        limit = UNLIMITED
    if guarantee > limit:
        allowed = f"at most the capability, {spec.capability[name]}"
        findings.wrong(f"spec.guarantee.resource[{name}]", spec.guarantee.resource[name], allowed)
    entitled = max(min(deserved, limit), guarantee)
    return Quota(entitled, entitled - guarantee if guarantee else UNLIMITED, limit=limit)


def _amount(
    field: str, amounts: wire.Quantities, name: str, otherwise: int, findings: QueueFindings
) -> int:
    return findings.amount(f"{field}[{name}]", name, amounts.get(name), otherwise)


def _weight(spec: VolcanoQueueSpec, findings: QueueFindings) -> int:
    """Return the weight in thousandths; Volcano's webhook writes 1 where it is 0."""
    if not 0 <= spec.weight <= _MOST_WEIGHT:
        findings.wrong("spec.weight", spec.weight, f"a whole number from 1 to {_MOST_WEIGHT}")
        return WEIGHT_ONE
    return (spec.weight or 1) * WEIGHT_ONE


def _priority(spec: VolcanoQueueSpec, findings: QueueFindings) -> int:
    if not 0 <= spec.priority <= _MOST_PRIORITY:
        allowed = f"a whole number from 0 to {_MOST_PRIORITY}"
        findings.wrong("spec.priority", spec.priority, allowed)
        return 0
    return spec.priority


def _is_open(found: Queue, findings: QueueFindings) -> bool:
    states = found.spec.state, str(found.status.get("state") or "")
    for field, state in zip(("spec.state", "status.state"), states, strict=True):
        findings.one_of(field, state, _STATES)
    return all(state in ("", "Open") for state in states)


def _unobeyed(found: Queue, findings: QueueFindings) -> None:
    """Name the fields that are not obeyed."""
    spec, written = found.spec, found.metadata.annotations
    of_the_cluster = "the root is the cluster: it has what the nodes have"
    root = found.metadata.name == ROOT
    for field, is_written, why in (
        ("spec.capability", root and spec.capability, of_the_cluster),
        ("spec.deserved", root and spec.deserved, of_the_cluster),
        ("spec.guarantee", root and spec.guarantee.resource, of_the_cluster),
        ("spec.parent", root and spec.parent, "the root has no parent"),
        ("spec.affinity", spec.affinity, "gangs of the queue may go to all nodes"),
        ("spec.extendClusters", spec.extend_clusters, "gangs stay in this cluster"),
        ("spec.type", spec.type, "queues of every type are treated alike"),
        ("spec.dra", spec.dra, "claimed devices are not counted by class"),
    ):
        if is_written:
            findings.ignored(field, why)
    for key in HIERARCHY:
        if key in written:
            findings.ignored(f"metadata.annotations[{key}]", "spec.parent makes the tree")
