"""A gang that had its minimum once asks for it never again, in this process and in the next.

::

    the first run ─► any of them ends, is deleted, comes anew ─► each that waits may go
                                          └─► the same objects, listed by another process
"""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from support.clusters.feeds import feed_of

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.writing.events import EventRecorder
from muster.queueing.assembly import Idle, Ready, assemble
from muster.workloads.dialects import koordinator
from muster.workloads.status import progress

KEY = GangKey("koordinator/ns/g")
LABEL = {"pod-group.scheduling.sigs.k8s.io": "g"}
STEPS = st.lists(
    st.tuples(st.sampled_from(["succeed", "fail", "delete", "come"]), st.integers(0, 5)),
    max_size=12,
)


@dataclass
class World:
    """A feed on a state of its own; ``pods``: phases by number."""

    group: koordinator.PodGroup
    pods: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        pending, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pending, recorder, metrics, DueEvents())
        self.feed = feed_of(Engine(self.state, lambda: 1.0), pending, reporter)
        self.show_group()
        for number, phase in self.pods.items():
            self.show(number, phase)

    def show_group(self) -> None:
        self.feed.gang_object("group", koordinator.spec(self.group))

    def show(self, number: int, phase: str) -> None:
        self.pods[number] = phase
        spec = {"schedulingGates": [{"name": names.PLAN_GATE}]}
        if phase != "Pending":
            spec = {"nodeName": "n"}  # type: ignore[dict-item]
        owner = {"kind": "Any", "apiVersion": "v1", "name": "o", "controller": True}
        meta = {"name": f"p{number}", "namespace": "ns", "uid": f"p{number}", "labels": LABEL}
        found = {"metadata": {**meta, "ownerReferences": [owner]}, "spec": spec}
        found["status"] = {"phase": phase}
        self.feed.pod(msgspec.convert(found, wire.Pod, strict=False))
        self.state.validate()
        self.write_status()

    def delete(self, number: int) -> None:
        if self.pods.pop(number, None) is not None:
            self.feed.pod_gone(wire.ObjectMeta(uid=f"p{number}"))
            self.state.validate()
            self.write_status()

    def write_status(self) -> None:
        """Do what ``GroupStatusWriter`` does, and what the watch brings of it."""
        wanted = koordinator.wanted(self.group, progress(self.state.gang(KEY)))
        if wanted:
            status = msgspec.structs.replace(self.group.status, **wanted)  # type: ignore[arg-type]
            self.group = msgspec.structs.replace(self.group, status=status)
            self.show_group()

    def all_may_go(self) -> bool:
        """Return whether no member waits for others."""
        if self.state.lack_of_members(KEY) is not None:
            return False
        gang = self.state.gang(KEY)
        return gang is None or isinstance(assemble(gang, now=9.0, window_s=0.0), Ready | Idle)


@given(minimum=st.integers(1, 4), steps=STEPS)
def test_who_comes_after_the_first_waits_for_nobody(
    minimum: int, steps: list[tuple[str, int]]
) -> None:
    meta = wire.ObjectMeta(name="g", namespace="ns", uid="group")
    spec = koordinator.PodGroupSpec(min_member=minimum)
    world = World(koordinator.PodGroup(metadata=meta, spec=spec))
    for number in range(minimum):
        world.show(number, "Pending")
    for number in range(minimum):
        world.show(number, "Running")
    for step, number in steps:
        phase = world.pods.get(number)
        if step == "delete":
            world.delete(number)
        elif step == "come" and phase is None:
            world.show(number, "Pending")
        elif phase == "Running" and step in ("succeed", "fail"):
            world.show(number, "Succeeded" if step == "succeed" else "Failed")
        assert world.all_may_go()
    assert World(world.group, dict(world.pods)).all_may_go()
