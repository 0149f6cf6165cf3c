"""Whether a queue takes up to its fair share from one that uses more than its own: KAI's reclaim.

::

    all  12 GPUs ─┬─ a  fair share 6, uses 10      b takes from a while a is above 6,
                  └─ b  fair share 6, uses 2       and as far as b stays within 6

Fair shares are what the division of the tree gives (``muster.queueing.shares.twophases``). They
follow from what gangs have and ask for, and not from who runs. So one that gave way could not take
its room back: its queue was above its share with it. Only resources that a queue names are divided
(KAI: CPU, memory and GPUs). Source: NVIDIA/KAI-Scheduler,
pkg/scheduler/plugins/proportion/reclaimable (``reclaimingQueuesRemainWithinBoundaries``; in its
folder strategies ``MaintainFairShareStrategy``) at 0.6.
"""

from collections.abc import Iterable
from typing import Protocol

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.usagetrial import UsageTrial


class DividedShares(Protocol):
    """Knows what the queues of a tree get of what is divided among them."""

    def of(self, queue: QueueName, cell: Cell) -> int | None:
        """Return a queue's fair share of a cell, ``None``: it is not known."""


def is_beyond(shares: DividedShares, usage: UsageTrial, node: QueueNode, cell: Cell) -> bool:
    """Return whether a queue uses more than its fair share."""
    return excess(shares, usage, node, cell) > 0


def stays_within(
    shares: DividedShares, usage: UsageTrial, nodes: Iterable[QueueNode], cells: Iterable[Cell]
) -> bool:
    """Return whether queues use no more than their fair shares, of which all are known."""
    known = tuple(cells)
    named = ((node, cell) for node in nodes for cell in known if names(node, cell))
    return all(
        shares.of(node.spec.name, cell) is not None and not is_beyond(shares, usage, node, cell)
        for node, cell in named
    )


def excess(shares: DividedShares, usage: UsageTrial, node: QueueNode, cell: Cell) -> int:
    """Return by how much a queue uses more than its fair share; 0 where there is none."""
    share = shares.of(node.spec.name, cell) if names(node, cell) else None
    return 0 if share is None else max(0, usage.used(node, cell) - share)


def names(node: QueueNode, cell: Cell) -> bool:
    """Return whether a quota of a cell is written in a queue; only those cells are divided."""
    return cell in node.spec.quotas
