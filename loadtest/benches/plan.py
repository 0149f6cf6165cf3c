"""`muster bench plan`: how long the decision about one gang takes, and how long its slices.

A fleet of zones, blocks of 32 racks, racks of 16 hosts with 8 GPUs each; two fifths of the
hosts are partly taken, seeded. One gang waits, with the shipped number of spares: of
whole-host pods, in slices or not, or with a launcher and servers that ask for no GPU. Before
every round one running pod moves, so each round sees a new snapshot; the topology is built
once, as in the extender, where it changes with the nodes only.

``cpu_ms`` is CPU time; ``pass_cpu_ms`` that of one numpy pass over the same snapshot (how many
members each node takes, summed by domain of every level): less than that no plan can cost.
"""

import gc
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.events import GangUpserted, NodeUpserted, PodGone, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.decisions.answer import decide
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, PLAN_GATE, RACK, ZONE
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question

HOSTS_PER_RACK: Final = 16
RACKS_PER_BLOCK: Final = 32
BLOCKS_PER_ZONE: Final = 64
GPUS: Final = 8
TAKEN_SHARE: Final = 0.4
SPARES: Final = 1  # the shipped spare count
SEED: Final = 7
MEMBERS_PER_SERVER: Final = 8  # of a mixed gang
PASSES: Final = 5  # of numpy, after each plan

_GPU: Final = "nvidia.com/gpu"
_KEY: Final = GangKey("bench/bench/gang")
_BUSY: Final = PodClass((("cpu", 4000), ("memory", 1 << 34), (_GPU, 1), ("pods", 1)))
_LAUNCHER: Final = PodClass((("cpu", 2000), ("memory", 1 << 33), ("pods", 1)))
_SERVER: Final = PodClass((("cpu", 16_000), ("memory", 1 << 36), ("pods", 1)))
_MEMBER: Final = PodClass((("cpu", 32_000), ("memory", 1 << 38), (_GPU, GPUS), ("pods", 1)))


@dataclass(frozen=True, slots=True)
class Shape:
    """A gang of ``size`` members."""

    size: int
    #: Whether a launcher and, per eight, a server are among them.
    mixed: bool = False
    #: Number of members that share a rack, 0: no slices.
    slice_size: int = 0

    def kind(self, rank: int) -> PodClass:
        """Return what the member of a rank asks for."""
        if not self.mixed or rank > self.size // MEMBERS_PER_SERVER:
            return _MEMBER
        return _SERVER if rank else _LAUNCHER


def run(nodes: int, gang: Shape, rounds: int) -> dict[str, float]:
    """Plan one gang on ``nodes`` nodes ``rounds`` times; milliseconds."""
    fleet = _Fleet(nodes, gang)
    gc.collect()
    gc.freeze()  # as the extender does when it has read the cluster: the fleet is not walked again
    try:
        measured = [_measure(fleet.changed()) for _ in range(rounds + 1)][1:]  # the first warms up
    finally:
        gc.unfreeze()
    totals = [each.total_ms for each in measured]
    return {
        "nodes": nodes,
        "gang": gang.size,
        "rounds": rounds,
        "median_ms": round(statistics.median(totals), 3),
        "p99_ms": round(sorted(totals)[min(len(totals) - 1, int(len(totals) * 0.99))], 3),
        "max_slice_ms": round(statistics.median(each.longest_ms for each in measured), 3),
        "cpu_ms": round(statistics.median(each.cpu_ms for each in measured), 4),
        "pass_cpu_ms": round(statistics.median(each.pass_cpu_ms for each in measured), 4),
    }


@dataclass(frozen=True, slots=True)
class _Round:
    """One plan, and numpy's pass over what it was made on; milliseconds."""

    total_ms: float
    longest_ms: float
    cpu_ms: float
    pass_cpu_ms: float


def _measure(snapshot: Snapshot) -> _Round:
    began = time.process_time()
    slices = _planned(snapshot)
    cpu_ms = (time.process_time() - began) * 1000
    return _Round(sum(slices), max(slices), cpu_ms, _pass_cpu_ms(snapshot))


def _planned(snapshot: Snapshot) -> list[float]:
    """Return what each slice of one plan took, in milliseconds."""
    steps = decide(snapshot, Question(_KEY, spare_count=SPARES))
    slices: list[float] = []
    decision: Decision | None = None
    while decision is None:
        started = time.perf_counter()
        try:
            next(steps)
        except StopIteration as end:
            decision = end.value
        slices.append((time.perf_counter() - started) * 1000)
    if not isinstance(decision, Plan):
        raise TypeError(f"the gang must fit the benchmark's fleet, but: {decision}")
    return slices


def _pass_cpu_ms(snapshot: Snapshot) -> float:
    """Return the CPU time of numpy's pass, several times in a row: one is short for the clock."""
    began = time.process_time()
    for _ in range(PASSES):
        _pass(snapshot)
    return (time.process_time() - began) * 1000 / PASSES


def _pass(snapshot: Snapshot) -> list[NDArray[np.int64]]:
    """Return how many members each domain takes, level by level: int64[domains] each."""
    nodes, tree = snapshot.nodes, snapshot.topology
    takes = np.where(nodes.alive & nodes.ready & ~nodes.unschedulable, GPUS, 0)
    for resource, amount in _MEMBER.requests:
        np.minimum(takes, nodes.free(resource) // amount, out=takes)
    ordered = takes[tree.order]
    return [np.add.reduceat(ordered, tree.starts(level)) for level in range(len(tree.levels))]


@dataclass(slots=True)
class _Running:
    uid: PodUid
    node: int


class _Fleet:
    """The cluster under test; ``changed`` returns a snapshot that was never planned on."""

    def __init__(self, nodes: int, gang: Shape) -> None:
        self._random = random.Random(SEED)
        self._state = ClusterState("bench", levels=DEFAULT_LEVELS, gate=PLAN_GATE)
        self._nodes = nodes
        self._next = 0
        for number in range(nodes):
            self._state.apply(_node(number), now=0.0)
        self._running = [self._start(node) for node in self._taken()]
        self._state.apply(GangUpserted(_spec(gang)), now=0.0)
        for rank in range(gang.size):
            self._state.apply(self._pod(gang.kind(rank), rank=rank), now=0.0)
        _ = self._state.snapshot().topology  # built when nodes change, not when gangs come

    def changed(self) -> Snapshot:
        """Move one running pod and return the state of then."""
        index = self._random.randrange(len(self._running))
        moved = self._running[index]
        self._state.apply(PodGone(moved.uid), now=0.0)
        self._running[index] = self._start(moved.node)
        return self._state.snapshot()

    def _taken(self) -> Iterator[int]:
        for node in range(self._nodes):
            if self._random.random() < TAKEN_SHARE:
                yield from [node] * self._random.randint(1, GPUS)

    def _start(self, node: int) -> _Running:
        pod = self._pod(_BUSY, node=node)
        self._state.apply(pod, now=0.0)
        return _Running(pod.uid, node)

    def _pod(self, kind: PodClass, *, rank: int = -1, node: int = -1) -> PodUpserted:
        self._next += 1
        member = node < 0
        return PodUpserted(
            uid=PodUid(self._next.to_bytes(16, "big")),
            namespace="bench",
            name=f"pod-{self._next}",
            pod_class=kind,
            labels=LabelSet("bench"),
            node=None if member else _name(node),
            gates=frozenset({PLAN_GATE}) if member else frozenset(),
            gang=_KEY if member else None,
            rank=rank,
            managed=member,
        )


def _spec(gang: Shape) -> GangSpec:
    return GangSpec(
        _KEY,
        "bench",
        "gang",
        "bench",
        min_count=gang.size,
        size=gang.size,
        slice_size=gang.slice_size or None,
        slice_level=RACK if gang.slice_size else None,
    )


def _name(number: int) -> str:
    return f"host-{number:06d}"


def _node(number: int) -> NodeUpserted:
    rack = number // HOSTS_PER_RACK
    block = rack // RACKS_PER_BLOCK
    return NodeUpserted(
        name=_name(number),
        labels={
            ZONE: f"zone-{block // BLOCKS_PER_ZONE}",
            BLOCK: f"block-{block:04d}",
            RACK: f"rack-{rack:05d}",
            HOST: _name(number),
        },
        allocatable={"cpu": 128_000, "memory": 1 << 40, _GPU: GPUS, "pods": 110},
    )
