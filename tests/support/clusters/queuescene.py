"""A drawn cluster whose queues are objects of another project, read as the extender reads them.

::

    QueueScene("a/r1 n1 n2", [OBJECT, …])     objects as YAML texts; the gangs are in namespace "ns"
"""

from collections.abc import Sequence

import msgspec
from support.clusters.roomscene import NOW, RoomScene

from extender.planning.queueturns import node_totals
from muster.cluster.events import CapacityMeasured
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import ORDER
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import QueueName
from muster.decisions.roomplan import RoomAnswer
from muster.kube import wire
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.fairshares import GivenShares
from muster.queueing.admission.memberrequests import requests_of
from muster.queueing.admission.turn import Turns
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission
from muster.workloads.queues.describedqueues import DescribedQueues
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.registry import KINDS

ALL = PreemptionPolicies({dialect: RoomPermission() for dialect in ORDER})
"""Queues of every dialect take and give."""

_KINDS = {(kind.group, kind.kind): kind for kind in KINDS}


class QueueScene(RoomScene):
    """A scene with queues of any dialect."""

    def __init__(self, drawing: str, objects: Sequence[str]) -> None:
        super().__init__(drawing)
        self._described = DescribedQueues()
        for text in objects:
            self.describe(text)

    def describe(self, text: str, *, is_elsewhere: bool = False) -> None:
        """Create or change an object; ``is_elsewhere``: its own controller admits."""
        found = msgspec.yaml.decode(text)
        kind = _KINDS[found["apiVersion"].partition("/")[0], found["kind"]]
        made = msgspec.convert(found, kind.type)
        self.read(kind.name, made.metadata, kind.read(made), is_elsewhere=is_elsewhere)

    def read(
        self, kind: str, meta: wire.ObjectMeta, reading: QueueReading, *, is_elsewhere: bool = False
    ) -> None:
        """Apply what an object, or a file, says; it must say nothing wrong."""
        assert reading.problems == ()
        for event in self._described.seen(kind, meta, reading, is_elsewhere=is_elsewhere):
            self.state.apply(event, now=NOW)

    def room(  # type: ignore[override]
        self, key: GangKey, *, policies: PreemptionPolicies = ALL, **asked: object
    ) -> RoomAnswer:
        """As in a ``RoomScene``; ``policies``: by default queues of every dialect make room."""
        return super().room(key, policies=policies, **asked)  # type: ignore[arg-type]

    def shares(self) -> GivenShares:
        """Return what each queue gets by what its gangs have and ask for."""
        self.state.apply(CapacityMeasured(node_totals(self.snapshot)), now=NOW)
        turns, charges = Turns(self.state.charges.tree), self.state.charges
        waiting = []
        for view in filter(None, map(self.snapshot.gang, self.state.gangs())):
            queue = charges.queue_of(self.state.queue_user(view))
            if queue is not None and len(view.waiting):
                asked = requests_of(view, self.snapshot)
                least = charges.request(queue, asked.of_first(max(asked.minimum, 1)))
                waiting.append(Applicant(view.key, queue, least))
        turns.seat(waiting)
        return turns.shares()

    def uses(self, queue: str, cell: Cell) -> int:
        """Return what a queue is charged of a cell."""
        node = self.state.charges.tree.find(QueueName(queue))
        assert node is not None
        return node.used(cell)
