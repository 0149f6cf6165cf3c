"""How much a queue may take now, the most it could ever take, and what stops it.

::

    may take now(queue)  = what it keeps and does not use + what it may take of its parent
    of its parent        = the least of: what the parent may take now,
                                         what is left of its own limits above what it keeps

At the root: what it is entitled to, less what is used. That may be less than 0 where numbers were
lowered while gangs run; then a queue gets less than what it keeps, too, until enough has ended.
"""

from dataclasses import dataclass

from muster.cluster.quota.cells import Amounts, Cell, less, plus
from muster.cluster.quota.queuenode import QueueNode


@dataclass(frozen=True, slots=True)
class Lack:
    """Where a request does not fit: the first queue on the way up that cannot grant it."""

    #: The queue that stops it.
    at: QueueNode
    #: The cell of which there is too little.
    cell: Cell
    #: What the request needs at that queue: less than it asks for, where queues below keep some.
    needed: int
    #: What that queue can grant; below 0 where it uses more than it may.
    granted: int


def available(node: QueueNode, cell: Cell) -> int:
    """Return what the queue may take of a cell now; below 0 where too much is used already."""
    own = own_room(node, cell)
    if node.parent is None:
        return own
    return min(own, plus(idle(node, cell), available(node.parent, cell)))


def potential(node: QueueNode, cell: Cell) -> int:
    """Return the most that the queue could take of a cell if nobody else used anything."""
    own = _own_limit(node, cell)
    if node.parent is None:
        return own
    return min(own, plus(node.kept(cell), potential(node.parent, cell)))


def lack(node: QueueNode, request: Amounts) -> Lack | None:
    """Return what stops a request, ``None`` where the queue may take all of it now.

    The cells are tried in the order of the request.
    """
    for cell, amount in request.items():
        found = _lack_of(node, cell, amount)
        if found is not None:
            return found
    return None


def never_fits(node: QueueNode, request: Amounts) -> Cell | None:
    """Return the first cell of which the queue could never take so much, ``None``: it could."""
    return next((cell for cell, amount in request.items() if amount > potential(node, cell)), None)


def borrows(node: QueueNode, request: Amounts) -> bool:
    """Return whether the queue would use more than it is entitled to, of a cell of the request."""
    return any(
        node.used(cell) + amount > node.entitled(cell) and node.is_shared(cell)
        for cell, amount in request.items()
    )


def _lack_of(node: QueueNode, cell: Cell, amount: int) -> Lack | None:
    at: QueueNode | None = node
    while at is not None:
        granted = own_room(at, cell)
        if amount > granted:
            return Lack(at, cell, amount, granted)
        amount -= idle(at, cell)
        at = at.parent
    return None


def idle(node: QueueNode, cell: Cell) -> int:
    """Return what the queue keeps of a cell and does not use."""
    return max(0, less(node.kept(cell), node.used(cell)))


def own_room(node: QueueNode, cell: Cell) -> int:
    """Return what the queue's own limits leave of a cell, whatever the queues above leave."""
    return less(_own_limit(node, cell), node.used(cell))


def _own_limit(node: QueueNode, cell: Cell) -> int:
    """Return the most that the queue itself lets its subtree take."""
    entitled = node.entitled(cell)
    borrowable = 0 if node.parent is None else node.quota(cell).borrowable
    return min(node.limit(cell), plus(entitled, borrowable))
