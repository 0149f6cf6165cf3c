"""A cheap necessary condition: the whole cluster has as much free as a gang asks for.

Waiting gangs are looked at again whenever room appears. With a thousand of them most
could be dismissed by adding up the free GPUs once, which costs one pass over a column
for all gangs together instead of one search for each.
"""

from dataclasses import dataclass, field

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.queueing.order import placed


@dataclass(slots=True)
class FreeTotals:
    """Free amounts summed over all living nodes of one snapshot, on demand.

    Cordoned and tainted nodes count: some pods tolerate them, and the condition must
    never dismiss a gang that could be placed.
    """

    snapshot: Snapshot
    _totals: dict[str, int] = field(default_factory=dict)

    def total(self, resource: str) -> int:
        """Return the sum of what is free of ``resource``; overcommitted nodes count as 0."""
        known = self._totals.get(resource)
        if known is None:
            nodes = self.snapshot.nodes
            free = np.maximum(nodes.free(resource), 0)
            known = int(free[nodes.alive].sum()) + self._standby(resource)
            self._totals[resource] = known
        return known

    def _standby(self, resource: str) -> int:
        """Return what hot spares keep: their gangs may use it, and those of higher priority."""
        pods, classes = self.snapshot.pods, self.snapshot.classes
        numbers, counts = np.unique(
            pods.pod_class[self.snapshot.standby_rows()], return_counts=True
        )
        pairs = zip(numbers.tolist(), counts.tolist(), strict=True)
        return sum(classes[number].request(resource) * count for number, count in pairs)

    def may_fit(self, gang: GangView) -> bool:
        """Return whether the fewest members that must be placed could fit by amounts alone.

        False is certain (the gang cannot be placed now), True is not: domains, taints and
        fragments are not looked at. The cheapest waiting members are counted, so a
        gang of several classes is never dismissed wrongly.
        """
        if gang.spec is None or len(gang.waiting) < lacking(gang):
            return False
        least = least_request(self.snapshot, gang)
        return all(amount <= self.total(name) for name, amount in least.items())


def lacking(gang: GangView) -> int:
    """Return how many members must be placed together now; 1 above the minimum."""
    return 1 if gang.spec is None else max(1, gang.spec.min_count - placed(gang))


def least_request(snapshot: Snapshot, gang: GangView) -> dict[str, int]:
    """Return the least that the members to be placed can ask for together, by resource.

    Each counts like the cheapest waiting member, so that a gang of several classes never counts
    for more than it asks for.
    """
    numbers = np.unique(snapshot.pods.pod_class[gang.waiting])
    classes = [snapshot.classes[int(number)] for number in numbers]
    resources = {name for pod_class in classes for name, _ in pod_class.requests}
    needed = lacking(gang)
    return {name: min(each.request(name) for each in classes) * needed for name in resources}
