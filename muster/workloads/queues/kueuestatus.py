"""The statuses of Kueue's queues, in Kueue's words (apis/kueue/v1beta2; pkg/controller/core).

A gang is what Kueue calls a Workload: it reserves quota and is admitted at the same time, as soon
as it has a plan. A Workload with checks is admitted later. Conditions have the reasons of Kueue,
and more where Kueue has none.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from muster.cluster.quota.availability import potential
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import WEIGHT_ONE
from muster.workloads.queues.amounts import written
from muster.workloads.queues.averages.fields import local_fair_sharing
from muster.workloads.queues.kueue import ClusterQueue, Cohort, LocalQueue
from muster.workloads.queues.sight import Fields, QueueSight, Verdict, with_condition

#: The share of a queue of weight 0 that borrows.
INFINITE_SHARE: Final = 2**63 - 1
_NO_MORE: Final = "Can't admit new workloads"
_INACTIVE: Final = "Can't submit new workloads to clusterQueue"
_ADMITS: Final = Verdict(is_ready=True, reason="Ready", message="Can admit new workloads")
_SUBMITS: Final = Verdict(
    is_ready=True, reason="Ready", message="Can submit new workloads to localQueue"
)


def cluster_queue_status(found: ClusterQueue, sight: QueueSight) -> Fields:
    """Return the status of a ClusterQueue."""
    listed = [
        Cell(flavor.name, one.name)
        for group in found.spec.resource_groups
        for flavor in group.flavors
        for one in flavor.resources
    ]
    node = sight.node
    borrowed = {} if node is None else {cell: node.borrowed(cell) for cell in listed}
    reserved = _by_flavor(listed, sight.used, borrowed)
    started = {cell: sight.used.get(cell, 0) - sight.unchecked.get(cell, 0) for cell in listed}
    return {
        **_counts(sight),
        **_sharing(found.status, node),
        "flavorsReservation": reserved,
        "flavorsUsage": _by_flavor(listed, started, borrowed) if sight.unchecked else reserved,
        "conditions": _conditions(found, _cluster_queue_verdict(found, sight), sight.now),
    }


def cohort_status(found: Cohort, sight: QueueSight) -> Fields:
    """Return the status of a Cohort; Kueue's has no conditions."""
    return _sharing(found.status, sight.node)


def local_queue_status(found: LocalQueue, sight: QueueSight) -> Fields:
    """Return the status of a LocalQueue: what the gangs use that name it."""
    listed = [] if sight.node is None else list(sight.node.spec.quotas)
    usage = _by_flavor(listed, sight.named)
    return {
        **_counts(sight),
        "flavorsReservation": usage,
        "flavorUsage" if sight.version == "v1beta1" else "flavorsUsage": usage,
        **_past_use(found, sight),
        "conditions": _conditions(found, _local_queue_verdict(found, sight), sight.now),
    }


def _past_use(found: LocalQueue, sight: QueueSight) -> Fields:
    """Return what those used on average who name it, where that orders the ClusterQueue's gangs."""
    if sight.average is None:
        return {}
    return {"fairSharing": local_fair_sharing(found.status, sight.average, sight.now)}


def _counts(sight: QueueSight) -> Fields:
    return {
        "pendingWorkloads": sight.gangs.waiting,
        "reservingWorkloads": sight.gangs.admitted,
        "admittedWorkloads": sight.gangs.admitted - sight.gangs.unchecked,
    }


def _by_flavor(
    listed: list[Cell], used: Mapping[Cell, int], borrowed: Mapping[Cell, int] | None = None
) -> list[dict[str, object]]:
    """Return what is used of each flavor, in the order in which they are written."""
    flavors: dict[str, list[dict[str, str]]] = {}
    for cell in dict.fromkeys(listed):
        row = {"name": cell.resource, "total": written(cell.resource, used.get(cell, 0))}
        if borrowed is not None:
            row["borrowed"] = written(cell.resource, borrowed.get(cell, 0))
        flavors.setdefault(cell.flavor, []).append(row)
    return [{"name": name, "resources": rows} for name, rows in flavors.items()]


# --- the share ------------------------------------------------------------------------------------


def _sharing(before: Fields, node: QueueNode | None) -> Fields:
    said = before.get("fairSharing")
    others = said if isinstance(said, dict) else {}
    share = 0 if node is None else weighted_share(node)
    return {"fairSharing": {**others, "weightedShare": share}}


def weighted_share(node: QueueNode) -> int:
    """Return how much of what others lend a queue uses, in thousandths by weight, rounded up.

    That of the resource of which it uses most (``dominantResourceShare``,
    pkg/cache/scheduler/fair_sharing.go).
    """
    shares = list(_shares(node))
    if not shares or not any(shares):
        return 0
    if not node.spec.weight:
        return INFINITE_SHARE
    return ceil(max(shares) * WEIGHT_ONE / node.spec.weight)


def _shares(node: QueueNode) -> Iterator[Fraction]:
    parent = node.parent
    if parent is None:
        return
    borrowed: dict[str, int] = {}
    for cell in node.usage:
        borrowed[cell.resource] = borrowed.get(cell.resource, 0) + node.borrowed(cell)
    for resource, amount in borrowed.items():
        cells = {cell for cell in {*parent.cells(), *node.cells()} if cell.resource == resource}
        lendable = sum(potential(parent, cell) for cell in cells)
        if lendable > 0:
            yield Fraction(amount * 1000, lendable)


# --- conditions -----------------------------------------------------------------------------------


def _conditions(found: ClusterQueue | LocalQueue, said: Verdict, now: float) -> list[object]:
    generation, before = found.metadata.generation, found.status.get("conditions")
    return with_condition(before, "Active", said, generation=generation, now=now)


def _cluster_queue_verdict(found: ClusterQueue, sight: QueueSight) -> Verdict:
    if found.metadata.deletion_timestamp is not None:
        return _inactive("Terminating", f"{_NO_MORE}; clusterQueue is terminating")
    if sight.problems:
        return _inactive("ObjectWrong", f"{_NO_MORE}: {'; '.join(sight.problems)}")
    if found.spec.stop_policy not in ("", "None"):
        return _inactive("Stopped", f"{_NO_MORE}: is stopped.")
    if sight.missing_flavors:
        missing = ", ".join(sight.missing_flavors)
        text = f"{_NO_MORE}: references missing ResourceFlavor(s): {missing}."
        return _inactive("FlavorNotFound", text)
    if not sight.verdict.is_ready:
        return _inactive(sight.verdict.reason, f"{_NO_MORE}: {sight.verdict.message}")
    return _ADMITS


def _local_queue_verdict(found: LocalQueue, sight: QueueSight) -> Verdict:
    if sight.problems:
        return _inactive("ObjectWrong", "; ".join(sight.problems))
    if found.spec.stop_policy not in ("", "None"):
        return _inactive("Stopped", "LocalQueue is stopped")
    if sight.node is None:
        return _inactive("ClusterQueueDoesNotExist", _INACTIVE)
    return _SUBMITS if sight.verdict.is_ready else _inactive("ClusterQueueIsInactive", _INACTIVE)


def _inactive(reason: str, message: str) -> Verdict:
    return Verdict(is_ready=False, reason=reason, message=message)
