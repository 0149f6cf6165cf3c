"""What queues would use if some gangs ended and others ran; the tree stays as it is.

The arithmetic is that of ``muster.cluster.quota.tree``: a change at one queue is carried up as far
as it exceeds what the queue keeps. Entitlements and limits do not depend on what is used. Numbers
of the tree are those of the first look at each, so that sums stay right if it changes meanwhile.
"""

from collections.abc import Iterator

from muster.cluster.quota.availability import own_room
from muster.cluster.quota.cells import UNLIMITED, Amounts, Cell, less, plus
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.shares.borrowed import Share, share_of


class UsageTrial:
    """A tree of queues with usage of its own, which begins as the tree's."""

    def __init__(self, tree: QuotaTree) -> None:
        """Begin with what the queues use now."""
        self._tree = tree
        #: What is used, where that is not what the tree says.
        self._now: dict[tuple[QueueName, Cell], int] = {}
        self._used: dict[tuple[QueueName, Cell], int] = {}
        self._kept: dict[tuple[QueueName, Cell], int] = {}
        self._entitled: dict[tuple[QueueName, Cell], int] = {}

    def copy(self) -> "UsageTrial":
        """Return another trial that begins with what is used in this one."""
        other = UsageTrial(self._tree)
        other._now = dict(self._now)
        other._used, other._kept, other._entitled = self._used, self._kept, self._entitled
        return other

    def find(self, queue: QueueName | None) -> QueueNode | None:
        """Return a queue, ``None`` where there is none."""
        return None if queue is None else self._tree.find(queue)

    def used(self, node: QueueNode, cell: Cell) -> int:
        """Return what the subtree uses, as ``QueueNode.used`` counts it."""
        key = (node.spec.name, cell)
        found = self._now.get(key)
        if found is None:
            found = self._used.get(key)
        if found is None:
            found = self._used[key] = node.used(cell)
        return found

    def share(self, node: QueueNode) -> Share:
        """Return the share that a queue has with what it uses here."""
        name = node.spec.name
        cells = {*node.usage, *(cell for at, cell in self._now if at == name)}
        return share_of(node, {cell: self.used(node, cell) for cell in cells})

    def kept(self, node: QueueNode, cell: Cell) -> int:
        """Return what nobody outside the subtree can use; as it was when first asked for."""
        key = (node.spec.name, cell)
        if key not in self._kept:
            self._kept[key] = node.kept(cell)
        return self._kept[key]

    def entitled(self, node: QueueNode, cell: Cell) -> int:
        """Return what the subtree is entitled to, as ``QueueNode.entitled`` counts it; likewise."""
        key = (node.spec.name, cell)
        if key not in self._entitled:
            self._entitled[key] = node.entitled(cell)
        return self._entitled[key]

    def charge(self, queue: QueueName | None, amounts: Amounts) -> None:
        """Let a gang of a queue take so much; nothing where there is no such queue."""
        self._change(queue, amounts, 1)

    def give_back(self, queue: QueueName | None, amounts: Amounts) -> None:
        """Let a gang of a queue give back so much."""
        self._change(queue, amounts, -1)

    def _change(self, queue: QueueName | None, amounts: Amounts, sign: int) -> None:
        node = self.find(queue)
        if node is None:
            return
        for cell, amount in amounts.items():
            self._carry(node, cell, sign * amount)

    def _carry(self, node: QueueNode | None, cell: Cell, amount: int) -> None:
        now, known = self._now, self._kept
        while node is not None and amount:
            key = (node.spec.name, cell)
            before = now[key] if key in now else self.used(node, cell)
            kept = known[key] if key in known else self.kept(node, cell)
            now[key] = after = before + amount
            amount = _above(after, kept) - _above(before, kept)
            node = node.parent

    def borrows(self, node: QueueNode, cell: Cell) -> bool:
        """Return whether the subtree uses more than it is entitled to."""
        return self.exceeds(node, cell) and node.is_shared(cell)

    def exceeds(self, node: QueueNode, cell: Cell) -> bool:
        """Return the same, even if no queue of the tree is entitled to any."""
        return self.used(node, cell) > self.entitled(node, cell)

    def short_cells(self, queue: QueueName | None, request: Amounts) -> list[Cell]:
        """Return the cells of a request of which a queue cannot grant enough."""
        node = self.find(queue)
        if node is None:
            return []
        return [cell for cell, amount in request.items() if self._is_short(node, cell, amount)]

    def _is_short(self, node: QueueNode, cell: Cell, amount: int) -> bool:
        for at in path(node):
            limit = plus(own_room(at, cell), at.used(cell))
            used = self.used(at, cell)
            if amount > less(limit, used):
                return True
            amount -= max(0, less(self.kept(at, cell), used))
        return False


def _above(used: int, kept: int) -> int:
    """Return what a queue uses above what it keeps; what is unlimited stays so."""
    if used >= UNLIMITED:
        return UNLIMITED
    return used - kept if used > kept else 0


def path(node: QueueNode | None) -> Iterator[QueueNode]:
    """Return a queue and those above it, up to the root; none where there is no queue."""
    return iter(()) if node is None else node.path()


def below_common(node: QueueNode, other: QueueNode | None) -> list[QueueNode]:
    """Return a queue and those above it, as far as ``other`` is not below them too.

    Of queues in different trees: up to the root, without it where it is above others.
    """
    above = {each.spec.name for each in path(other)}
    found = [each for each in path(node) if each.spec.name not in above]
    if other is None or other.root is not node.root:
        return [each for each in found if each.parent is not None or each is node]
    return found
