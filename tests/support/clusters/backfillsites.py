"""A planner with queues on nodes of 8 GPUs; what is released is bound, time is an argument."""

from typing import Protocol

from support.clusters.planners import Bench

from extender.config.backfill import BackfillConfig
from extender.config.settings import ExtenderConfig
from muster.cluster.events import PodUpserted, QueueUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import LabelSet
from muster.queueing.backfill.promise import Promise

GPU, CPU = Cell("", "nvidia.com/gpu"), Cell("", "cpu")
ROOT = QueueName("muster/cluster")
NOW = 1_000.0


class Life(Protocol):
    """What happens to the gangs of a site while time passes."""

    def ends(self) -> list[tuple[float, GangKey]]:
        """Return when those that run are gone at the latest."""

    def end(self, key: GangKey) -> None:
        """End one of them."""

    def settle(self) -> None:
        """Plan what can be planned."""


class Site(Bench):
    """Nodes of 8 GPUs, queues ``a`` and ``b``; what is released is bound at once."""

    def __init__(self, nodes: int, entitled: int = 64, racks: int = 1, **backfill: object) -> None:
        """Begin with idle nodes; ``backfill``: settings that differ from the defaults."""
        settings = BackfillConfig(**({"slack_seconds": 0.0} | backfill))  # type: ignore[arg-type]
        # As in most clusters, pods ask for CPU, and no queue says anything about it.
        config = ExtenderConfig(spare_count=0, backfill=settings)
        super().__init__(config, now=NOW, milli_cpu=1000)
        for number in range(nodes):
            self.node(f"n{number}", rack=f"r{number % racks}")
        self.engine.apply(QueueUpserted(QueueSpec(ROOT, is_whole=True, is_cluster=True)))
        for name in "ab":
            self.queue(name, Quota(entitled))

    def queue(self, name: str, quota: Quota, **fields: object) -> None:
        """Add or change a queue below the cluster; ``fields``: of its QueueSpec."""
        spec = QueueSpec(QueueName(f"muster/{name}"), ROOT, {GPU: quota}, **fields)  # type: ignore[arg-type]
        self.engine.apply(QueueUpserted(spec, (Spelling("", name),)))

    def run_to(self, until: float, life: "Life") -> None:
        """Let time pass from end to end: at each the gangs are gone, and the planner looks."""
        while True:
            due = life.ends()
            at = min((moment for moment, _ in due), default=until + 1)
            if at > until:
                break
            self.now = max(at, self.now)
            for key in [key for moment, key in due if moment <= at]:
                life.end(key)
            life.settle()
        self.now = until
        life.settle()

    async def settle(self, now: float | None = None) -> None:
        """Plan what can be planned, at ``now`` if that is given, and bind it."""
        self.now = self.now if now is None else now
        await self.planner.settle()
        released, self.released = self.released, []
        for uid in released:
            self._bind(uid)
        self.state.validate()
        due = {key for key, at in self.worklist.not_before.items() if at <= self.now}
        assert not due, "the planner comes to rest: it looks at no gang again at once"

    def _bind(self, uid: PodUid) -> None:
        hold = self.state.hold(uid)
        assert hold is not None
        self.see(uid, hold.node, started=self.now)

    def see(self, uid: PodUid, node: str, **fields: object) -> None:
        """Show a member on its node; ``fields``: of its PodUpserted."""
        row, key = self.state.pod_row(uid), self.state.gang_of(uid)
        assert row is not None
        pods = self.state.snapshot().pods
        self.engine.apply(
            PodUpserted(
                uid,
                "ns",
                f"{(key or '').rpartition('/')[2]}-{int(pods.rank[row])}",
                self.state.snapshot().classes[int(pods.pod_class[row])],
                LabelSet("ns"),
                node=node,
                gang=key,
                rank=int(pods.rank[row]),
                created=float(pods.created[row]),
                priority=int(pods.priority[row]),
                managed=True,
                owned=True,
                **fields,  # type: ignore[arg-type]
            )
        )

    def runs(self, *keys: GangKey) -> list[bool]:
        """Return whether gangs hold room."""
        return [self.state.holds_room(key) for key in keys]

    def promised(self, key: GangKey) -> float | None:
        """Return the start that a gang was promised."""
        promise = self.planner.promises.of(key)
        return None if promise is None else promise.start

    def promise_of(self, key: GangKey) -> Promise:
        """Return the promise of a gang that has one."""
        found = self.planner.promises.of(key)
        assert found is not None
        return found
