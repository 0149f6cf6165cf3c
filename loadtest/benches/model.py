"""`muster bench model`: what the model of a cluster costs in memory and in time.

A fleet of zones, blocks, racks and hosts with 8 GPUs and the labels real nodes carry, and
pods as such a fleet runs them: two unmanaged daemons on every host, then gangs of 64 and,
one pod in ten, gangs of one. First everything is listed (nodes, then pods already bound),
as at start; then it lives: pods come, are bound and go, nodes send heartbeats, and every
few events somebody takes a snapshot, so that what copy-on-write costs is in the figures.

Times are CPU time of this process, so that a busy machine does not change them. Memory is
the process's resident size, the interpreter, numpy and the benchmark's own lists included;
``rss_before_mib`` is that without the model, ``array_mib`` the bytes of the model's arrays alone.
"""

import gc
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from loadtest.testbed.controlplane.procfs import resident_mib
from muster.cluster.events import (
    Event,
    GangSkipped,
    GangUpserted,
    NodeUpserted,
    PodGone,
    PodUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, PLAN_GATE, RACK, ZONE

HOSTS_PER_RACK: Final = 16
RACKS_PER_BLOCK: Final = 32
BLOCKS_PER_ZONE: Final = 64
GPUS: Final = 8
GANG: Final = 64
DAEMONS: Final = 2
SINGLE_SHARE: Final = 0.1
FEATURE_LABELS: Final = 24
"""Labels besides the topology's: instance type, operating system, driver and feature labels."""
LIVE_EVENTS: Final = 20_000
EVENTS_PER_SNAPSHOT: Final = 50
SEED: Final = 7

_GPU: Final = "nvidia.com/gpu"
_NOW: Final = 1_700_000_000.0
_DAEMON: Final = PodClass((("cpu", 100), ("memory", 1 << 27), ("pods", 1)))
_WORKER: Final = PodClass((("cpu", 4000), ("memory", 1 << 34), (_GPU, 1), ("pods", 1)))
_MIB: Final = 1 << 20


def run(nodes: int, pods: int) -> dict[str, float]:
    """Build and live with a model of ``nodes`` and ``pods``; MiB, µs and ms by name."""
    fleet = _Fleet(nodes, pods)
    gc.collect()
    empty, others = resident_mib(os.getpid()), _array_bytes()
    state = ClusterState("bench", levels=DEFAULT_LEVELS, gate=PLAN_GATE)
    node_us = _each_us(state, fleet.nodes())
    topology_ms = _once_ms(lambda: state.snapshot().topology)
    pod_us = _each_us(state, fleet.listed())
    first_snapshot_ms = _once_ms(state.snapshot)
    gc.collect()
    full, arrays = resident_mib(os.getpid()), _array_bytes() - others
    heartbeat_us = _each_us(state, (fleet.node(i) for i in range(min(nodes, LIVE_EVENTS))))
    live = _live(state, fleet)
    dumped: list[bytes] = []
    dump_ms = _once_ms(lambda: dumped.append(state.dump()))
    return {
        "nodes": nodes,
        "pods": pods,
        "rss_mib": round(full, 1),
        "rss_before_mib": round(empty, 1),
        "array_mib": round(arrays / _MIB, 2),
        "node_list_us": round(node_us, 2),
        "pod_list_us": round(pod_us, 2),
        "heartbeat_us": round(heartbeat_us, 2),
        "topology_ms": round(topology_ms, 1),
        "first_snapshot_ms": round(first_snapshot_ms, 2),
        **live,
        "dump_ms": round(dump_ms, 1),
        "dump_mib": round(len(dumped[0]) / _MIB, 1),
    }


class _Fleet:
    """Names everything by number, so that only the UIDs have to be stored."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._random = random.Random(SEED)
        self._count = nodes
        self._features = {f"feature.example.com/f{i}": "true" for i in range(FEATURE_LABELS)}
        self._bound = pods
        self._uids = [PodUid(self._random.randbytes(16)) for _ in range(LIVE_EVENTS)]

    def nodes(self) -> Iterator[NodeUpserted]:
        return (self.node(i) for i in range(self._count))

    def node(self, number: int) -> NodeUpserted:
        rack = number // HOSTS_PER_RACK
        block = rack // RACKS_PER_BLOCK
        name = f"gpu-node-{number:06}"
        topology = {ZONE: f"z{block // BLOCKS_PER_ZONE}", BLOCK: f"b{block:04}"}
        return NodeUpserted(
            name=name,
            labels={**topology, RACK: f"r{rack:05}", HOST: name, **self._features},
            allocatable={"cpu": 192_000, "memory": 2 << 40, _GPU: GPUS, "pods": 110},
        )

    def listed(self) -> Iterator[Event]:
        """Yield the pods of a cluster that runs: all bound already."""
        daemons = min(self._bound, DAEMONS * self._count)
        for i in range(daemons):
            yield self._daemon(i)
        singles = int(SINGLE_SHARE * (self._bound - daemons))
        for i in range(self._bound - daemons):
            name = f"single-{i}" if i < singles else f"job-{i // GANG}"
            if i < singles or i % GANG == 0:
                yield self._spec(name, 1 if i < singles else GANG)
            yield self._member(name, i, PodUid(self._random.randbytes(16)), bound=True)

    def live(self) -> Iterator[Event]:
        """Yield pods that are created, bound and deleted, one life in three events."""
        yield self._spec("late", GANG)
        for i, uid in enumerate(self._uids[: LIVE_EVENTS // 3]):
            yield self._member("late", i, uid, bound=False)
            yield self._member("late", i, uid, bound=True)
            if i >= GANG:
                yield PodGone(self._uids[i - GANG])

    def _daemon(self, number: int) -> PodUpserted:
        kind = f"daemon-{number // self._count}"
        return PodUpserted(
            uid=PodUid(self._random.randbytes(16)),
            namespace="kube-system",
            name=f"{kind}-{number % self._count}",
            pod_class=_DAEMON,
            labels=LabelSet("kube-system", (("app", kind),)),
            node=f"gpu-node-{number % self._count:06}",
            created=_NOW,
            started=_NOW,
        )

    def _member(self, job: str, number: int, uid: PodUid, *, bound: bool) -> PodUpserted:
        return PodUpserted(
            uid=uid,
            namespace="team",
            name=f"{job}-{number % GANG}-x7k2p",
            pod_class=_WORKER,
            labels=LabelSet("team", (("app", "train"), ("job-name", job))),
            node=f"gpu-node-{(number * 7919) % self._count:06}" if bound else None,
            gates=frozenset(() if bound else (PLAN_GATE,)),
            gang=GangKey(f"muster/team/{job}"),
            rank=number % GANG,
            created=_NOW,
            started=_NOW if bound else 0.0,
            managed=True,
            owned=True,
        )

    def _spec(self, name: str, size: int) -> GangUpserted:
        key = GangKey(f"muster/team/{name}")
        return GangUpserted(GangSpec(key, "team", name, "muster", size, size, required_level=RACK))


def _live(state: ClusterState, fleet: _Fleet) -> dict[str, float]:
    events, snapshots = [], []
    for number, event in enumerate(fleet.live()):
        begin = time.process_time()
        state.apply(event, now=_NOW)
        events.append(time.process_time() - begin)
        if number % EVENTS_PER_SNAPSHOT == 0:
            begin = time.process_time()
            state.snapshot()
            snapshots.append(time.process_time() - begin)
    gangs = [_gang_view_ms(state, GangKey("muster/team/late")) for _ in range(9)]
    return {
        "event_median_us": round(statistics.median(events) * 1e6, 2),
        "event_mean_us": round(statistics.mean(events) * 1e6, 2),
        "event_p99_us": round(sorted(events)[int(len(events) * 0.99)] * 1e6, 2),
        "snapshot_median_us": round(statistics.median(snapshots) * 1e6, 2),
        "gang_view_ms": round(statistics.median(gangs), 3),
    }


def _gang_view_ms(state: ClusterState, key: GangKey) -> float:
    state.apply(GangSkipped(key, "bench"), now=_NOW)  # a view is made once per generation
    snapshot = state.snapshot()
    return _once_ms(lambda: snapshot.gang(key))


def _each_us(state: ClusterState, events: Iterator[Event]) -> float:
    # The event is made outside of the measured time, one at a time.
    spent = 0.0
    count = 0
    for event in events:
        begin = time.process_time()
        state.apply(event, now=_NOW)
        spent += time.process_time() - begin
        count += 1
    return spent / max(count, 1) * 1e6


def _once_ms(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1e3


def _array_bytes() -> int:
    """Return the bytes of all numpy arrays that something alive refers to, views not counted."""
    # numpy's arrays are not tracked by the collector, but whoever holds one is.
    found = {
        id(held): held.nbytes
        for holder in gc.get_objects()
        for held in gc.get_referents(holder)
        if isinstance(held, np.ndarray) and held.base is None
    }
    return sum(found.values())
