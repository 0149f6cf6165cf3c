"""The numbers of a tree, computed from the facts up and compared. For tests and for debugging."""

from collections import Counter
from collections.abc import Iterable, Mapping

from muster.cluster.errors import InvariantViolation
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell, capped
from muster.cluster.quota.charges import Account, Bill, QueueCharges, Use
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree

#: What gangs of each queue take, from the pods themselves.
Charged = Mapping[QueueName, Mapping[Cell, int]]


def audit(tree: QuotaTree, charged: Charged) -> None:
    """Compare every sum of the tree; raises ``InvariantViolation`` for the first that is wrong."""
    for node in tree.nodes():
        own = charged.get(node.spec.name, {})
        for cell in node.cells() | set(own) | _below(node.children.values()):
            _check(node, cell, own.get(cell, 0))


def audit_charges(charges: QueueCharges, bills: Mapping[Bill, int]) -> None:
    """Compare accounts and tree with the pods' bills, each with how many pods have it.

    Raises ``InvariantViolation`` for the first sum that is wrong.
    """
    used: dict[QueueUser, Counter[Use]] = {}
    for bill, pods in bills.items():
        sums_of_user = used.setdefault(bill.user, Counter())
        sums_of_user.update({use: amount * pods for use, amount in bill.uses.items()})
    known = charges.accounts()
    if set(known) != {user for user, amounts in used.items() if amounts}:
        raise InvariantViolation(f"accounts {sorted(known)}, bills of {sorted(used)}")
    sums: dict[QueueName, Counter[Cell]] = {}
    for user, account in known.items():
        _check_account(charges, user, account, used[user])
        if account.queue is not None:
            sums.setdefault(account.queue, Counter()).update(account.charged)
    audit(charges.tree, sums)


def _check_account(
    charges: QueueCharges, user: QueueUser, account: Account, used: Mapping[Use, int]
) -> None:
    queue = charges.aliases.resolve(user)
    if account.used != dict(used):
        raise InvariantViolation(f"account of {user}: {account.used}, its pods use {dict(used)}")
    if account.queue != queue:
        raise InvariantViolation(f"account of {user} is charged to {account.queue}, not {queue}")
    wanted = charges.cells(queue, used)
    if account.charged != wanted:
        raise InvariantViolation(f"account of {user}: charged {account.charged}, not {wanted}")


def _check(node: QueueNode, cell: Cell, own: int) -> None:
    children = list(node.children.values())
    lent = node.lent_by_children.get(cell)
    wanted = capped(sum(child.lent(cell) for child in children))
    _require(node, cell, "lent by its children", 0 if lent is None else lent.total, wanted)
    kept = node.kept_below.get(cell)
    wanted = capped(sum(child.carried(cell).kept for child in children))
    _require(node, cell, "kept below", 0 if kept is None else kept.total, wanted)
    used = own + sum(child.over(cell) for child in children)
    _require(node, cell, "used", node.used(cell), used)
    for child in children:
        if child.parent is not node:
            raise InvariantViolation(f"queue {child.spec.name} is below two queues")


def _below(children: Iterable[QueueNode]) -> set[Cell]:
    return {cell for child in children for cell in child.cells()}


def _require(node: QueueNode, cell: Cell, what: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise InvariantViolation(
            f"queue {node.spec.name}, {cell.resource} of flavor {cell.flavor!r}: "
            f"{what} is {found}, and its parts add up to {wanted}"
        )
