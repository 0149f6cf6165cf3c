"""Whether those who gave way would come back, and whether shares grow more even.

A gang that gave way waits afterwards. If the same rules let it take the room back, the two would
take turns for ever (kueue#14543, volcano#4947). So each of them is judged once more, as the gang
that wants room, against the gang that has it now: it must be refused.

The *potential* is the sum over queues, and over the contested cells, of what is used above the
entitlement, by weight. Taking back what a queue is entitled to makes it strictly less, so that
no sequence of such steps can return to where it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.rules import PreemptionRules
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial

_UNITS: Final = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}
"""How much of a resource counts as one, so that bytes do not outweigh devices."""

Gone = tuple[Tenant, Amounts]
"""A gang that gives way, and what it gives back: all that it holds, or its surplus."""


def usage_after(rules: PreemptionRules, gone: Iterable[Gone]) -> UsageTrial:
    """Return what queues use once the gangs have gone and the one that wanted room runs."""
    trial = rules.usage.copy()
    for other, amounts in gone:
        trial.give_back(other.queue, amounts)
    trial.charge(rules.wants.queue, rules.wants.amounts)
    return trial


def returning(rules: PreemptionRules, gone: Sequence[Gone]) -> list[Tenant]:
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


def is_evener(rules: PreemptionRules, gone: Sequence[Gone]) -> bool:
    """Return whether a set that takes from other queues makes the potential less.

    True for one that does not: inside a queue it is the priority that rises strictly.
    """
    others = [other for other, _ in gone if other.queue and not rules.is_own(other)]
    if not others or rules.usage.find(rules.wants.queue) is None:
        return True
    queues = {other.queue for other in others if other.queue} | {rules.wants.queue}
    names = [queue for queue in queues if queue is not None]
    cells, after = sorted(rules.contested), usage_after(rules, gone)
    return potential(after, names, cells) < potential(rules.usage, names, cells)


def potential(usage: UsageTrial, queues: Iterable[QueueName], cells: Sequence[Cell]) -> Fraction:
    """Return the sum of what queues use above their entitlement, by weight, cell by cell."""
    nodes = [node for node in map(usage.find, queues) if node is not None]
    return sum(
        (
            Fraction(
                max(0, usage.used(node, cell) - usage.entitled(node, cell)),
                max(node.spec.weight, 1) * _UNITS.get(cell.resource, 1),
            )
            for node in nodes
            for cell in cells
        ),
        Fraction(0),
    )
