"""KAI's queues (scheduling.run.ai/v2 Queue).

::

    kai/*           the cluster; no object describes it
    └── department  kai/department: a queue without parentQueue
        └── team    kai/team: only the lowest queues hold gangs

**Numbers** (pkg/apis/scheduling/v2/queue_resources.go; docs/queues/README.md): ``quota`` can be
taken back from others, ``limit`` is the most, ``lendingLimit`` what others may use of an idle
quota. -1 means unlimited, 0 or nothing written means nothing: a queue without a limit gets
nothing. CPU is in thousandths, memory in 10⁶ bytes, GPUs in devices; parts of devices are rounded
up. A parent's numbers contain its children's. KAI counts the GPUs of all makers and parts of MIG
devices together; here they are resources of their own, and only nvidia.com/gpu has these numbers.

**Weight** is that of GPUs, priority 100 where none is written.
"""

from fractions import Fraction
from math import inf
from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota, capped
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName, QueueSpec, ShareFunction
from muster.kube import quantity, wire
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.kaipolicy import kai_preemption
from muster.workloads.queues.reading import (
    QueueAlias,
    QueueReading,
    created_at,
    queue_name,
    whole_cluster,
)
from muster.workloads.queues.statusmeta import StatusMeta

DIALECT: Final = "kai"
GROUP: Final = "scheduling.run.ai"
CLUSTER: Final = queue_name(DIALECT, "*")
DEFAULT_QUEUE: Final = "default-queue"  # of gangs that name none
GPU: Final = "nvidia.com/gpu"

_DEFAULT_PRIORITY: Final = 100
_INT32: Final = 2**31
_UNLIMITED: Final = -1
_MEGABYTE: Final = 10**6


class KaiResource(wire.Wire, frozen=True):
    """scheduling.run.ai/v2 QueueResource."""

    quota: float = 0
    limit: float = 0
    over_quota_weight: float = 0
    lending_limit: float | None = None


class KaiResources(wire.Wire, frozen=True):
    """scheduling.run.ai/v2 QueueResources."""

    cpu: KaiResource = KaiResource()
    memory: KaiResource = KaiResource()
    gpu: KaiResource = KaiResource()


class KaiQueueSpec(wire.Wire, frozen=True):
    """scheduling.run.ai/v2 QueueSpec."""

    parent_queue: str = ""
    resources: KaiResources = KaiResources()
    priority: int | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


class Queue(wire.Wire, frozen=True):
    """scheduling.run.ai/v2 Queue."""

    metadata: StatusMeta = StatusMeta()
    spec: KaiQueueSpec = KaiQueueSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


def queue(found: Queue) -> QueueReading:
    """Return what a Queue says."""
    spec, findings, name = found.spec, QueueFindings(), found.metadata.name
    quotas = _quotas(spec.resources, findings)
    weight, priority = _weight(spec.resources, findings), _priority(spec, findings)
    policy = kai_preemption(spec.preempt_min_runtime, spec.reclaim_min_runtime, findings)
    parent = queue_name(DIALECT, spec.parent_queue) if spec.parent_queue else CLUSTER
    read = QueueSpec(
        queue_name(DIALECT, name), parent, quotas, weight, priority,
        is_whole=True, is_open=not findings.problems, preemption=policy,
    )  # fmt: skip
    texts = (name, "") if name == DEFAULT_QUEUE else (name,)
    return QueueReading(
        specs=(read,),
        implied=_implied(parent),
        aliases=tuple(QueueAlias(text, read.name) for text in texts),
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(found.metadata),
    )


def _implied(parent: QueueName) -> tuple[QueueSpec, ...]:
    return (whole_cluster(CLUSTER, ShareFunction.TWO_PHASES),) if parent == CLUSTER else ()


def _quotas(found: KaiResources, findings: QueueFindings) -> dict[Cell, Quota]:
    return {
        Cell("", resource): _quota(f"spec.resources.{field}", written, unit, findings)
        for field, resource, written, unit in (
            ("cpu", quantity.CPU, found.cpu, 1),
            ("memory", "memory", found.memory, _MEGABYTE),
            ("gpu", GPU, found.gpu, 1),
        )
    }


def _quota(field: str, written: KaiResource, unit: int, findings: QueueFindings) -> Quota:
    entitled = _amount(f"{field}.quota", written.quota, unit, findings)
    limit = _amount(f"{field}.limit", written.limit, unit, findings)
    lendable = UNLIMITED
    if written.lending_limit is not None:
        lendable = _lendable(f"{field}.lendingLimit", written, unit, findings)
    return Quota(entitled, lendable, limit=limit)


def _amount(field: str, written: float, unit: int, findings: QueueFindings) -> int:
    """Return an amount in units of the model, rounded up; 0 for one that is wrong."""
    if written == _UNLIMITED:
        return UNLIMITED
    if not 0 <= written < inf:
        findings.wrong(field, written, "-1 for no limit, or a number of 0 or more")
        return 0
    return capped(_times(written, unit))


def _lendable(field: str, written: KaiResource, unit: int, findings: QueueFindings) -> int:
    lent, quota = written.lending_limit or 0.0, written.quota
    if not 0 <= lent < inf or 0 <= quota < lent:
        findings.wrong(field, lent, f"a number from 0 to the quota, {quota:g}")
        return 0
    return capped(_times(lent, unit))


def _times(written: float, unit: int) -> int:
    """Return a product, rounded up. The number is the decimal that was written."""
    return -(-Fraction(repr(written)) * unit // 1)


def _weight(found: KaiResources, findings: QueueFindings) -> int:
    """Return the weight of GPUs in thousandths."""
    weight = found.gpu.over_quota_weight
    for field, one in (("cpu", found.cpu), ("memory", found.memory), ("gpu", found.gpu)):
        path = f"spec.resources.{field}.overQuotaWeight"
        if not 0 <= one.over_quota_weight < inf:
            findings.wrong(path, one.over_quota_weight, "a number of 0 or more")
        elif one != KaiResource() and one.over_quota_weight != weight:
            findings.ignored(path, f"a queue has one weight, that of GPUs: {weight:g}")
    return capped(_times(weight, WEIGHT_ONE)) if 0 <= weight < inf else WEIGHT_ONE


def _priority(spec: KaiQueueSpec, findings: QueueFindings) -> int:
    if spec.priority is None:
        return _DEFAULT_PRIORITY
    if not -_INT32 <= spec.priority < _INT32:
        allowed = f"a whole number from {-_INT32} to {_INT32 - 1}"
        findings.wrong("spec.priority", spec.priority, allowed)
        return _DEFAULT_PRIORITY
    return spec.priority
