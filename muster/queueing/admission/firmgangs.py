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
from numpy.typing import NDArray

from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.charges import QueueCharges, Use
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import Preemptibility
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
    """Return whether a gang of a queue never gives way, by its pods' marks, its word or priority.

    Of a semi-preemptible one its minimum does not; once it has that, what comes is surplus.
    """
    rows = np.concatenate([view.waiting, view.in_room])
    if policy.obeys_marks and _has_mark(snapshot, rows):
        return True
    spec = view.spec
    by_word = spec.preemptibility.is_firm if spec is not None and policy.obeys_marks else None
    if spec is not None and by_word and spec.preemptibility is Preemptibility.SEMI:
        return len(view.in_room) + view.succeeded < spec.min_count
    if by_word is not None:
        return by_word
    return policy.firm_from is not None and view.priority >= policy.firm_from


def _has_mark(snapshot: Snapshot, rows: NDArray[np.int32]) -> bool:
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
        rows = _firm_rows(view, snapshot)
        queue = _queue_of(view, charges)
        node = None if queue is None else charges.tree.find(queue)
        if node is None:
            continue
        cells = charges.cells(queue, _uses(rows, snapshot))
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
    gang = pods.gang.array()
    rows = holds & (marked | high | _says_so(snapshot)[gang])
    gangs = np.unique(gang[rows])
    for row in gangs[gangs >= 0].tolist():
        view = snapshot.gang(snapshot.gang_at(row))
        if view is not None:
            yield view


def _says_so(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return bool[gangs + 1] by row: which say that their minimum never gives way."""
    columns = snapshot.gang_columns
    words = (Preemptibility.NONE, Preemptibility.SEMI)
    firm = [shape is not None and shape.preemptibility in words for shape in columns.shapes]
    shapes = columns.shape[np.arange(len(columns.keys))]
    return np.append(np.array([*firm, False])[shapes], False)


def _firm_rows(view: GangView, snapshot: Snapshot) -> NDArray[np.int32]:
    """Return the members that never give way, of a gang that has a mark, a priority or a word."""
    rows, said = view.in_room, Preemptibility.UNSAID
    if view.spec is not None and not _has_mark(snapshot, rows):
        said = view.spec.preemptibility
    if said is Preemptibility.PREEMPTIBLE:
        return rows[:0]
    if view.spec is not None and said is Preemptibility.SEMI:
        return rows[: max(view.spec.min_count - view.succeeded, 0)]
    return rows


def _uses(rows: NDArray[np.int32], snapshot: Snapshot) -> dict[Use, int]:
    """Return what the standing members take; queues with such gangs have no flavors."""
    found: Counter[Use] = Counter()
    numbers, counts = np.unique(snapshot.pods.pod_class[rows], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for name, amount in snapshot.classes[number].requests:
            found[Use((), name)] += amount * count
    return found
