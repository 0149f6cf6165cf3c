"""Gangs that never give way and so run only within what their queue is entitled to.

KAI's: what such gangs of a queue and of those below it use stays within what it is entitled to, at
each queue up to the cluster (pkg/scheduler/plugins/proportion/capacity_policy,
``isAllocatedNonPreemptibleOverQuota``). Koordinator's: the same at the quota alone, whose parents'
``min`` is at least that of their children together (pkg/scheduler/plugins/elasticquota/plugin.go,
``PreFilter``). What other gangs use does not count: they give way.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.charges import QueueCharges, Use
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import OCCUPYING, PodFlag


@dataclass(frozen=True, slots=True)
class FirmExcess:
    """A queue of which gangs that never give way would use too much."""

    node: QueueNode
    cell: Cell
    #: What such gangs use of it now.
    used: int

    def __str__(self) -> str:
        """Return why such a gang waits."""
        entitled = self.node.entitled(self.cell)
        return (
            f"it never gives way, so it runs only within what queue {self.node.spec.name} is "
            f"entitled to: {self.used} of {entitled} {self.cell.resource} are used by such gangs"
        )


def is_firm(view: GangView, snapshot: Snapshot, policy: PreemptionPolicy) -> bool:
    """Return whether a gang of a queue never gives way, by its priority or by its pods' marks."""
    if policy.firm_from is not None and view.priority >= policy.firm_from:
        return True
    if not policy.obeys_marks:
        return False
    rows = np.concatenate([view.waiting, view.in_room])
    return bool(((snapshot.pods.flags[rows] & np.uint8(PodFlag.FIRM)) != 0).any())


def firm_excess(
    view: GangView, snapshot: Snapshot, charges: QueueCharges, node: QueueNode, cells: Amounts
) -> FirmExcess | None:
    """Return where a gang may not have ``cells``, as it never gives way; ``None``: it may."""
    policy = node.spec.preemption
    if not policy.keeps_firm_within or not is_firm(view, snapshot, policy):
        return None
    used = _firm_use(snapshot, charges, policy.firm_from)
    at: QueueNode | None = node
    while at is not None and not at.spec.is_cluster:
        here = used.get(at.spec.name, {})
        for cell, amount in cells.items():
            if amount and here.get(cell, 0) + amount > at.entitled(cell):
                return FirmExcess(at, cell, here.get(cell, 0))
        at = at.parent
    return None


def _firm_use(
    snapshot: Snapshot, charges: QueueCharges, firm_from: int | None
) -> Mapping[QueueName, Mapping[Cell, int]]:
    """Return what gangs that never give way use of each queue, with those below it."""
    found: dict[QueueName, Counter[Cell]] = {}
    for view in _standing(snapshot, firm_from):
        queue = _queue_of(view, charges)
        node = None if queue is None else charges.tree.find(queue)
        if node is None:
            continue
        cells = charges.cells(queue, _uses(view, snapshot))
        at: QueueNode | None = node
        while at is not None:
            found.setdefault(at.spec.name, Counter()).update(cells)
            at = at.parent
    return found


def _queue_of(view: GangView, charges: QueueCharges) -> QueueName | None:
    namespace = "" if view.spec is None else view.spec.namespace
    return charges.queue_of(QueueUser(view.key.split("/", 1)[0], namespace, view.queue))


def _standing(snapshot: Snapshot, firm_from: int | None) -> Iterator[GangView]:
    """Yield the gangs that hold room and may be firm: by a mark, or by their priority."""
    pods = snapshot.pods
    holds = np.isin(pods.state.array(), [int(state) for state in OCCUPYING])
    marked = (pods.flags.array() & np.uint8(PodFlag.FIRM)) != 0
    high = np.zeros_like(marked) if firm_from is None else pods.priority.array() >= firm_from
    rows = holds & (marked | high)
    gangs = np.unique(pods.gang.array()[rows])
    for row in gangs[gangs >= 0].tolist():
        view = snapshot.gang(snapshot.gang_at(row))
        if view is not None:
            yield view


def _uses(view: GangView, snapshot: Snapshot) -> dict[Use, int]:
    """Return what the standing members take; queues with such gangs have no flavors."""
    found: Counter[Use] = Counter()
    numbers, counts = np.unique(snapshot.pods.pod_class[view.in_room], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for name, amount in snapshot.classes[number].requests:
            found[Use((), name)] += amount * count
    return found
