"""A drawn cluster with queues in which room is made; every answer is checked from outside.

::

    RoomScene('a/r1 n1 n2', a=8, b=8)     queues a and b, entitled to 8 GPUs each
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from support.clusters.scene import GPU, Scene

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.events import PodUpserted, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.pods import PodFlag
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomQuestion, room_for
from muster.placement.question import Question
from muster.queueing.preemption.rules import Keeps

GPUS = Cell("", GPU)
ROOT = QueueName("muster/cluster")
NOW = 100_000.0


def queue_name(name: str) -> QueueName:
    """Return the name of one of Muster's own queues."""
    return QueueName(f"muster/{name}")


class RoomScene(Scene):
    """A scene with queues below one root, which is entitled to everything."""

    def __init__(self, drawing: str, **entitled: int) -> None:
        super().__init__(drawing)
        self._queues: dict[QueueName, QueueUpserted] = {}
        self.state.apply(QueueUpserted(QueueSpec(ROOT, is_whole=True, is_cluster=True)), now=0.0)
        for name, gpus in entitled.items():
            self.queue(name, {GPUS: Quota(gpus)})

    def queue(
        self,
        name: str,
        quotas: Mapping[Cell, Quota],
        parent: QueueName | None = ROOT,
        **fields: object,
    ) -> QueueName:
        """Add or change a queue that gangs name as it is called."""
        found = queue_name(name)
        spec = QueueSpec(found, parent, quotas, **fields)  # type: ignore[arg-type]
        self._queues[found] = QueueUpserted(spec, (Spelling("", name),))
        self.state.apply(self._queues[found], now=0.0)
        return found

    def obey(self, policy: PreemptionPolicy) -> None:
        """Give all queues one policy."""
        for found in self._queues.values():
            spec = replace(found.spec, preemption=policy)
            self.state.apply(replace(found, spec=spec), now=0.0)

    def runs(
        self,
        name: str,
        nodes: Sequence[str],
        gpu: int = 8,
        *,
        queue: str = "",
        priority: int = 0,
        since: float = 0.0,
        minimum: int | None = None,
        like: PodClass | None = None,
        firm: bool = False,
        owned: bool = True,
        **spec: object,
    ) -> GangKey:
        """Bind a gang that has been running for some time; ``since``: when it started.

        ``firm``: its pods are marked as never giving way; ``owned``: they have a controller.
        """
        fields = {"queue": queue, "min_count": minimum or len(nodes), "submitted_at": since + 1}
        return self.crew(
            name,
            nodes,
            gpu,
            like=like,
            spec=fields | spec,
            priority=priority,
            started=since,
            created=since,
            firm=firm,
            owned=owned,
        )

    def wants(
        self,
        name: str,
        count: int,
        gpu: int = 8,
        *,
        queue: str = "",
        priority: int = 0,
        submitted_at: float = NOW,
        **spec: object,
    ) -> GangKey:
        """Create a gang that waits."""
        spec |= {"queue": queue, "submitted_at": submitted_at}
        return self.gang(name, count, gpu, priority=priority, **spec)  # type: ignore[arg-type]

    def room(
        self, key: GangKey, *, policy: PreemptionPolicy | None = None, **asked: object
    ) -> RoomAnswer:
        """Ask for room; a plan is checked from outside. ``policy``: that of all queues from now."""
        if policy is not None:
            self.obey(policy)
        self.state.validate()
        question = RoomQuestion(Question(key, now=NOW), **asked)  # type: ignore[arg-type]
        answer = run(room_for(self.snapshot, self.state.charges, question))
        if isinstance(answer, RoomPlan):
            assert breaches(self.snapshot, answer) == []
        return answer

    def made(self, key: GangKey, **asked: object) -> RoomPlan:
        """As ``room``, expecting a plan."""
        answer = self.room(key, **asked)  # type: ignore[arg-type]
        assert isinstance(answer, RoomPlan), answer
        return answer

    def refused(self, key: GangKey, **asked: object) -> NoRoom:
        """As ``room``, expecting none."""
        answer = self.room(key, **asked)  # type: ignore[arg-type]
        assert isinstance(answer, NoRoom), answer
        return answer

    def _apply(self, pod: PodUpserted) -> None:
        self._pods[pod.uid] = pod
        self.state.apply(pod, now=NOW)

    def used(self, queue: str) -> int:
        """Return the GPUs that a queue is charged."""
        node = self.state.charges.tree.find(queue_name(queue))
        assert node is not None
        return node.used(GPUS)

    def carry_out(self, answer: RoomPlan) -> None:
        """End the victims and bind the gang."""
        pods = self.snapshot.pods
        for uid in [pods.uid(row) for row in answer.rows]:
            self.end(uid)
        self.bind(self.place(answer.gang))
        self.state.validate()


def names_of(answer: RoomPlan) -> list[str]:
    """Return the names of the gangs that give way."""
    return [victim.gang.rpartition("/")[2] for victim in answer.victims]


def keeps_of(answer: NoRoom) -> dict[Keeps, int]:
    """Return how many gangs keep their room, by rule."""
    return dict(answer.keeps)


def leaving_rows(snapshot: Snapshot) -> list[int]:
    """Return the rows of pods that are being deleted."""
    flags = snapshot.pods.flags.array()
    on = snapshot.pods.node.array() >= 0
    return [int(row) for row in np.flatnonzero(on & ((flags & int(PodFlag.TERMINATING)) != 0))]


def breaches(snapshot: Snapshot, answer: RoomPlan) -> list[str]:
    """Return what is wrong with a plan: a partial gang, or a place that is none."""
    rows, pods = answer.rows, snapshot.pods
    found = [f"row {row} ends twice" for row, n in Counter(rows).items() if n > 1]
    by_gang: dict[int, int] = Counter(int(pods.gang[row]) for row in rows)
    for gang, ended in by_gang.items():
        view = snapshot.gang(snapshot.gang_at(gang))
        assert view is not None
        assert view.spec is not None
        standing = len(view.bound) + len(view.released) + len(view.assumed)
        left = standing - ended
        if left > 0 and left + view.succeeded < view.spec.min_count:
            found.append(f"{view.key} is left with {left} of {view.spec.min_count}")
    without = snapshot.overlay(without_pods=sorted({*rows, *leaving_rows(snapshot)}))
    return found + verify(without, answer.plan)
