"""What those used lately who name a queue: Kueue's LocalQueues (admission fair sharing, KEP-4136).

::

    ClusterQueue a          admissionScope: UsageBasedAdmissionFairSharing
    ├── team/main           used 12 GPUs on average, weight 2   ► 6
    └── lab/main            used 8 GPUs on average, weight 1    ► 8   goes behind it

Before their priority and age, gangs of such a queue go by ::

    sum over resources of worth · (average + part · (present use - average))  ÷  weight

Source: kubernetes-sigs/kueue, pkg/workload/workload.go ``CalcLocalQueueFSUsage`` and
pkg/cache/queue/cluster_queue.go ``queueOrderingFunc`` at 0.14. Units are those of quantities: CPUs,
bytes, pieces; so bytes outweigh all else unless they are worth less, as there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Protocol

from muster.cluster.quota.aliases import QueueAliases, QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.averageuse.usehistory import UseHistory

DEFAULT: Final = "default"
_CPU: Final = "cpu"

#: NAMESPACE/NAME of a LocalQueue; a gang that names none is of ``default``.
LocalName = str


def local_name(user: QueueUser) -> LocalName:
    """Return the LocalQueue that somebody means, in queues that go by their users."""
    return f"{user.namespace}/{user.text or DEFAULT}"


@dataclass(frozen=True, slots=True)
class UseTerms:
    """How past use counts."""

    #: Seconds, above 0.
    half_life: float
    #: Seconds; see ``UseHistory.part``.
    ahead: float
    #: Of a unit of each resource; 1 if not named.
    worth: Mapping[str, float] = field(default_factory=dict)


class UserCharges(Protocol):
    """Queues with what is charged to them for whom: ``QueueCharges``, or ``ClaimLedger``."""

    @property
    def tree(self) -> QuotaTree:
        """The queues."""

    @property
    def aliases(self) -> QueueAliases:
        """How they are named."""

    def charged(self, queue: QueueName) -> Iterator[tuple[QueueUser, Mapping[Cell, int]]]:
        """Yield those who name a queue, with what it is charged for them."""


class UserHistory:
    """The averages of those who name queues that go by their users."""

    def __init__(self, terms: UseTerms, charges: UserCharges) -> None:
        """Begin without a past."""
        self._history: UseHistory[LocalName, str] = UseHistory(terms.half_life, terms.ahead)
        self._worth = terms.worth
        self._charges = charges
        self._noted: set[LocalName] = set()

    def note(self, now: float) -> None:
        """Take note of what everybody uses from now on, who names such a queue."""
        found: dict[LocalName, Mapping[str, float]] = {}
        for node in self._charges.tree.nodes():
            if node.spec.goes_by_users:
                found |= self.present(node.spec.name)
        for name in self._noted | set(found):
            self._history.note(name, found.get(name, {}), now)
        self._noted = set(found)

    def present(self, queue: QueueName) -> dict[LocalName, dict[str, float]]:
        """Return by LocalQueue what those use now who name a queue, by resource."""
        found: defaultdict[LocalName, dict[str, float]] = defaultdict(dict)
        for user, charged in self._charges.charged(queue):
            amounts = found[local_name(user)]
            for cell, amount in charged.items():
                amounts[cell.resource] = amounts.get(cell.resource, 0.0) + amount
        return dict(found)

    def average(self, name: LocalName, now: float) -> dict[str, float]:
        """Return what those used on average who name a queue as a LocalQueue has it."""
        return self._history.average(name, now)

    def restore(self, name: LocalName, average: Mapping[str, float], at: float) -> None:
        """Take note of an average that was written down, unless a later one is known."""
        self._history.restore(name, average, at)
        self._noted.add(name)

    def keys(self, users: Iterable[QueueUser], queue: QueueName, now: float) -> Iterator[float]:
        """Yield what orders the gangs of each user in a queue; the least goes first."""
        present = self.present(queue)
        for user in users:
            name = local_name(user)
            amounts = self._history.ordered_by(name, present.get(name, {}), now)
            yield self._weighed(amounts, self._charges.aliases.weight(user))

    def _weighed(self, amounts: Mapping[str, float], weight: int) -> float:
        """Return the worth of amounts by weight; whoever has weight 0 and used anything is last."""
        whole = sum(self._worth.get(name, 1.0) * _units(name, one) for name, one in amounts.items())
        if not weight:
            return inf if whole else 0.0
        return whole * WEIGHT_ONE / weight


def _units(resource: str, amount: float) -> float:
    """Return an amount in units of the model as Kubernetes counts it."""
    return amount / 1000 if resource == _CPU else amount
