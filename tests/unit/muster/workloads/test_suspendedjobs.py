"""What Muster reads of jobs that it suspended, and the patches that suspend and resume them."""

import copy
import json
from typing import Any

import jsonpatch
import msgspec
import pytest
from support.pods.jobs import KINDS as EXAMPLES
from support.pods.jobs import job, of_kind, train_job

from muster.kube import names
from muster.workloads.jobowners import OWNERS
from muster.workloads.keys.unknownkeys import unknown
from muster.workloads.registry import DIALECTS
from muster.workloads.suspendablekinds import ELSEWHERE, KINDS, hindrance, value_at
from muster.workloads.suspendedjobs import (
    KUEUE_EQUAL,
    KUEUE_MIN,
    SuspendedJob,
    is_suspendable,
    is_suspended,
    queue_of,
    read,
    resumption,
    suspension,
    suspension_again,
)

JSON = dict[str, Any]
NOW = "2026-01-02T03:04:05+00:00"
SUSPENDABLE = ["Job", "JobSet", "PyTorchJob", "MPIJob", "RayCluster", "RayJob"]
WATCHED: dict[tuple[str, str], Any] = {
    (each.group, each.plural): each for d in DIALECTS for each in d.watched
} | {(each.group, each.plural): each for each in OWNERS}


def _at(document: JSON) -> tuple[str, str]:
    group = document["apiVersion"].partition("/")[0]
    return group, f"{document['kind'].lower()}s"


def _of(kind: str) -> JSON:
    document = job("vision") if kind == "Job" else of_kind(kind, queue="vision")
    if kind in ("RayCluster", "RayJob"):
        del document["spec"]["suspend"]
    document["metadata"]["uid"] = "u"
    return document


def _suspended(document: JSON) -> JSON:
    added = suspension(KINDS[_at(document)], document)
    patch = [{"op": "add", "path": path, "value": value} for path, value in added]
    after: JSON = jsonpatch.apply_patch(document, patch)
    return after


def _read(document: JSON) -> SuspendedJob | None:
    watched = WATCHED[_at(document)]
    return read(*_at(document), msgspec.convert(document, watched.type))


def _job(**notes: str) -> JSON:
    document = _suspended(job("vision", uid="u"))
    document["metadata"]["annotations"] |= notes
    return document


def _found(document: JSON) -> SuspendedJob:
    found = _read(document)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", SUSPENDABLE)
def test_every_kind_is_suspended_read_with_all_its_pods_and_resumed_as_it_was(kind: str) -> None:
    before = _of(kind)
    document = _suspended(before)
    assert is_suspended(KINDS[_at(document)], document)
    assert _read(before) is None

    found = _found(document)
    after = jsonpatch.apply_patch(document, resumption(found, None, NOW))

    assert (found.spec.queue, found.size) == ("vision", found.spec.size)
    assert not is_suspended(KINDS[_at(document)], after)
    assert after["metadata"]["annotations"] == {names.RESUMED_AT: NOW}
    assert _found(after).resumed_at == 1767323045.0


@pytest.mark.parametrize("kind", SUSPENDABLE)
def test_who_patches_what_is_not_suspended_by_muster_any_more_is_refused(kind: str) -> None:
    document = _suspended(_of(kind))
    patch = resumption(_found(document), None, NOW)
    running = jsonpatch.apply_patch(document, patch)
    other = {**document, "metadata": {**document["metadata"], "uid": "v"}}
    for changed in (running, other):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            jsonpatch.apply_patch(changed, patch)


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {}},
        {"annotations": {names.SUSPENDED_BY: "somebody"}},
        {"annotations": {names.RESUMED_AT: NOW}},
    ],
)
def test_a_job_that_somebody_else_has_suspended_is_not_resumed(change: JSON) -> None:
    document = _job()
    document["metadata"] |= change
    assert _read(document) is None


@pytest.mark.parametrize("mode", ["NonIndexed", ""])
def test_a_job_whose_pods_go_one_by_one_names_no_queue_to_wait_in(mode: str) -> None:
    document = job("vision")
    document["spec"]["completionMode"] = mode
    assert queue_of("batch", "jobs", document) == ""


def test_the_queue_may_stand_on_the_job_itself_in_musters_words() -> None:
    document = job()
    document["metadata"]["labels"] = {names.QUEUE: "vision"}
    assert queue_of("batch", "jobs", document) == "vision"


def test_kinds_that_cannot_be_suspended_name_no_queue() -> None:
    for kind in EXAMPLES.keys() - set(SUSPENDABLE):
        document = of_kind(kind, queue="vision")
        assert queue_of(*_at(document), document) == "", kind


# --- fewer pods -----------------------------------------------------------------------------------


def test_a_job_that_takes_fewer_pods_asks_for_the_least_and_is_resumed_with_what_has_room() -> None:
    document = _job(**{names.MIN_PARALLELISM: "2"})
    found = _found(document)
    assert (found.spec.min_count, found.spec.size, found.size) == (2, 4, 4)

    after = jsonpatch.apply_patch(document, resumption(found, 3, NOW))

    assert (after["spec"]["parallelism"], after["spec"]["completions"]) == (3, 3)
    assert after["metadata"]["annotations"][names.ASKED_PARALLELISM] == "4"


def test_a_job_that_is_suspended_again_asks_for_as_many_pods_as_at_first() -> None:
    document = _job(**{names.MIN_PARALLELISM: "2"})
    smaller = jsonpatch.apply_patch(document, resumption(_found(document), 2, NOW))
    again = _suspended(smaller)

    found = _found(again)
    after = jsonpatch.apply_patch(again, resumption(found, 4, NOW))

    assert (found.size, found.spec.min_count) == (4, 2)
    assert (after["spec"]["parallelism"], after["spec"]["completions"]) == (4, 4)
    assert names.ASKED_PARALLELISM not in after["metadata"]["annotations"]


def test_kueues_key_leaves_completions_as_they_are_unless_its_other_key_says_so() -> None:
    for notes, completions in (({}, 4), ({KUEUE_EQUAL: "true"}, 3)):
        document = _job(**{KUEUE_MIN: "1", **notes})
        after = jsonpatch.apply_patch(document, resumption(_found(document), 3, NOW))
        assert (after["spec"]["parallelism"], after["spec"]["completions"]) == (3, completions)


@pytest.mark.parametrize("least", ["0", "4", "5", "-1", "two", "9" * 20, ""])
def test_a_least_parallelism_that_is_none_counts_for_nothing(least: str) -> None:
    found = _found(_job(**{names.MIN_PARALLELISM: least}))
    assert (found.shrinkage, found.spec.min_count) == (None, 4)


def _jobset(*jobs: tuple[str, int, str]) -> JSON:
    document = _of("JobSet")
    document["spec"]["replicatedJobs"] = [
        {
            "name": name,
            "replicas": replicas,
            "template": {
                "metadata": {"annotations": {names.MIN_PARALLELISM: least} if least else {}},
                "spec": copy.deepcopy(job()["spec"]),
            },
        }
        for name, replicas, least in jobs
    ]
    return _suspended(document)


def test_of_a_jobset_the_replicated_job_that_says_so_is_made_smaller() -> None:
    document = _jobset(("driver", 1, ""), ("workers", 1, "1"))
    found = _found(document)
    assert {role.name: role.min_count for role in found.spec.roles} == {"driver": 4, "workers": 1}
    assert found.spec.min_count == 5
    assert found.whole().spec.min_count == 8

    after = jsonpatch.apply_patch(document, resumption(found, 2, NOW))

    driver, workers = (each["template"]["spec"] for each in after["spec"]["replicatedJobs"])
    assert (driver["parallelism"], workers["parallelism"], workers["completions"]) == (4, 2, 2)


@pytest.mark.parametrize("jobs", [[("a", 2, "1")], [("a", 1, "1"), ("b", 1, "1")]])
def test_a_jobset_that_says_so_of_several_jobs_stays_whole(
    jobs: list[tuple[str, int, str]],
) -> None:
    assert _found(_jobset(*jobs)).shrinkage is None


# --- sizes that cost nothing but a number ---------------------------------------------------------


def test_a_job_that_is_too_large_is_neither_suspended_nor_read() -> None:
    document = _job()
    document["spec"] |= {"parallelism": 2**31 - 1, "completions": 2**31 - 1}
    assert queue_of("batch", "jobs", document) == ""
    assert _read(document) is None


def test_indexes_that_come_later_cost_nothing() -> None:
    document = _jobset(("driver", 1, ""))
    (only,) = document["spec"]["replicatedJobs"]
    only["template"]["spec"]["completions"] = 2**31 - 1
    assert _numbers(_found(document)) == {"driver": (-1,) * 4}


# --- members --------------------------------------------------------------------------------------


def test_members_are_numbered_as_their_dialect_will_number_them() -> None:
    (job_pods,) = _found(_job()).pods
    assert job_pods[1] == (0, 1, 2, 3)
    found = dict(_numbers(_found(_jobset(("driver", 1, ""), ("workers", 2, "")))))
    assert found["driver"] == (0, 1, 2, 3)
    assert found["workers"] == tuple(at + n for at in (16384, 32768) for n in range(4))
    assert set(_numbers(_found(_suspended(_of("RayCluster"))))["gpu"]) == {-1}


def _numbers(found: SuspendedJob) -> dict[str, tuple[int, ...]]:
    return {kind.role: numbers for kind, numbers in found.pods}


def test_every_kind_is_watched_and_its_suspension_decoded() -> None:
    for at, kind in KINDS.items():
        document: JSON = {"metadata": {}, "spec": {}}
        holder = (
            document["spec"] if len(kind.at) == 2 else document["spec"].setdefault("runPolicy", {})
        )
        holder["suspend"] = True
        found = msgspec.convert(document, WATCHED[at].type)
        assert value_at(json.loads(msgspec.json.encode(found)), kind.at) is True, at


@pytest.mark.parametrize("kind", SUSPENDABLE)
def test_a_running_job_is_suspended_again_and_is_to_muster_what_it_was_at_first(kind: str) -> None:
    at = _at(_of(kind))
    suspended = _suspended(_of(kind))
    first = _read(suspended)
    assert first is not None
    running = jsonpatch.apply_patch(suspended, resumption(first, None, NOW))
    running["metadata"]["resourceVersion"] = "7"

    patch = suspension_again(*at, msgspec.convert(running, WATCHED[at].type))
    again = _merged(running, patch)

    assert patch["metadata"]["resourceVersion"] == "7"
    assert _read(again) == first
    assert not suspension_again(*at, msgspec.convert(again, WATCHED[at].type)), "it is suspended"
    assert _without(again, KINDS[at].at) == _without(suspended, KINDS[at].at)


def _merged(document: JSON, patch: JSON) -> JSON:
    """RFC 7386."""
    found = copy.deepcopy(document)
    for key, value in patch.items():
        if isinstance(value, dict):
            found[key] = _merged(found.get(key, {}), value)
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found


def _without(document: JSON, path: tuple[str | int, ...]) -> JSON:
    found = copy.deepcopy(document)
    found["metadata"].pop("resourceVersion", None)
    holder: Any = found
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return found


# --- RayJobs --------------------------------------------------------------------------------------


def _ray_job(**spec: object) -> JSON:
    document = _of("RayJob")
    document["spec"] |= spec
    return document


def test_a_suspended_rayjob_is_a_gang_of_its_own_for_its_cluster_has_no_name_yet() -> None:
    found = _found(_suspended(_ray_job(activeDeadlineSeconds=60)))
    assert (found.spec.key, found.spec.dialect) == ("rayjob/team-a/llama", "raycluster")
    assert found.is_renamed
    assert found.spec.max_run_time == 60.0
    assert {kind.role: len(numbers) for kind, numbers in found.pods} == {"headgroup": 1, "gpu": 4}


def test_in_sidecar_mode_the_head_asks_for_what_submits_the_job_too() -> None:
    for mode, containers in (("SidecarMode", 2), ("K8sJobMode", 1), ("HTTPMode", 1)):
        found = _found(_suspended(_ray_job(submissionMode=mode)))
        head, workers = (kind.template["spec"]["containers"] for kind, _ in found.pods)
        assert (len(head), len(workers)) == (containers, 1), mode
        assert len(head) == 1 or head[1]["resources"]["requests"]["cpu"] == "500m"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"shutdownAfterJobFinishes": False}, 'spec.shutdownAfterJobFinishes: "false"'),
        ({"clusterSelector": {"ray.io/cluster": "shared"}}, "spec.clusterSelector"),
        ({"managedBy": ELSEWHERE}, f'spec.managedBy: "{ELSEWHERE}"'),
    ],
)
def test_a_rayjob_that_kuberay_does_not_suspend_is_not_suspended(spec: JSON, why: str) -> None:
    at, document = ("ray.io", "rayjobs"), _ray_job(**spec)
    assert why in hindrance(*at, document)
    assert not is_suspendable(*at, document)
    assert is_suspendable(*at, _ray_job())


def test_a_rayjob_that_waits_for_its_user_or_is_over_is_not_suspended_again() -> None:
    states = {"Waiting": False, "Complete": False, "Failed": False, "ValidationFailed": False}
    for state, can_be in {**states, "Running": True, "Initializing": True, "": True}.items():
        document = {**_ray_job(), "status": {"jobDeploymentStatus": state}}
        typed = msgspec.convert(document, WATCHED["ray.io", "rayjobs"].type)
        assert bool(suspension_again("ray.io", "rayjobs", typed)) is can_be, state


def _with_least(document: JSON, least: str, *at: str) -> JSON:
    """The same with a least parallelism on its one worker group."""
    (group,) = value_at(document, (*at, "workerGroupSpecs"))  # type: ignore[misc]
    group["template"]["metadata"] = {"annotations": {names.MIN_PARALLELISM: least}}
    return document


def test_the_key_is_known_on_the_templates_of_workers() -> None:
    assert unknown({}, {names.MIN_PARALLELISM: "2"}) == []


@pytest.mark.parametrize(
    ("kind", "at"), [("RayJob", ("spec", "rayClusterSpec")), ("RayCluster", ("spec",))]
)
def test_the_workers_of_a_ray_cluster_are_fewer_where_a_group_takes_that(
    kind: str, at: tuple[str, ...]
) -> None:
    document = _suspended(_with_least(_of(kind), "2", *at))
    found = _found(document)
    assert (found.spec.min_count, found.spec.size) == (3, 5)
    assert {role.name: role.min_count for role in found.spec.roles} == {"headgroup": 1, "gpu": 2}

    after = jsonpatch.apply_patch(document, resumption(found, 3, NOW))

    assert value_at(after, (*at, "workerGroupSpecs", 0, "replicas")) == 3
    assert after["metadata"]["annotations"][names.ASKED_PARALLELISM] == "4"
    again = _found(_suspended(after))
    assert (again.spec.min_count, again.spec.size) == (3, 5)
    whole = jsonpatch.apply_patch(_suspended(after), resumption(again, 4, NOW))
    assert value_at(whole, (*at, "workerGroupSpecs", 0, "replicas")) == 4


@pytest.mark.parametrize(
    ("group", "cluster", "least"),
    [
        ({"minReplicas": 3}, {}, 3),
        ({"minReplicas": 4}, {}, None),
        ({"numOfHosts": 2}, {}, None),
        ({"suspend": True}, {}, None),
        ({}, {"enableInTreeAutoscaling": True}, None),
    ],
)
def test_workers_are_never_fewer_than_ray_itself_keeps_up(
    group: JSON, cluster: JSON, least: int | None
) -> None:
    document = _with_least(_ray_job(), "2", "spec", "rayClusterSpec")
    document["spec"]["rayClusterSpec"] |= cluster
    document["spec"]["rayClusterSpec"]["workerGroupSpecs"][0] |= group
    shrinkage = _found(_suspended(document)).shrinkage
    assert (None if shrinkage is None else shrinkage.least) == least


# --- what another job makes -----------------------------------------------------------------------


def _made_by(document: JSON, kind: str, api: str, *, controls: bool = True) -> JSON:
    owner = {"apiVersion": api, "kind": kind, "name": "a", "uid": "o", "controller": controls}
    document["metadata"]["ownerReferences"] = [owner]
    return document


@pytest.mark.parametrize(
    ("kind", "owner", "api"),
    [
        ("JobSet", "TrainJob", "trainer.kubeflow.org/v1alpha1"),
        ("RayCluster", "RayJob", "ray.io/v1"),
    ],
)
def test_what_a_job_makes_that_can_be_suspended_itself_is_left_alone(
    kind: str, owner: str, api: str
) -> None:
    at = _at(_of(kind))
    document = _made_by(_of(kind), owner, api)
    assert queue_of(*at, document) == ""
    assert not is_suspendable(*at, document)
    assert not suspension_again(*at, msgspec.convert(document, WATCHED[at].type))
    other = _made_by(_of(kind), owner, api, controls=False)
    assert (queue_of(*at, other), is_suspendable(*at, other)) == ("vision", True)
    assert is_suspendable(*at, _made_by(_of(kind), "AppWrapper", "workload.codeflare.dev/v1beta2"))


# --- TrainJobs ------------------------------------------------------------------------------------


def _train(**spec: object) -> JSON:
    document = train_job()
    document["metadata"] |= {"uid": "t", "namespace": "team-a", "labels": {}}
    document["spec"] |= spec
    return document


def _jobset_of(train: JSON) -> Any:
    """Three stages, as a runtime with an initializer has them."""
    document = _made_by(_of("JobSet"), "TrainJob", train["apiVersion"])
    spec = copy.deepcopy(job()["spec"])
    after = [{"name": "load", "status": "Complete"}]
    document["metadata"] |= {"uid": "j", "labels": {names.QUEUE: "vision"}}
    document["spec"] = {
        "suspend": True,
        "replicatedJobs": [
            {"name": "load", "template": {"spec": {**spec, "parallelism": 1, "completions": 1}}},
            {"name": "node", "template": {"spec": spec}, "dependsOn": after},
        ],
    }
    return msgspec.convert(document, WATCHED["jobset.x-k8s.io", "jobsets"].type)


def test_a_trainjob_is_its_jobset_and_needs_room_for_all_of_its_stages() -> None:
    train = _suspended(_train())
    typed = msgspec.convert(train, WATCHED[_at(train)].type)
    assert read(*_at(train), typed) is None, "nothing is known of its pods"

    found = read(*_at(train), typed, _jobset_of(train))

    assert found is not None
    assert (found.uid, found.describer, found.at) == ("t", "j", ("spec", "suspend"))
    assert (found.spec.key, found.spec.queue) == ("jobset/team-a/llama", "vision")
    assert (found.spec.min_count, found.size) == (5, 5)
    after = jsonpatch.apply_patch(train, resumption(found, None, NOW))
    assert after["spec"]["suspend"] is False
    assert after["metadata"]["annotations"] == {names.RESUMED_AT: NOW}


def test_a_trainjob_is_resumed_whole_whatever_its_runtime_says_of_fewer() -> None:
    train, made = _suspended(_train()), _jobset_of(_train())
    node = made.spec.replicated_jobs[1]
    meta = {"annotations": {names.MIN_PARALLELISM: "1"}}
    template = msgspec.structs.replace(
        node.template, metadata=msgspec.convert(meta, type(node.template.metadata))
    )
    jobs = (made.spec.replicated_jobs[0], msgspec.structs.replace(node, template=template))
    made = msgspec.structs.replace(
        made, spec=msgspec.structs.replace(made.spec, replicated_jobs=jobs)
    )
    found = read(*_at(train), msgspec.convert(train, WATCHED[_at(train)].type), made)
    assert found is not None
    assert (found.shrinkage, found.spec.min_count) == (None, 5)


@pytest.mark.parametrize(
    ("places", "queue"),
    [
        ({"metadata": {"labels": {names.QUEUE: "a"}}}, "a"),
        ({"metadata": {"annotations": {names.QUEUE: "a"}}}, "a"),
        ({"spec": {"labels": {names.QUEUE: "a"}}}, "a"),
        ({"spec": {"annotations": {"kueue.x-k8s.io/queue-name": "a"}}}, "a"),
        ({"spec": {"labels": {names.QUEUE: "a"}}, "metadata": {"labels": {names.QUEUE: "b"}}}, "a"),
        ({}, ""),
    ],
)
def test_a_trainjob_names_its_queue_for_its_jobset_or_itself(places: JSON, queue: str) -> None:
    document = _train()
    for place, labels in places.items():
        document[place] |= labels
    assert queue_of(*_at(document), document) == queue


def test_a_trainjob_that_kueue_runs_elsewhere_is_not_suspended() -> None:
    at = ("trainer.kubeflow.org", "trainjobs")
    assert is_suspendable(*at, _train())
    assert not is_suspendable(*at, _train(managedBy=ELSEWHERE))
