"""The statuses of queue objects, as each project's users and tools read them.

::

    object ─┬─► status of its kind ──► wanted fields ──► those that differ ──► PATCH …/status
    sight  ─┘

Amounts are those of the queue with all below it; gangs are its own.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from muster.cluster.quota.availability import available
from muster.cluster.quota.cells import UNLIMITED, Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.workloads.queues import (
    elasticquota,
    kai,
    koordinator,
    kueue,
    kueuestatus,
    muster,
    volcano,
)
from muster.workloads.queues.amounts import readable, written
from muster.workloads.queues.averages.fields import average_use
from muster.workloads.queues.averages.writtenruns import WrittenRun, run_times
from muster.workloads.queues.elasticquota import ElasticQuota
from muster.workloads.queues.sight import Fields, QueueSight, Verdict, with_condition

QueueStatus = Callable[[Any, QueueSight], Fields]
"""Returns the fields of a status as they should be, given the object and its queue."""

_SCARCEST: Final = 2  # resources that the text for people names
_OBEYED: Final = Verdict(is_ready=True, reason="AllFields", message="every field is obeyed")


def own_status(found: muster.OwnQueue, sight: QueueSight) -> Fields:
    """Return the status of Muster's own Queue."""
    generation, before = found.metadata.generation, found.status.get("conditions")
    ready = with_condition(before, "Ready", sight.verdict, generation=generation, now=sight.now)
    obeyed = _OBEYED
    if sight.unobeyed:
        obeyed = Verdict(is_ready=False, reason="FieldNotObeyed", message="; ".join(sight.unobeyed))
    return {
        "observedGeneration": generation,
        "used": _used_text(sight),
        "waiting": sight.gangs.waiting,
        "running": sight.gangs.running,
        "first": sight.gangs.first or None,
        "resources": [] if sight.node is None else _resources(sight.node, sight),
        **_average(found, sight),
        **_run_times(found, sight),
        "conditions": with_condition(ready, "Obeyed", obeyed, generation=generation, now=sight.now),
    }


def _average(found: muster.OwnQueue, sight: QueueSight) -> Fields:
    """Return the average, where past use counts. What was written before it was switched off stays.

    So a half-life that is taken out by mistake costs no history.
    """
    if sight.average is None:
        return {}
    return {"averageUse": average_use(found.status.get("averageUse"), sight.average, sight.now)}


def _run_times(found: muster.OwnQueue, sight: QueueSight) -> Fields:
    """Return the last runs, where run times are learned; elsewhere what was written stays."""
    if sight.runs is None:
        return {}
    runs = [WrittenRun(*run) for run in sight.runs]
    return {"runTimes": run_times(found.status.get("runTimes"), runs, sight.now)}


def _resources(node: QueueNode, sight: QueueSight) -> list[dict[str, str]]:
    """Return the numbers of each resource; what is unlimited is left out."""
    return [
        {"resource": cell.resource, **_finite(cell.resource, _numbers(node, cell, sight))}
        for cell in sight.cells()
    ]


def _numbers(node: QueueNode, cell: Cell, sight: QueueSight) -> dict[str, int]:
    room = max(available(node, cell), 0)
    return {
        "used": sight.used.get(cell, 0),
        "entitled": node.entitled(cell),
        "borrowed": node.borrowed(cell),
        "available": room if sight.verdict.is_ready else 0,
    }


def _finite(resource: str, numbers: Mapping[str, int]) -> dict[str, str]:
    return {
        name: written(resource, amount) for name, amount in numbers.items() if amount < UNLIMITED
    }


def _used_text(sight: QueueSight) -> str:
    """Return what is used of what the queue is entitled to, the scarcest resources first."""
    node = sight.node
    if node is None:
        return ""
    rows: list[tuple[float, str, str]] = []
    for cell in sight.cells():
        used, entitled = sight.used.get(cell, 0), node.entitled(cell)
        text = f"{cell.resource} {readable(cell.resource, used)}"
        if 0 < entitled < UNLIMITED:
            text += f"/{readable(cell.resource, entitled)}"
            rows.append((-used / entitled, cell.resource, text))
        elif used:
            rows.append((1.0, cell.resource, text))
    return ", ".join(text for _, _, text in sorted(rows)[:_SCARCEST])


def volcano_status(found: volcano.Queue, sight: QueueSight) -> Fields:
    """Return the status of Volcano's Queue.

    The state is written only where there is none: Volcano's newer schedulers use open queues only.
    """
    is_new = not found.status.get("state") and found.spec.state in ("", "Open")
    return {
        "allocated": _amounts(_by_resource(sight)),
        "pending": sight.gangs.waiting,
        "inqueue": sight.gangs.placing,
        "running": sight.gangs.running,
        **({"state": "Open"} if is_new else {}),
    }


def kai_status(_found: kai.Queue, sight: QueueSight) -> Fields:
    """Return the status of KAI's Queue."""
    used = _by_resource(sight)
    requested = {
        name: used.get(name, 0) + sight.asked.get(name, 0) for name in {*used, *sight.asked}
    }
    return {"allocated": _amounts(used), "requested": _amounts(requested)}


def elastic_quota_status(found: ElasticQuota, sight: QueueSight) -> Fields:
    """Return the status of an ElasticQuota: the resources that it names."""
    used = _by_resource(sight)
    names = {*found.spec.min, *found.spec.max}
    return {"used": _amounts({name: used.get(name, 0) for name in names})}


def _by_resource(sight: QueueSight) -> dict[str, int]:
    found: dict[str, int] = {}
    for cell, amount in sight.used.items():
        found[cell.resource] = found.get(cell.resource, 0) + amount
    return found


def _amounts(by_resource: Mapping[str, int]) -> dict[str, str]:
    return {name: written(name, amount) for name, amount in sorted(by_resource.items())}


STATUSES: Final[Mapping[str, QueueStatus]] = {
    f"queues.{muster.GROUP}": own_status,
    f"clusterqueues.{kueue.GROUP}": kueuestatus.cluster_queue_status,
    f"cohorts.{kueue.GROUP}": kueuestatus.cohort_status,
    f"localqueues.{kueue.GROUP}": kueuestatus.local_queue_status,
    f"queues.{volcano.GROUP}": volcano_status,
    f"queues.{kai.GROUP}": kai_status,
    f"elasticquotas.{elasticquota.GROUP}": elastic_quota_status,
    f"elasticquotas.{koordinator.GROUP}": elastic_quota_status,
}
"""By PLURAL.GROUP, the kinds of objects whose status is written."""
