"""Whether those who gave way would come back, and whether shares grow more even.

A gang that gave way waits afterwards. If the same rules let it take the room back, the two would
take turns for ever (kueue#14543, volcano#4947). So each of them is judged once more, as the gang
that wants room, against the gang that has it now: it must be refused.

The *potential* is the sum over queues, and over the contested cells, of what is used above the
entitlement, by weight. Taking back what a queue is entitled to makes it strictly less, so that
no sequence of such steps can return to where it was.

Where a queue that borrows takes from one that borrows more, the sum stays the same. There the
squares are summed: x of b given by a queue of weight w to another of b' and w', where Kueue's rule
(b' + x)/w' ≤ (b - x)/w holds, change b²/w + b'²/w' by -x²/w or less.

Where fair shares count (``dividedshares``), what is used above them comes first. Taking up to a
share makes it strictly less. Taking back what a queue is entitled to never makes it more: whoever
is within its entitlement is within its share.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.dividedshares import excess
from muster.queueing.preemption.fairshares import sides_of
from muster.queueing.preemption.rules import RoomRules
from muster.queueing.preemption.tenant import Gone, Tenant
from muster.queueing.preemption.usagetrial import UsageTrial

_UNITS: Final = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}
"""How much of a resource counts as one, so that bytes do not outweigh devices."""


def usage_after(rules: RoomRules, gone: Iterable[Gone]) -> UsageTrial:
    """Return what queues use once the gangs have gone and the one that wanted room runs."""
    trial = rules.usage.copy()
    for other, amounts in gone:
        trial.give_back(other.queue, amounts)
    trial.charge(rules.wants.queue, rules.wants.amounts)
    return trial


def returning(rules: RoomRules, gone: Sequence[Gone]) -> list[Tenant]:
    """Return those who would take the room back by the same rules.

    The time for which a gang is spared after its start protects nobody here: it ends.
    """
    after = usage_after(rules, gone)
    runs = replace(rules.wants, started_at=rules.now)
    found = []
    for other, amounts in gone:
        back = replace(other, amounts=amounts)
        again = replace(rules, wants=back, usage=after, own={}, spares_young=False)
        if other.preempts and again.keeps(runs) is None:
            found.append(other)
    return found


def is_evener(rules: RoomRules, gone: Sequence[Gone]) -> bool:
    """Return whether a set that takes from other queues makes the potential less.

    Of each pair the queues are compared that are just below the one above both. True for a set that
    takes from no other queue: inside a queue it is the priority that rises strictly. So it does
    where a gang that borrows takes from lower priorities alone: the potential must not grow there.
    """
    here = rules.usage.find(rules.wants.queue)
    power = 2 if here is not None and rules.policies.fair_rules(here) else 1
    nodes: dict[QueueName, QueueNode] = {}
    for there in {other.queue for other, _ in gone if not rules.is_own(other)}:
        found = rules.usage.find(there)
        if here is not None and found is not None and found.root is here.root:
            tops = sides_of(here, found)
            nodes |= {node.spec.name: node for node in tops}
    cells, after = sorted(rules.contested), usage_after(rules, gone)
    if not nodes:
        return True
    change = _beyond_shares(rules, after, nodes.values()) - _beyond_shares(
        rules, rules.usage, nodes.values()
    )
    if change:
        return change < 0
    before = potential(rules.usage, nodes.values(), cells, power)
    change = potential(after, nodes.values(), cells, power) - before
    return change < 0 or (power == 1 and change == 0 and _rises(rules, gone))


def _beyond_shares(rules: RoomRules, usage: UsageTrial, nodes: Iterable[QueueNode]) -> Fraction:
    """Return the sum of what queues use above their fair shares, where these count."""
    divided = rules.divided
    if divided is None or not rules.takes_by_division:
        return Fraction(0)
    return sum(
        (
            Fraction(excess(divided, usage, node, cell), _UNITS.get(cell.resource, 1))
            for node in nodes
            for cell in rules.contested
        ),
        Fraction(0),
    )


def _rises(rules: RoomRules, gone: Sequence[Gone]) -> bool:
    """Return whether a gang that may borrow takes from lower priorities alone."""
    if not rules.policies.of(rules.usage.find(rules.wants.queue)).borrows:
        return False
    return all(other.priority < rules.wants.priority for other, _ in gone)


def potential(
    usage: UsageTrial, nodes: Iterable[QueueNode], cells: Sequence[Cell], power: int = 1
) -> Fraction:
    """Return the sum of what queues use above their entitlement, by weight, cell by cell.

    ``power``: 1, or 2 for the sum of squares.
    """
    return sum(
        (
            Fraction(
                max(0, usage.used(node, cell) - usage.entitled(node, cell)),
                _UNITS.get(cell.resource, 1),
            )
            ** power
            / max(node.spec.weight, 1)
            for node in nodes
            for cell in cells
        ),
        Fraction(0),
    )
