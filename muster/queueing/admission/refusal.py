"""Why a queue does not admit a gang now, in a sentence for its owner.

::

    no queue of that name ──► closed, or stopped ──► could never hold it ──► too little left now
                                                                        └──► others go first
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from muster.cluster.quota.aliases import QueueAliases, QueueUser
from muster.cluster.quota.availability import Lack, lack, never_fits, potential
from muster.cluster.quota.cells import UNLIMITED, Cell, plus
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.flavors import Choice
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import closed_at, closed_text
from muster.cluster.specs.matching import holds
from muster.cluster.specs.podconstraints import Requirement
from muster.queueing.backfill.promise import Promise

_MOST_NAMED: Final = 5


def unknown(text: str, namespace: str, known: Iterable[str]) -> str:
    """Return that there is no queue as named."""
    names = sorted(known)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    there = ", ".join(names[:_MOST_NAMED]) + more if names else "there are none"
    return (
        f'no queue is named "{text}" in namespace {namespace}: create it, or name one of: {there}'
    )


def refusal(
    charges: QueueCharges,
    queue: QueueName,
    request: Mapping[str, int],
    choice: Choice | None = None,
) -> str:
    """Return why a queue does not grant a request of these flavors, "" where it does.

    Raises ``KeyError`` where there is no such queue.
    """
    node = charges.tree.find(queue)
    if node is None:
        raise KeyError(queue)
    stopped = _inner(node) or charges.tree.problem(queue) or closed(node)
    if stopped:
        return stopped
    cells = charges.request(queue, request, choice)
    promised = _overpromised(node, cells)
    if promised:
        return promised
    never = never_fits(node, cells)
    if never is not None:
        return _never(node, never, cells[never])
    short = lack(node, cells)
    return "" if short is None else _short(node, short, cells[short.cell])


def not_for(namespace: str, queue: QueueName) -> str:
    """Return that a namespace may not use a queue."""
    return (
        f"namespace {namespace} may not use queue {queue}: its labels do not match the queue's "
        "namespace selector; name another queue, or ask the queue's administrator"
    )


def barred(
    user: QueueUser,
    queue: QueueName,
    aliases: QueueAliases,
    required: Iterable[Requirement],
    labels: Mapping[str, str],
) -> str:
    """Return why those who name a queue so may not use it, "" where they may.

    ``required``: of the labels of their namespace, ANDed.
    """
    if not aliases.is_open(user):
        return stopped_name(user.text, queue)
    if not all(holds(each, labels.get(each.key)) for each in required):
        return not_for(user.namespace, queue)
    return ""


def stopped_name(text: str, queue: QueueName) -> str:
    """Return that a name of a queue is stopped, though the queue is not."""
    return f'"{text}" is stopped: no new gang that names queue {queue} so is admitted'


def before(first: str, queue: QueueName) -> str:
    """Return that a strict queue has another gang in front."""
    return f"{first} is before it in queue {queue}, which is strict: it is planned after that one"


def promised_first(refused: str, promises: Sequence[Promise]) -> str:
    """Return that what a queue has left is promised, "" where it suffices beside it."""
    if not refused:
        return ""
    whom = ", ".join(sorted(one.gang for one in promises))
    return (
        f"what its queue has left is promised to {whom}: with that, {refused}; gangs that end in "
        "time go first, muster.dev/max-run-time says for how long one runs at most"
    )


def _inner(node: QueueNode) -> str:
    if not node.children:
        return ""
    below = min(node.children)
    return f"queue {node.spec.name} is above other queues: name one below it, such as {below}"


def _overpromised(node: QueueNode, cells: Iterable[Cell]) -> str:
    """Return that queues keep more than one above them may take at most."""
    wanted, at = list(cells), node.parent
    while at is not None:
        for cell in wanted if at.spec.is_whole else ():
            below, limit = at.kept_below.get(cell), at.quota(cell).limit
            if below is not None and below.total > limit:
                most, kept = _amount(cell, limit), _bare(cell, below.total)
                return (
                    f"queue {at.spec.name} is limited to {most}, and queues below it keep {kept}: "
                    "raise its limit, or let them keep less"
                )
        at = at.parent
    return ""


def closed(node: QueueNode) -> str:
    """Return that a queue, or one above it, admits no new gang; "" where it does."""
    at = closed_at(node)
    return "" if at is None else closed_text(at)


def _never(node: QueueNode, cell: Cell, asked: int) -> str:
    most = potential(node, cell)
    return (
        f"it asks for {_amount(cell, asked)}, and queue {node.spec.name} can never have more than "
        f"{_amount(cell, most)}: ask for less, or raise the queue's limit"
    )


def _short(node: QueueNode, short: Lack, asked: int) -> str:
    at, cell = short.at, short.cell
    where = f"queue {node.spec.name}"
    if at is not node:
        where = f"queue {at.spec.name}, above {node.spec.name},"
    left = _amount(cell, max(short.granted, 0))
    return (
        f"it asks for {_amount(cell, asked)}, and {where} has {left} left: "
        f"{_bare(cell, at.used(cell))} of {_bound(at, cell)} are used"
    )


def _bound(node: QueueNode, cell: Cell) -> str:
    limit, entitled = node.limit(cell), node.entitled(cell)
    if node.parent is not None:
        limit = min(limit, plus(entitled, node.quota(cell).borrowable))
    if entitled >= limit or node.parent is None:
        return _bare(cell, min(entitled, limit))
    most = "without a limit" if limit >= UNLIMITED else f"{_bare(cell, limit)} at most"
    return f"{_bare(cell, entitled)} entitled ({most})"


def _bare(cell: Cell, amount: int) -> str:
    """Return an amount without the name of its resource."""
    if amount >= UNLIMITED:
        return "any amount"
    if cell.resource == "cpu":
        return f"{amount / 1000:g}"
    if cell.resource in ("memory", "ephemeral-storage"):
        return f"{amount / (1 << 30):.4g}Gi"
    return str(amount)


def _amount(cell: Cell, amount: int) -> str:
    """Return an amount in the units in which people write it."""
    of = " of" if amount >= UNLIMITED else ""
    flavor = f" of flavor {cell.flavor}" if cell.flavor else ""
    return f"{_bare(cell, amount)}{of} {cell.resource}{flavor}"
