"""What-if counts pods and minima as the readers do, for objects of every dialect that makes pods.

Each kind is counted here by its controller's own rule, a second time and in one line.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.readapi.suppositions import Supposer
from muster.apiwire.whatif import Job, WhatIfQuestion
from muster.cluster.events import GangUpserted, PodUpserted
from muster.cluster.state import ClusterState
from muster.kube import names
from muster.workloads.descriptions import read_object
from muster.workloads.managedpods import ManagedPolicy

JSON = dict[str, Any]
POD = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
FEW = st.integers(0, 4)
MAYBE = st.one_of(st.none(), FEW)
SWITCH = st.booleans()


@dataclass(frozen=True)
class Case:
    """An object, and how many pods its controller makes of it, in so many gangs."""

    document: JSON
    pods: int
    gangs: int = 1


def written(version: str, kind: str, spec: JSON) -> JSON:
    found = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": found}


def running(parallelism: int | None, completions: int | None) -> int:
    """Count as the Job controller does: min(parallelism, completions)."""
    parallelism = 1 if parallelism is None else parallelism
    return parallelism if completions is None else min(parallelism, completions)


def job_spec(parallelism: int | None, completions: int | None, mode: str) -> JSON:
    spec = {"parallelism": parallelism, "completions": completions, "completionMode": mode}
    return {key: value for key, value in spec.items() if value is not None} | {"template": POD}


@st.composite
def jobs(draw: st.DrawFn) -> Case:
    parallelism, completions = draw(MAYBE), draw(MAYBE)
    mode = draw(st.sampled_from(["Indexed", "NonIndexed"]))
    spec = job_spec(parallelism, completions, mode) | {"suspend": draw(SWITCH)}
    return Case(written("batch/v1", "Job", spec), running(parallelism, completions))


@st.composite
def jobsets(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(st.tuples(FEW, MAYBE, MAYBE), min_size=1, max_size=3))
    parts = [
        {"name": f"p{n}", "replicas": r, "template": {"spec": job_spec(p, c, "Indexed")}}
        for n, (r, p, c) in enumerate(rows)
    ]
    if draw(SWITCH):
        parts[-1]["dependsOn"] = [{"name": "p0", "status": "Ready"}] if len(parts) > 1 else []
    spec = {"replicatedJobs": parts, "suspend": draw(SWITCH)}
    document = written("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    return Case(document, sum(r * running(p, c) for r, p, c in rows))


@st.composite
def ray_clusters(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(st.tuples(FEW, st.integers(1, 4), SWITCH), max_size=3))
    groups = [
        {"groupName": f"g{n}", "replicas": r, "numOfHosts": h, "suspend": s, "template": POD}
        for n, (r, h, s) in enumerate(rows)
    ]
    spec = {"headGroupSpec": {"template": POD}, "workerGroupSpecs": groups}
    spec |= {"suspend": draw(SWITCH), "enableInTreeAutoscaling": draw(SWITCH)}
    kinds = {"RayCluster": spec, "RayJob": {"rayClusterSpec": spec}}
    kinds["RayService"] = {"rayClusterConfig": spec}
    kind = draw(st.sampled_from(sorted(kinds)))
    if kind != "RayCluster":
        del spec["suspend"]
    pods = 1 + sum(r * h for r, h, suspended in rows if not suspended)
    return Case(written("ray.io/v1", kind, kinds[kind]), pods)


@st.composite
def training_jobs(draw: st.DrawFn) -> Case:
    kind, field = draw(
        st.sampled_from([("PyTorchJob", "pytorchReplicaSpecs"), ("MPIJob", "mpiReplicaSpecs")])
    )
    leader = "Master" if kind == "PyTorchJob" else "Launcher"
    workers, elastic = draw(MAYBE), draw(st.one_of(st.none(), st.integers(1, 3)))
    role = {"template": POD} | ({} if workers is None else {"replicas": workers})
    spec: JSON = {field: {leader: {"replicas": 1, "template": POD}, "Worker": role}}
    if elastic is not None and kind == "PyTorchJob":
        spec["elasticPolicy"] = {"minReplicas": elastic}
    if draw(SWITCH):
        spec["launcherCreationPolicy"] = "WaitForWorkersReady"
    absent = 1 if kind == "PyTorchJob" else 0
    return Case(
        written("kubeflow.org/v1", kind, spec), 1 + (absent if workers is None else workers)
    )


@st.composite
def worker_sets(draw: st.DrawFn) -> Case:
    groups, size = draw(FEW), draw(st.integers(1, 4))
    group = {"size": size, "workerTemplate": POD}
    if draw(SWITCH):
        group["leaderTemplate"] = POD
    spec = {"replicas": groups, "leaderWorkerTemplate": group}
    spec["startupPolicy"] = draw(st.sampled_from(["LeaderReady", "LeaderCreated"]))
    document = written("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)
    return Case(document, groups * size, groups)


@st.composite
def volcano_jobs(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(FEW, min_size=1, max_size=3))
    tasks = [{"name": f"t{n}", "replicas": r, "template": POD} for n, r in enumerate(rows)]
    spec = {"tasks": tasks, "minAvailable": draw(st.one_of(st.none(), st.integers(1, 3)))}
    return Case(written("batch.volcano.sh/v1alpha1", "Job", spec), sum(rows))


@given(
    case=st.one_of(
        jobs(), jobsets(), ray_clusters(), training_jobs(), worker_sets(), volcano_jobs()
    )
)
def test_what_if_asks_about_the_pods_that_the_controller_makes_and_the_readers_count(
    case: Case,
) -> None:
    found = read_object(case.document["apiVersion"], case.document["kind"], case.document)
    assert found is not None
    read = found.specs()
    if case.pods < 1:
        assert not read or case.gangs < 1
        return
    job = Job(name="x", objects=(case.document,))
    state = ClusterState("c", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
    supposer = Supposer(state.snapshot(), ManagedPolicy(), {})
    asked = supposer.read(WhatIfQuestion(job=job)).supposition.facts
    specs = [fact.spec for fact in asked if isinstance(fact, GangUpserted)]
    pods = [fact for fact in asked if isinstance(fact, PodUpserted)]
    assert (len(specs), len(pods), len({pod.uid for pod in pods})) == (
        case.gangs, case.pods, case.pods
    )  # fmt: skip
    for spec in specs if read else ():
        wanted = read[0].min_count, read[0].size, read[0].roles
        assert (spec.min_count, spec.size, spec.roles) == wanted
        members = [pod for pod in pods if pod.gang == spec.key]
        assert len(members) == spec.size
        for role in spec.roles:
            assert sum(pod.role == role.name for pod in members) >= role.min_count
