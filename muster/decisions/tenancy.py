"""The gangs of a snapshot as the rules of preemption see them.

What the model does not know of a gang (its last checkpoint, the budgets that protect it, what its
priority class forbids) comes in as *terms*.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.devices.dedicated import is_dedicated
from muster.cluster.handlers.quotaevents import SYSTEM_NAMESPACE, SYSTEM_PRIORITY
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.charges import QueueCharges, Use
from muster.cluster.quota.flavors import flavors_of
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import Preemptibility
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodFlag, PodState
from muster.queueing.preemption.tenant import Tenant


@dataclass(frozen=True, slots=True)
class GangTerms:
    """What the model does not know of a gang."""

    #: When it last wrote a checkpoint, seconds since the epoch; ``None``: never, or not known.
    checkpointed_at: float | None = None
    #: Whether a disruption budget, or an administrator, protects it now.
    is_protected: bool = False
    #: See ``Tenant``.
    is_preemptable: bool = True
    #: See ``Tenant``.
    preempts: bool = True


NO_TERMS: Final = GangTerms()


@dataclass(slots=True)
class Tenancy:
    """Makes tenants of the gangs of one snapshot."""

    snapshot: Snapshot
    #: The queues, ``None``: there are none.
    charges: QueueCharges | None
    terms: Mapping[GangKey, GangTerms]
    _flavors: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def terms_of(self, gang: GangKey) -> GangTerms:
        """Return what the model does not know of a gang."""
        return self.terms.get(gang, NO_TERMS)

    def queue_of(self, view: GangView) -> QueueName | None:
        """Return the queue that a gang means."""
        if self.charges is None or view.spec is None:
            return None
        user = QueueUser(view.key.split("/", 1)[0], view.spec.namespace, view.queue)
        return self.charges.queue_of(user)

    def preempts(self, view: GangView) -> bool:
        """Return whether a gang makes others give way."""
        return self.terms_of(view.key).preempts and (view.spec is None or view.spec.preempts)

    def tenant(self, view: GangView, rows: Sequence[int]) -> Tenant:
        """Return a gang that holds room with ``rows``."""
        queue, terms, pods = self.queue_of(view), self.terms_of(view.key), self.snapshot.pods
        flags = pods.flags[np.array(rows, dtype=np.int64)]
        some, spec = int(np.bitwise_or.reduce(flags)), view.spec
        return Tenant(
            gang=view.key,
            queue=queue,
            priority=view.priority,
            amounts=self.amounts(queue, rows),
            submitted_at=view.submitted_at,
            started_at=view.first_bound_at,
            is_system=self._is_system(view),
            is_protected=terms.is_protected,
            is_preemptable=terms.is_preemptable and bool(some & PodFlag.PREEMPTIBLE),
            is_marked=bool(some & PodFlag.FIRM),
            is_owned=is_owned(self.snapshot, rows, flags),
            preemptibility=Preemptibility.UNSAID if spec is None else spec.preemptibility,
            cooldown=0.0 if spec is None else spec.cooldown,
            serves=spec is not None and spec.serves,
            is_dedicated=self._is_dedicated(view, rows),
            preempts=self.preempts(view),
        )

    def amounts(self, queue: QueueName | None, rows: Sequence[int]) -> dict[Cell, int]:
        """Return what a queue is charged for some pods; without a queue: by resource."""
        uses: Counter[Use] = Counter()
        for (number, flavors), count in self._kinds(np.array(rows, dtype=np.int64)).items():
            for name, amount in self.snapshot.classes[number].requests:
                uses[Use(flavors, name)] += amount * count
        if self.charges is None or queue is None:
            found: Counter[Cell] = Counter()
            for (_, name), amount in uses.items():
                found[Cell("", name)] += amount
            return dict(found)
        return self.charges.cells(queue, uses)

    def _kinds(self, rows: NDArray[np.int64]) -> dict[tuple[int, tuple[str, ...]], int]:
        """Count pods by class and by the flavors of their nodes."""
        pods = self.snapshot.pods
        if self.charges is None or not self.charges.flavors:
            numbers, counts = np.unique(pods.pod_class[rows], return_counts=True)
            pairs = zip(numbers.tolist(), counts.tolist(), strict=True)
            return {(number, ()): count for number, count in pairs}
        found: Counter[tuple[int, tuple[str, ...]]] = Counter()
        at = zip(pods.pod_class[rows].tolist(), pods.node[rows].tolist(), strict=True)
        for number, node in at:
            found[number, self._flavors_on(node)] += 1
        return found

    def _flavors_on(self, node: int) -> tuple[str, ...]:
        known = () if self.charges is None else self.charges.flavors
        if not known:
            return ()
        if node not in self._flavors:
            keys = {key for flavor in known for key, _ in flavor.labels}
            columns = {key: self.snapshot.nodes.labels(key) for key in keys}
            labels = {
                key: None
                if column is None or column.codes[node] < 0
                else column.values[int(column.codes[node])]
                for key, column in columns.items()
            }
            self._flavors[node] = flavors_of(known, labels)
        return self._flavors[node]

    def _is_dedicated(self, view: GangView, rows: Sequence[int]) -> bool:
        """Return whether a gang that serves has a device for itself; of others nobody asks it."""
        if view.spec is None or not view.spec.serves:
            return False
        pods, devices = self.snapshot.pods, self.snapshot.devices
        kinds = {(int(pods.pod_class[row]), int(pods.node[row])) for row in rows}
        return any(is_dedicated(self.snapshot.classes[c], devices.slots(n)) for c, n in kinds)

    @staticmethod
    def _is_system(view: GangView) -> bool:
        namespace = "" if view.spec is None else view.spec.namespace
        return view.priority >= SYSTEM_PRIORITY or namespace == SYSTEM_NAMESPACE


def is_owned(snapshot: Snapshot, rows: Sequence[int], flags: NDArray[np.uint8]) -> bool:
    """Return whether all pods among some rows have controllers, which make them again.

    Hot spares are rows without pods. ``flags``: of the rows.
    """
    if int(np.bitwise_and.reduce(flags)) & PodFlag.OWNED:
        return True  # nearly all
    lacks = (flags & np.uint8(PodFlag.OWNED)) == 0
    states = snapshot.pods.state[np.array(rows, dtype=np.int64)[lacks]]
    return bool((states == PodState.STANDBY).all())
