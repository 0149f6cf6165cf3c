"""A planner on a state made by hand: no HTTP, no API server, time as an argument."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from loadtest.queuereplay.planner import LonePlanner
from muster.cluster.events import GangUpserted, NodeUpserted, PodGone, PodReleased, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import GRACE_S, LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.kube import names
from muster.kube.names import HOST, RACK

LEVELS = (RACK, HOST)


@dataclass
class Bench:
    """One planner; ``now`` is the clock, ``released`` what was handed to the release."""

    config: ExtenderConfig = field(default_factory=lambda: ExtenderConfig(spare_count=0))
    now: float = 1_000.0
    steps: float = 0.0
    released: list[PodUid] = field(default_factory=list)
    #: what each member asks for beside GPUs
    milli_cpu: int = 0
    #: seconds that pass with each reading of the clock: what compares two readings is found by it
    lapse: float = 0.0

    def __post_init__(self) -> None:
        self.state = ClusterState("test", levels=LEVELS, gate=names.PLAN_GATE)
        self.engine = Engine(self.state, self._clock)
        parts = LonePlanner.of(self.engine, self.config, self._release, self._tick, self.rooms_of)
        self.metrics, self.dumps = parts.metrics, parts.dumps
        self.holding, self.worklist, self.planner = parts.holding, parts.worklist, parts.planner

    def rooms_of(
        self, _reporter: DecisionReporter, _pace: Pace, _turns: QueueTurns
    ) -> RoomMaker | None:
        """Return what has gangs give way to others; here nobody may be made to."""
        return None

    def _clock(self) -> float:
        self.now += self.lapse
        return self.now

    def _tick(self) -> float:
        """Count a millisecond per look at the monotonic clock, so that every pause is taken."""
        self.steps += 0.001
        return self.steps

    def _release(self, uids: list[PodUid]) -> None:
        self.released.extend(uids)
        for uid in uids:
            self.engine.apply(PodReleased(uid))

    def node(
        self, name: str, rack: str = "r1", gpus: int = 8, labels: Mapping[str, str] | None = None
    ) -> None:
        """Add a node."""
        self.engine.apply(
            NodeUpserted(
                name,
                labels={RACK: rack, HOST: name, **(labels or {})},
                allocatable={"cpu": 100_000, "pods": 110, "nvidia.com/gpu": gpus},
            )
        )

    def gang(
        self,
        name: str,
        members: int,
        *,
        gpus: int = 8,
        priority: int = 0,
        at: float = 0.0,
        grace: int = GRACE_S,
        **spec: object,
    ) -> GangKey:
        """Add a gang with all its members; ``spec`` overrides fields of its GangSpec."""
        key = GangKey(f"muster/ns/{name}")
        made = GangSpec(
            key, "ns", name, "muster", **({"min_count": members, "size": members} | spec)
        )  # type: ignore[arg-type]
        self.engine.apply(GangUpserted(made))
        for rank in range(members):
            self.member(key, rank, gpus=gpus, priority=priority, at=at, grace=grace)
        return key

    def end(self, key: GangKey) -> None:
        """Delete the pods of a gang."""
        for uid in self.state.members(key):
            self.engine.apply(PodGone(uid))

    def member(
        self,
        key: GangKey,
        rank: int,
        *,
        gpus: int = 8,
        priority: int = 0,
        at: float = 0.0,
        grace: int = GRACE_S,
    ) -> PodUid:
        """Add one gated member."""
        uid = PodUid(f"{key}:{rank}".encode()[-16:].rjust(16, b"."))
        own = (("cpu", self.milli_cpu),) if self.milli_cpu else ()
        requests = (*own, ("nvidia.com/gpu", gpus), ("pods", 1))
        pod_class = PodClass(requests=requests, grace_seconds=grace)
        self.engine.apply(
            PodUpserted(
                uid,
                "ns",
                f"{key.rpartition('/')[2]}-{rank}",
                pod_class,
                LabelSet("ns"),
                gates=frozenset({names.PLAN_GATE}),
                gang=key,
                rank=rank,
                priority=priority,
                created=at or self.now,
                managed=True,
                owned=True,
            )
        )
        return uid

    def view(self, key: GangKey) -> GangView:
        """Return a gang that exists."""
        found = self.state.gang(key)
        assert found is not None
        return found

    def is_released(self, key: GangKey) -> bool:
        """Whether every member of a gang is released."""
        view = self.view(key)
        return not len(view.waiting) and not len(view.assumed) and bool(len(view.released))
