"""Admits gangs in the order of queues, as the planner does where each of them fits."""

from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.turn import Turns


def admit_all(tree: QuotaTree, turns: Turns) -> list[str]:
    """Admit everybody whose turn comes; return their names in order."""
    admitted = []
    while (found := turns.first()) is not None:
        tree.charge(found.queue, found.request)
        turns.waiting.drop(found.gang)
        turns.changed({found.queue})
        admitted.append(str(found.gang))
    return admitted
