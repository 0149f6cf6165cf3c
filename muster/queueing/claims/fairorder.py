"""Whose turn it is with Kueue's fair sharing: a tournament of the heads up each tree.

::

    all ─┬─ research ─┬─ a   head 2    of the queues of one parent the one goes on that stays within
         │            └─ b   head 4    its entitlement with its head, then the one with the lesser
         └─ c             head 1       share with it, then the higher priority, then the older head

Shares are those that each queue, and each above it, has once the head has its quota. Source:
kubernetes-sigs/kueue, pkg/scheduler/fair_sharing_iterator.go at 0.14, and the gate
FairSharingPrioritizeNonBorrowing of 0.17.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.shares.borrowed import NONE, Share, share

Rank = tuple[int, float, str]


class FairHead(NamedTuple):
    """The first claim of a queue."""

    queue: QueueName
    #: What it asks for, by cell; nothing where it does not matter.
    cells: Amounts
    #: Priority, age, UID; the least goes first.
    rank: Rank


class _Standing(NamedTuple):
    """A queue with its head; the least goes first."""

    borrows: bool
    share: Share
    rank: Rank


_ALONE: Final = _Standing(borrows=False, share=NONE, rank=(0, 0.0, ""))


def fairest(heads: Iterable[FairHead], tree: QuotaTree) -> FairHead:
    """Return the head that goes first, of heads of any trees: by name, one tree after the other.

    Raises ``ValueError`` where there is none. The tree is left as it was.
    """
    by_queue = {head.queue: head for head in heads}
    if not by_queue:
        raise ValueError("no head: there is nothing to choose from")
    lost = [name for name in by_queue if tree.find(name) is None]
    if lost:
        return by_queue[min(lost)]  # it is told so
    roots = {node.root.spec.name: node.root for node in map(tree.find, by_queue) if node}
    standings = {name: _standings(tree, head) for name, head in by_queue.items()}
    winner = _winner(roots[min(roots)], by_queue, standings)
    return by_queue[min(by_queue)] if winner is None else winner


def _standings(tree: QuotaTree, head: FairHead) -> Mapping[QueueName, _Standing]:
    """Return how a queue and those above it, but the root, stand once its head has its quota."""
    node = tree.find(head.queue)
    found: dict[QueueName, _Standing] = {}
    # Nobody is compared with a root.
    above = [] if node is None else [at for at in (node, *_above(node)) if at.parent is not None]
    before = {at.spec.name: {cell: at.used(cell) for cell in at.usage} for at in above}
    if node is not None:
        tree.charge(head.queue, head.cells)
    for at in above:
        grown = {cell for cell in at.usage if at.used(cell) > before[at.spec.name].get(cell, 0)}
        is_above = any(at.borrowed(cell) and at.is_shared(cell) for cell in grown)
        found[at.spec.name] = _Standing(is_above, share(at), head.rank)
    if node is not None:
        tree.give_back(head.queue, head.cells)
    return found


def _winner(
    at: QueueNode,
    heads: Mapping[QueueName, FairHead],
    standings: Mapping[QueueName, Mapping[QueueName, _Standing]],
) -> FairHead | None:
    """Return the head that a queue, or one below it, sends up; ``None``: none waits there."""
    sent: list[tuple[_Standing, FairHead]] = []
    own = heads.get(at.spec.name)
    if own is not None:
        sent.append((_ALONE._replace(rank=own.rank), own))
    for child in at.children.values():
        head = _winner(child, heads, standings)
        if head is not None:
            sent.append((standings[head.queue][child.spec.name], head))
    return min(sent)[1] if sent else None


def _above(node: QueueNode) -> Iterable[QueueNode]:
    while node.parent is not None:
        node = node.parent
        yield node
