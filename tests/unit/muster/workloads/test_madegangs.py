"""Which gangs the objects of a manifest make, with how many pods: as they will be read later."""

from typing import Any

import pytest

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.workloads.madegangs import MadeGang, TemplatePods, gangs

POD = {"spec": {"containers": [{"name": "main"}]}}
JSON = dict[str, Any]


def counts(gang: MadeGang) -> dict[str, int]:
    return {pods.role: pods.count for pods in gang.pods}


def only(*objects: JSON) -> MadeGang:
    (gang,) = gangs(objects, "team")
    return gang


def needs(gang: MadeGang) -> tuple[int, int | None]:
    assert gang.spec is not None
    return gang.spec.min_count, gang.spec.size


def job(**spec: object) -> JSON:
    whole = {"completionMode": "Indexed", "template": POD} | spec
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": whole}


def ray(*groups: JSON, kind: str = "RayCluster", field: str = "", **spec: object) -> JSON:
    workers = [{"groupName": f"w{n}", "template": POD} | group for n, group in enumerate(groups)]
    cluster = {"headGroupSpec": {"template": POD}, "workerGroupSpecs": workers} | spec
    whole = {field: cluster} if field else cluster
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "r"}, "spec": whole}


def test_a_replica_of_several_hosts_is_that_many_pods() -> None:
    #  two replicas of four hosts, and the head
    gang = only(ray({"replicas": 2, "numOfHosts": 4}))
    assert counts(gang) == {"headgroup": 1, "w0": 8}
    assert needs(gang) == (9, 9)


def test_a_suspended_part_makes_no_pods_and_a_suspended_object_is_asked_as_if_it_ran() -> None:
    gang = only(ray({"replicas": 2, "suspend": True}, {"replicas": 3}, suspend=True))
    assert counts(gang) == {"headgroup": 1, "w1": 3}
    assert counts(only(job(parallelism=4, suspend=True))) == {"": 4}


@pytest.mark.parametrize(
    ("kind", "field"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")]
)
def test_what_makes_a_cluster_is_counted_as_the_cluster(kind: str, field: str) -> None:
    made = ray({"replicas": 2, "numOfHosts": 2}, kind=kind, field=field)
    made["spec"]["submitterPodTemplate"] = POD  # the pod that submits is no member
    assert counts(only(made)) == {"headgroup": 1, "w0": 4}


def test_no_more_pods_run_than_there_are_completions() -> None:
    assert counts(only(job(parallelism=8, completions=3))) == {"": 3}
    replicated = [{"name": "w", "replicas": 2, "template": {"spec": job(**PAIR)["spec"]}}]
    jobset = {"kind": "JobSet", "metadata": {"name": "s"}, "spec": {"replicatedJobs": replicated}}
    assert counts(only(jobset)) == {"w": 4}
    cron = {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": job(**PAIR)}}
    assert counts(only(cron | {"apiVersion": "batch/v1"})) == {"": 2}


PAIR = {"parallelism": 5, "completions": 2}


def test_members_that_come_later_are_counted_and_not_waited_for() -> None:
    replicas = {"Launcher": {"replicas": 1, "template": POD}, "Worker": {"template": POD}}
    replicas["Worker"]["replicas"] = 2
    spec = {"mpiReplicaSpecs": replicas, "launcherCreationPolicy": "WaitForWorkersReady"}
    gang = only({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": spec})
    assert counts(gang) == {"launcher": 1, "worker": 2}
    assert needs(gang) == (2, 3)


def test_each_group_of_a_leader_worker_set_is_a_gang() -> None:
    group = {"size": 4, "workerTemplate": POD}
    spec = {"replicas": 3, "leaderWorkerTemplate": group}
    lws = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": spec}
    made = gangs([lws], "team")
    assert [counts(gang) for gang in made] == [{"leader": 1, "worker": 3}] * 3
    assert {needs(gang) for gang in made} == {(4, 4)}


def test_a_pod_group_of_the_file_describes_the_pods_that_name_it() -> None:
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group |= {"metadata": {"name": "g"}, "spec": {"minMember": 3}}
    named = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}}, **POD}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    gang = only(deployment | {"spec": {"replicas": 5, "template": named}}, group)
    assert needs(gang) == (3, None)
    assert gang.size == 5


def test_gangs_that_are_placed_together_are_one() -> None:
    prefix = "gang.scheduling.koordinator.sh/"
    jobs = []
    for name, count in (("actors", 3), ("learner", 1)):
        notes = {f"{prefix}name": name, f"{prefix}min-available": str(count)}
        notes[f"{prefix}groups"] = '["team/actors", "team/learner"]'
        template = {"metadata": {"annotations": notes}, **POD}
        jobs.append(job(parallelism=count, template=template) | {"metadata": {"name": name}})
    gang = only(*jobs)
    assert counts(gang) == {"team/actors": 3, "team/learner": 1}
    assert needs(gang)[0] == 4
    (actors,) = gangs(jobs[:1], "team")  # the other one is not there
    assert counts(actors) == {"": 3}


def test_several_jobs_of_one_group_are_one_gang_and_others_gangs_of_their_own() -> None:
    keys = {"labels": {"muster.dev/gang": "both", "muster.dev/gang-size": "6"}}
    one, other = (job(parallelism=n, template={"metadata": keys, **POD}) for n in (2, 4))
    other["metadata"] = {"name": "other"}
    alone = job(parallelism=3) | {"metadata": {"name": "alone"}}
    both, third = gangs([one, other, alone], "team")
    assert (both.size, needs(both)) == (6, (6, 6))
    assert needs(third) == (3, 3)


def test_objects_inside_objects_are_read_as_themselves() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [job(**PAIR)]}
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    wrapper |= {"spec": {"components": [{"template": ray({"replicas": 1, "numOfHosts": 3})}]}}
    assert counts(only(listed)) == {"": 2}
    assert counts(only(wrapper)) == {"headgroup": 1, "w0": 3}


def test_pods_of_a_job_without_indices_have_no_gang() -> None:
    gang = only(job(parallelism=4, completions=3, completionMode="NonIndexed"))
    assert (gang.spec, gang.size) == (None, 3)


def test_an_object_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"Job j: Expected `int \| null`.*parallelism"):
        gangs([job(parallelism="many")], "team")


@pytest.mark.parametrize(
    ("minimum", "roles", "least"),
    [
        (2, (), 4),  # two of the cheap ones
        (2, (RoleSpec("driver", 1),), 10),
        (3, (RoleSpec("driver", 1), RoleSpec("worker", 1)), 12),
        (6, (), 24),  # all there are
        (9, (), 24),
        (0, (), 0),
    ],
)
def test_the_least_of_a_minimum_has_its_roles_and_else_whoever_asks_for_little(
    minimum: int, roles: tuple[RoleSpec, ...], least: int
) -> None:
    spec = GangSpec(GangKey("d/n/g"), "n", "g", "d", min_count=minimum, roles=roles)
    parts = [TemplatePods("driver", {}, 2), TemplatePods("worker", {}, 4)]
    amounts = [{"gpu": 8}, {"gpu": 2, "cpu": 1}]
    found = MadeGang(spec, parts).least(amounts)
    assert found.get("gpu", 0) == least
    assert found.get("cpu", 0) == max(0, min(minimum, 6) - 2)  # the drivers ask for none
