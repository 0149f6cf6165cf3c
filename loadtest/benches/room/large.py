"""How long one answer takes on many nodes that are all full.

::

    8,192 hosts, 16 a rack, 8 GPUs each ── gangs of 8 to 64 members fill them, of eight queues
    a gang of 256 waits: everywhere, or inside one block of 512 hosts

    130,000 hosts likewise; a gang of 8,192 waits: everywhere, or inside one block of 16,384

Each answer is about a snapshot that was never asked about: a gang changed before it. Times are CPU
time.
"""

import gc
import random
import statistics
import time
from dataclasses import dataclass
from typing import Final

from loadtest.benches.room.score import HOST, POLICY, RACK
from muster.cluster.events import GangUpserted, NodeUpserted, PodGone, PodUpserted, QueueUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.decisions.roomplan import RoomPlan, RoomQuestion, room_for
from muster.decisions.tenancy import GangTerms
from muster.kube.names import PLAN_GATE
from muster.placement.question import Question

_GPU: Final = "nvidia.com/gpu"
_BLOCK: Final = "muster.dev/block"
_QUEUES: Final = 8
_NOW: Final = 1_000_000.0
_KIND: Final = PodClass((("cpu", 8000), (_GPU, 8), ("pods", 1)))
_SIZES: Final = (8, 16, 24, 32, 48, 64)
_HOSTS_PER_RACK: Final = 16


@dataclass(frozen=True, slots=True)
class LargeSettings:
    """What is asked on the command line."""

    nodes: int = 8192
    members: int = 256
    hosts_per_block: int = 512
    rounds: int = 100
    seed: int = 0


LARGEST: Final = LargeSettings(130_000, 8_192, 16_384, rounds=20)
"""The largest cluster, and a gang as large as some clusters are."""


def run(settings: LargeSettings) -> dict[str, float]:
    """Ask ``rounds`` times; milliseconds, and what the answers cost."""
    fleet = _FullFleet(settings)
    gc.collect()
    gc.freeze()  # as the extender does when it has read the cluster
    try:
        measured = [fleet.ask(number) for number in range(settings.rounds + 2)][2:]
    finally:
        gc.unfreeze()
    totals = sorted(sum(slices) for slices, _ in measured)
    return {
        "nodes": settings.nodes,
        "members": settings.members,
        "gangs": len(fleet.gangs),
        "rounds": settings.rounds,
        "solver_median_ms": round(statistics.median(totals), 2),
        "solver_p99_ms": round(totals[min(len(totals) - 1, len(totals) * 99 // 100)], 2),
        "max_slice_ms": round(max(max(slices) for slices, _ in measured), 2),
        "made": sum(victims > 0 for _, victims in measured),
        "victims": round(statistics.mean(victims for _, victims in measured), 1),
    }


class _FullFleet:
    """The cluster under test."""

    def __init__(self, settings: LargeSettings) -> None:
        self._draw = random.Random(settings.seed)
        self._settings = settings
        self._serial = 0
        self.state = ClusterState("bench", levels=(_BLOCK, RACK, HOST), gate=PLAN_GATE)
        for number in range(settings.nodes):
            self._node(number)
        self._queues()
        self.gangs: dict[str, list[PodUpserted]] = {}
        self._terms: dict[GangKey, GangTerms] = {}
        first = 0
        while first < settings.nodes:
            size = min(self._draw.choice(_SIZES), settings.nodes - first)
            self._start(first, size)
            first += size
        for name, level in (("free", None), ("block", _BLOCK)):
            self._gang(name, settings.members, "q0", level)
            for rank in range(settings.members):
                self.state.apply(self._pod(name, rank, priority=50), now=_NOW)
        _ = self.state.snapshot().topology

    def ask(self, number: int) -> tuple[list[float], int]:
        """Return what each slice of an answer took, in milliseconds, and how many gangs end."""
        self._changed()
        snapshot = self.state.snapshot()
        gang = GangKey(f"muster/bench/{'block' if number % 2 else 'free'}")
        asked = RoomQuestion(Question(gang, now=_NOW), terms=self._terms)
        steps, slices = room_for(snapshot, self.state.charges, asked), list[float]()
        while True:
            began = time.process_time()
            try:
                next(steps)
            except StopIteration as end:
                slices.append((time.process_time() - began) * 1000)
                answer = end.value
                return slices, len(answer.victims) if isinstance(answer, RoomPlan) else 0
            slices.append((time.process_time() - began) * 1000)

    def _changed(self) -> None:
        """Let one gang start anew."""
        name = self._draw.choice(sorted(self.gangs))
        pods = self.gangs[name]
        for pod in pods:
            self.state.apply(PodGone(pod.uid), now=_NOW)
        for pod in pods:
            self.state.apply(pod, now=_NOW)

    def _queues(self) -> None:
        root = QueueName("muster/cluster")
        self.state.apply(QueueUpserted(QueueSpec(root, is_whole=True, is_cluster=True)), now=_NOW)
        for number in range(_QUEUES):
            entitled = self._settings.nodes * 8 // (2 if number == 0 else 2 * _QUEUES)
            spec = QueueSpec(
                QueueName(f"muster/q{number}"),
                root,
                {Cell("", _GPU): Quota(entitled)},
                preemption=POLICY,
            )
            self.state.apply(QueueUpserted(spec, (Spelling("", f"q{number}"),)), now=_NOW)

    def _start(self, first: int, size: int) -> None:
        name = f"gang-{len(self.gangs)}"
        started = _NOW - self._draw.uniform(600, 300_000)
        self._terms[GangKey(f"muster/bench/{name}")] = GangTerms(
            self._draw.uniform(max(started, _NOW - 7200), _NOW)
        )
        self._gang(name, size, f"q{self._draw.randrange(_QUEUES)}", None)
        priority = self._draw.choice((0, 10, 100))
        self.gangs[name] = [
            self._pod(name, rank, priority, first + rank, started) for rank in range(size)
        ]
        for pod in self.gangs[name]:
            self.state.apply(pod, now=_NOW)

    def _gang(self, name: str, size: int, queue: str, level: str | None) -> None:
        spec = GangSpec(
            GangKey(f"muster/bench/{name}"), "bench", name, "muster",
            min_count=size, size=size, queue=queue, submitted_at=_NOW, required_level=level,
        )  # fmt: skip
        self.state.apply(GangUpserted(spec), now=_NOW)

    def _pod(
        self, gang: str, rank: int, priority: int, node: int | None = None, started: float = 0.0
    ) -> PodUpserted:
        self._serial += 1
        return PodUpserted(
            uid=PodUid(self._serial.to_bytes(16, "big")),
            namespace="bench",
            name=f"{gang}-{rank}",
            pod_class=_KIND,
            labels=LabelSet("bench"),
            node=None if node is None else f"host-{node:06d}",
            gates=frozenset({PLAN_GATE}) if node is None else frozenset(),
            gang=GangKey(f"muster/bench/{gang}"),
            rank=rank,
            priority=priority,
            managed=True,
            owned=True,
            created=_NOW - 1,
            started=started,
        )

    def _node(self, number: int) -> None:
        labels = {
            _BLOCK: f"block-{number // self._settings.hosts_per_block:03d}",
            RACK: f"rack-{number // _HOSTS_PER_RACK:05d}",
            HOST: f"host-{number:06d}",
        }
        room = {"cpu": 128_000, _GPU: 8, "pods": 110}
        self.state.apply(NodeUpserted(f"host-{number:06d}", labels, room), now=_NOW)
