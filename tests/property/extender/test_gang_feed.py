"""Gangs do not remember how they came about: any order of events ends as a restart begins.

The same PodGroups and pods are told once as they happen, in any order, and once as the
lists of a new process tell them, objects before pods. Both must have the same gangs.

::

    PodGroups a, b, c of Koordinator, alone or in groups of gangs; pods that name one of them
    Workload w with the pod groups g; pods with replica keys
"""

from typing import Any

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
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.writing.events import EventRecorder
from muster.workloads.dialects import koordinator, native

GROUPS = "gang.scheduling.koordinator.sh/groups"
UNITS = ("", '["ns/a","ns/b"]', '["ns/b","ns/a"]', '["ns/a","ns/b","ns/c"]', '["ns/a"]', "nonsense")
LABEL = "pod-group.scheduling.sigs.k8s.io"

Objects = dict[str, tuple[Any, Any]]  # uid: the object and what reads it
Gangs = dict[str, tuple[frozenset[tuple[str, str]], GangSpec | None]]


class World:
    """A feed on a state of its own, and what the API server has."""

    def __init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        engine = Engine(self.state, lambda: 1.0)
        pods, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pods, recorder, metrics, DueEvents())
        self.feed = feed_of(engine, pods, reporter)
        self.objects: Objects = {}
        self.pods: dict[str, wire.Pod] = {}

    def upsert(self, uid: str, obj: Any, read: Any) -> None:
        self.objects[uid] = (obj, read)
        self.feed.gang_object(uid, read(obj))
        self.state.validate()

    def remove(self, uid: str) -> None:
        if self.objects.pop(uid, None) is not None:
            self.feed.gang_object_gone(wire.ObjectMeta(uid=uid))
            self.state.validate()

    def pod(self, pod: wire.Pod) -> None:
        self.pods[pod.metadata.uid] = pod
        self.feed.pod(pod)
        self.state.validate()

    def pod_gone(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.feed.pod_gone(pod.metadata)
            self.state.validate()

    def restarted(self) -> "World":
        again = World()
        for uid, (obj, read) in sorted(self.objects.items()):
            again.upsert(uid, obj, read)
        for pod in self.pods.values():
            again.pod(pod)
        return again

    def gangs(self) -> Gangs:
        """Return members (uid, role) and specification of each gang that has any."""
        pods = self.state.snapshot().pods
        found: Gangs = {}
        for key in self.state.gangs():
            view = self.state.gang(key)
            assert view is not None
            rows = [*view.waiting, *view.blocked]
            members = frozenset(
                (pods.uid(row).hex(), pods.roles[pods.role[row]]) for row in map(int, rows)
            )
            if members or view.spec is not None:
                found[key] = (members, view.spec)
        return found


def group(name: str, unit: str, minimum: int) -> koordinator.PodGroup:
    annotations = {GROUPS: unit} if unit else {}
    meta = wire.ObjectMeta(name=name, namespace="ns", uid=f"group-{name}", annotations=annotations)
    return koordinator.PodGroup(metadata=meta, spec=koordinator.PodGroupSpec(min_member=minimum))


def workload(minimum: int) -> native.Workload:
    meta = wire.ObjectMeta(name="w", namespace="ns", uid="workload")
    policy = native.Policy(gang=native.GangPolicy(min_count=minimum))
    one = native.WorkloadGroup(name="g", policy=policy)
    return native.Workload(metadata=meta, spec=native.WorkloadSpec(pod_groups=(one,)))


def pod(number: int, *, of: str) -> wire.Pod:
    """Return a gated pod of a PodGroup ("a") or of a replica of the Workload ("w0")."""
    labels = {} if of.startswith("w") else {LABEL: of}
    meta = wire.ObjectMeta(name=f"p{number}", namespace="ns", uid=f"pod-{number}", labels=labels)
    spec = wire.PodSpec(scheduling_gates=(wire.SchedulingGate(name=names.PLAN_GATE),))
    if not labels:
        to = wire.WorkloadReference(name="w", pod_group="g", pod_group_replica_key=of[1:])
        spec = msgspec.structs.replace(spec, workload_ref=to)
    return wire.Pod(metadata=meta, spec=spec)


# A pod's number says whose it is: members do not change their gang.
WHOSE = ("a", "a", "b", "b", "c", "w", "w0", "w0", "w1")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("group"), st.sampled_from("abc"), st.sampled_from(UNITS), st.integers(1, 3)
        ),
        st.tuples(st.just("group gone"), st.sampled_from("abc")),
        st.tuples(st.just("workload"), st.integers(1, 3)),
        st.tuples(st.just("workload gone")),
        st.tuples(st.just("pod"), st.integers(0, len(WHOSE) - 1)),
        st.tuples(st.just("pod gone"), st.integers(0, len(WHOSE) - 1)),
    ),
    max_size=25,
)


@given(STEPS)
def test_gangs_are_after_any_order_of_events_what_a_restart_would_make_of_them(
    steps: list[tuple[Any, ...]],
) -> None:
    world = World()
    for step in steps:
        match step:
            case ("group", name, unit, minimum):
                world.upsert(f"group-{name}", group(name, unit, minimum), koordinator.spec)
            case ("group gone", name):
                world.remove(f"group-{name}")
            case ("workload", minimum):
                world.upsert("workload", workload(minimum), native.workload_specs)
            case ("workload gone",):
                world.remove("workload")
            case ("pod", number):
                world.pod(pod(number, of=WHOSE[number]))
            case ("pod gone", number):
                world.pod_gone(f"pod-{number}")
    assert world.gangs() == world.restarted().gangs()
