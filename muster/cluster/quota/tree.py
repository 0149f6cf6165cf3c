"""The tree of queues: queues come, change and go; usage is charged and given back.

A change at one queue is carried up: at each queue above, what it lends and what it uses above what
it keeps change by a difference. So one change costs the depth of the tree and not its size.

A queue whose parent is missing, or below it, becomes the root of what is below it. That part of the
tree is *stopped*: nothing new is admitted there until the objects are right. The rest goes on.
(Volcano stops the whole cluster, Kueue the whole tree.)
"""

from collections.abc import Iterator

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuenode import NOTHING_CARRIED, Carried, LentSum, QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec


class QuotaTree:
    """All queues of one dialect. Amounts are charged to the queues that gangs name."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._nodes: dict[QueueName, QueueNode] = {}
        #: queues that are roots only because their parent is missing or below them
        self._cut: set[QueueName] = set()

    def __len__(self) -> int:
        """Return the number of queues."""
        return len(self._nodes)

    def nodes(self) -> Iterator[QueueNode]:
        """Yield every queue, in the order in which they came."""
        yield from self._nodes.values()

    def find(self, name: QueueName) -> QueueNode | None:
        """Return a queue, ``None`` where there is none of that name."""
        return self._nodes.get(name)

    # --- queues -----------------------------------------------------------------------------

    def put(self, spec: QueueSpec) -> bool:
        """Add a queue, or change one; what is charged to it stays charged.

        Returns whether a queue came or has another place, and not only other numbers.
        """
        node = self._nodes.get(spec.name)
        if node is not None and node.spec.parent == spec.parent:
            self._rewrite(node, spec)
            return False
        if node is None:
            node = self._nodes[spec.name] = QueueNode(spec)
        else:
            self._detach(node)
            node.spec = spec
        self._place(node)
        self._mend()
        return True

    def remove(self, name: QueueName) -> None:
        """Remove a queue with its charges. Its children are stopped until they have a parent."""
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self._detach(node)
        self._cut.discard(name)
        for child in list(node.children.values()):
            self._detach(child)
            self._cut.add(child.spec.name)
        self._mend()

    def has_below(self, name: QueueName) -> bool:
        """Return whether queues are below a queue, or would be if it came."""
        node = self._nodes.get(name)
        if node is not None and node.children:
            return True
        return any(self._nodes[cut].spec.parent == name for cut in self._cut)

    def is_stopped(self, root: QueueNode) -> bool:
        """Return whether the queues below a root are stopped."""
        return root.spec.name in self._cut

    def problem(self, name: QueueName) -> str:
        """Return why a queue is stopped, in words; "" where it is not."""
        node = self._nodes.get(name)
        if node is None:
            return f"queue {name} does not exist"
        top = node.root.spec
        if not self.is_stopped(node.root):
            return ""
        if top.parent not in self._nodes:
            return (
                f"queue {top.name}: parent {top.parent} does not exist: create it, or name another"
            )
        return f"queue {top.name}: parent {top.parent} is below it: a tree has no cycles"

    def _place(self, node: QueueNode) -> None:
        """Put a queue below its parent, and below it those that waited for it."""
        parent = None if node.spec.parent is None else self._nodes.get(node.spec.parent)
        if node.spec.parent is None:
            self._cut.discard(node.spec.name)
        elif parent is None or parent.root is node:
            self._cut.add(node.spec.name)
        else:
            self._cut.discard(node.spec.name)
            self._attach(node, parent)

    def _mend(self) -> None:
        """Try once more the queues that had no place."""
        for name in sorted(self._cut):
            self._place(self._nodes[name])

    def _attach(self, node: QueueNode, parent: QueueNode) -> None:
        node.parent = parent
        parent.children[node.spec.name] = node
        for cell in node.cells():
            _carry(parent, cell, NOTHING_CARRIED, node.carried(cell))

    def _detach(self, node: QueueNode) -> None:
        parent = node.parent
        if parent is None:
            return
        for cell in node.cells():
            _carry(parent, cell, node.carried(cell), NOTHING_CARRIED)
        del parent.children[node.spec.name]
        node.parent = None

    def _rewrite(self, node: QueueNode, spec: QueueSpec) -> None:
        """Change the numbers of a queue that stays where it is."""
        cells = node.cells() | set(spec.quotas)
        before = {cell: node.carried(cell) for cell in cells}
        node.spec = spec
        if node.parent is not None:
            for cell in cells:
                _carry(node.parent, cell, before[cell], node.carried(cell))

    # --- usage ------------------------------------------------------------------------------

    def charge(self, name: QueueName, amounts: Amounts) -> None:
        """Add what a gang takes to its queue. Raises ``KeyError`` where there is no such queue.

        Nothing is checked: what runs is charged, even where it is more than the queue may take.
        """
        self._use(self._nodes[name], amounts, 1)

    def give_back(self, name: QueueName, amounts: Amounts) -> None:
        """Take away what a gang gave back. Raises ``KeyError`` where there is no such queue."""
        self._use(self._nodes[name], amounts, -1)

    def _use(self, node: QueueNode, amounts: Amounts, sign: int) -> None:
        for cell, amount in amounts.items():
            before = node.carried(cell)
            _add(node, cell, sign * amount)
            if node.parent is not None:
                _carry(node.parent, cell, before, node.carried(cell))


def closed_at(node: QueueNode) -> QueueNode | None:
    """Return the queue that is closed: itself, or the first above it; ``None``: all are open."""
    at: QueueNode | None = node
    while at is not None and at.spec.is_open:
        at = at.parent
    return at


def closed_text(at: QueueNode) -> str:
    """Return that a queue is closed, in words."""
    return f"queue {at.spec.name} is closed: no new gang is admitted until it is opened"


def _carry(node: QueueNode | None, cell: Cell, before: Carried, after: Carried) -> None:
    """Carry the change of a child up to where nothing changes."""
    while node is not None and before != after:
        own = node.carried(cell)
        _exchange(node.lent_by_children, cell, before.lent, after.lent)
        _exchange(node.kept_below, cell, before.kept, after.kept)
        _add(node, cell, after.over - before.over)
        before, after = own, node.carried(cell)
        node = node.parent


def _exchange(sums: dict[Cell, LentSum], cell: Cell, before: int, after: int) -> None:
    """Replace one part of a sum."""
    if before == after:
        return
    found = sums.setdefault(cell, LentSum())
    found.take(before)
    found.add(after)
    if not found.finite and not found.unlimited:
        del sums[cell]


def _add(node: QueueNode, cell: Cell, amount: int) -> None:
    used = node.usage.get(cell, 0) + amount
    if used:
        node.usage[cell] = used
    else:
        node.usage.pop(cell, None)
