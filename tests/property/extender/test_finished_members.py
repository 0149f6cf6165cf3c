"""A gang of Jobs needs the members that are left, whichever pods of the finished ones are there.

Objects and pods are shown in any order, as watches of several kinds bring them; so a restart, which
lists them, ends with the same gang.
"""

from dataclasses import dataclass
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
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangPhase
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.writing.events import EventRecorder
from muster.workloads.dialects import batchjob, jobset
from muster.workloads.keys.ranks import COMPLETION_INDEX

JSON = dict[str, Any]
GATE = {"schedulingGates": [{"name": names.PLAN_GATE}]}


@dataclass(frozen=True)
class OneJob:
    """A child Job: how many run at one time, how many there are, how many succeeded."""

    parallelism: int
    completions: int
    succeeded: int

    @property
    def left(self) -> int:
        """Pods that the Job controller keeps up."""
        return min(self.parallelism, self.completions - self.succeeded)


@st.composite
def one_job(draw: st.DrawFn) -> OneJob:
    parallelism, completions = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    return OneJob(parallelism, completions, draw(st.integers(0, completions)))


def labels_of(number: int, *, by_label: bool, size: int) -> dict[str, str]:
    if by_label:
        return {names.GANG: "s", names.GANG_SIZE: str(size)}
    return {
        jobset.NAME_LABEL: "s", jobset.ROLE_LABEL: f"r{number}", jobset.ATTEMPT_LABEL: "0",
        jobset.GLOBAL_INDEX: str(number),
    }  # fmt: skip


def job_spec(job: OneJob, labels: dict[str, str]) -> JSON:
    return {
        "parallelism": job.parallelism, "completions": job.completions,
        "completionMode": "Indexed", "template": {"metadata": {"labels": labels}},
    }  # fmt: skip


def a_pod(number: int, index: int, phase: str, labels: dict[str, str]) -> wire.Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"s-{number}", "controller": True}
    meta = {
        "name": f"p-{number}-{index}", "namespace": "ns", "uid": f"{number}-{index}",
        "labels": labels | {COMPLETION_INDEX: str(index)}, "ownerReferences": [owner],
    }  # fmt: skip
    spec: JSON = GATE if phase == "Pending" else {"nodeName": "n"}
    found = {"metadata": meta, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(found, wire.Pod, strict=False)


class World:
    """A feed on a state of its own."""

    def __init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        pods, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pods, recorder, metrics, DueEvents())
        self.feed = feed_of(Engine(self.state, lambda: 1.0), pods, reporter)

    def show(self, what: object) -> None:
        if isinstance(what, wire.Pod):
            self.feed.pod(what)
        elif isinstance(what, batchjob.Job):
            self.feed.gang_object(what.metadata.uid, batchjob.spec(what))
            self.feed.job(what)
        elif isinstance(what, jobset.JobSet):
            self.feed.gang_object(what.metadata.uid, jobset.spec(what))
        self.state.validate()


@given(data=st.data(), jobs=st.lists(one_job(), min_size=1, max_size=3), by_label=st.booleans())
def test_the_members_that_are_left_are_the_whole_gang_and_one_fewer_is_not(
    *, data: st.DataObject, jobs: list[OneJob], by_label: bool
) -> None:
    size = sum(min(job.parallelism, job.completions) for job in jobs)
    shown: list[object] = []
    left: list[wire.Pod] = []
    replicated = []
    for number, job in enumerate(jobs):
        labels = labels_of(number, by_label=by_label, size=size)
        spec = job_spec(job, labels)
        replicated.append({"name": f"r{number}", "template": {"spec": spec}})
        meta = {"name": f"s-{number}", "namespace": "ns", "uid": f"job-{number}"}
        found = {"metadata": meta, "spec": spec, "status": {"succeeded": job.succeeded}}
        shown.append(msgspec.convert(found, batchjob.Job, strict=False))
        kept = data.draw(st.sets(st.sampled_from(range(job.succeeded)))) if job.succeeded else ()
        shown += [a_pod(number, index, "Succeeded", labels) for index in sorted(kept)]
        left += [a_pod(number, job.succeeded + more, "Pending", labels) for more in range(job.left)]
    if not by_label:
        meta = {"name": "s", "namespace": "ns", "uid": "set"}
        made = {"metadata": meta, "spec": {"replicatedJobs": replicated}}
        shown.append(msgspec.convert(made, jobset.JobSet, strict=False))
    if not left:
        return
    world = World()
    *first, last = data.draw(st.permutations(left))
    for what in data.draw(st.permutations([*shown, *first])):
        world.show(what)
    key = GangKey("muster/ns/s" if by_label else "jobset/ns/s")
    before = world.state.gang(key)
    assert before is None or before.phase in (GangPhase.PENDING, GangPhase.FINISHED)
    world.show(last)
    gang = world.state.gang(key)
    assert gang is not None
    assert gang.spec is not None
    assert (len(gang.waiting), gang.spec.min_count) == (len(left), len(left))
    assert gang.phase is GangPhase.ADMITTED
