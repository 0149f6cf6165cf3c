"""Queues with what is charged to them, as statuses are made of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.workloads.queues.sight import CellSums, QueueSight, verdict, whole_uses


def charged_tree(specs: Iterable[QueueSpec], charges: Mapping[QueueName, Amounts]) -> QuotaTree:
    """Return a tree of queues to which this is charged."""
    tree = QuotaTree()
    for spec in specs:
        tree.put(spec)
    for name, amounts in charges.items():
        tree.charge(name, amounts)
    return tree


def uses(tree: QuotaTree) -> dict[QueueName, CellSums]:
    """Return what each queue and all below it use."""
    steps = whole_uses(tree)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: dict[QueueName, CellSums] = stop.value
            return found


def sight_of(tree: QuotaTree, name: QueueName, **more: Any) -> QueueSight:
    """Return a queue as it is now."""
    return QueueSight(
        **{
            "node": tree.find(name),
            "used": uses(tree)[name],
            "verdict": verdict(tree, name, ()),
            **more,
        }
    )
