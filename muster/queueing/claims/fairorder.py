"""Whose turn it is with Kueue's fair sharing: a tournament of the heads up each tree.

::

    all ─┬─ research ─┬─ a   head 2    of the queues of one parent the one goes on that stays within
         │            └─ b   head 4    its entitlement with its head, then the one with the lesser
         └─ c             head 1       share with it, then the higher priority, then the older head

Shares are those that each queue, and each above it, has once the head has its quota. Source:
kubernetes-sigs/kueue, pkg/scheduler/fair_sharing_iterator.go at 0.14, and the gate
FairSharingPrioritizeNonBorrowing of 0.17.

A tournament for each claim that is looked at, with the shares of all heads, would take as many
seconds as there are hundreds of heads. So a pass keeps what it knows: what a queue uses changes
shares in its *branch* alone, which is a child of the root with all below it.
"""

from collections.abc import Callable, Mapping
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


Standings = Mapping[QueueName, _Standing]
_ALONE: Final = _Standing(borrows=False, share=NONE, rank=(0, 0.0, ""))


class Tournament:
    """Finds the head that goes first, again and again in one pass; the tree is left as it was."""

    def __init__(self, tree: QuotaTree) -> None:
        """Begin a pass."""
        self._tree = tree
        #: heads as they were when the last quota was taken in their tree
        self._heads: dict[QueueName, FairHead] = {}
        self._standings: dict[QueueName, tuple[FairHead, Standings]] = {}

    def first(
        self, ranks: Mapping[QueueName, Rank], cells: Callable[[QueueName], Amounts]
    ) -> QueueName:
        """Return the queue whose head goes first: by name, one tree after the other.

        ``ranks``: of the heads that are left; ``cells``: returns what one of them asks for, as the
        tree is now. Raises ``ValueError`` where no head is left.
        """
        if not ranks:
            raise ValueError("no head: there is nothing to choose from")
        nodes = {name: self._tree.find(name) for name in ranks}
        lost = [name for name, node in nodes.items() if node is None]
        if lost:
            return min(lost)  # it is told so
        roots = {name: node.root for name, node in nodes.items() if node is not None}
        root = min(roots.values(), key=lambda each: each.spec.name)
        mine = [name for name, at in roots.items() if at is root]
        heads = {name: self._head(name, ranks[name], cells) for name in mine}
        standings = {name: self._standing(head) for name, head in heads.items()}
        winner = _winner(root, heads, standings)
        return min(heads) if winner is None else winner.queue

    def changed(self, queue: QueueName) -> None:
        """Forget what does not hold any more: the use of a queue has changed."""
        node = self._tree.find(queue)
        if node is None:
            return
        branch = next((at for at in node.path() if at.parent is node.root), node)
        for at in node.root.subtree():
            self._heads.pop(at.spec.name, None)
        for at in branch.subtree():
            self._standings.pop(at.spec.name, None)

    def _head(
        self, queue: QueueName, rank: Rank, cells: Callable[[QueueName], Amounts]
    ) -> FairHead:
        head = self._heads.get(queue)
        if head is None or head.rank != rank:
            head = self._heads[queue] = FairHead(queue, cells(queue), rank)
        return head

    def _standing(self, head: FairHead) -> Standings:
        known = self._standings.get(head.queue)
        if known is None or known[0] != head:
            known = self._standings[head.queue] = head, _standings(self._tree, head)
        return known[1]


def _standings(tree: QuotaTree, head: FairHead) -> Standings:
    """Return how a queue and those above it, but the root, stand once its head has its quota."""
    node = tree.find(head.queue)
    found: dict[QueueName, _Standing] = {}
    # Nobody is compared with a root.
    above = [] if node is None else [at for at in node.path() if at.parent is not None]
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
    standings: Mapping[QueueName, Standings],
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
