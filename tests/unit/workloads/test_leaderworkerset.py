"""LeaderWorkerSets: every group of a leader and its workers is a gang of its own."""

import pytest
from support.manifest import read
from support.wirepods import pod

from cluster.events import GangGone, GangUpserted
from cluster.gangs import GangSpec, RoleSpec
from kube import names
from workloads import leaderworkerset, registry
from workloads.dialect import Member
from workloads.objects import GangObjects

SET = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: team-a}
spec:
  replicas: 3
  leaderWorkerTemplate:
    size: 4
    leaderTemplate: {spec: {}}
    workerTemplate:
      metadata: {annotations: {muster.dev/topology-required: rack}}
      spec: {}
"""
LABEL = "leaderworkerset.sigs.k8s.io"


def specs(*swaps: tuple[str, str]) -> tuple[GangSpec, ...]:
    return leaderworkerset.specs(read(SET, leaderworkerset.LeaderWorkerSet, *swaps))


def labelled(**more: str) -> dict[str, str]:
    places = {key.replace("_", "-"): value for key, value in more.items()}
    return {f"{LABEL}/{key}": value for key, value in {"name": "vllm", **places}.items()}


# -- gangs ---------------------------------------------------------------------------------------


def test_every_group_is_a_gang_of_its_own() -> None:
    found = specs()
    assert [s.key for s in found] == [f"leaderworkerset/team-a/vllm-{n}" for n in range(3)]
    assert [s.name for s in found] == ["vllm-0", "vllm-1", "vllm-2"]
    assert {(s.size, s.min_count, s.required_level) for s in found} == {(4, 4, names.RACK)}
    assert found[0].roles == (RoleSpec("leader", 1), RoleSpec("worker", 3))


@pytest.mark.parametrize(
    "swap",
    [
        ("  replicas: 3", "  startupPolicy: LeaderReady\n  replicas: 3"),
        ("name: vllm,", f"name: vllm, annotations: {{{LABEL}/exclusive-topology: rack}},"),
    ],
)
def test_workers_that_are_created_after_their_leader_are_not_waited_for(
    swap: tuple[str, str],
) -> None:
    found = specs(swap)[0]
    assert (found.size, found.min_count, found.roles) == (4, 1, (RoleSpec("leader", 1),))


@pytest.mark.parametrize(("surge", "groups"), [("2", 5), ('"34%"', 5), ('"0%"', 3), ('"x"', 3)])
def test_groups_of_a_roll_out_are_described_too(surge: str, groups: int) -> None:
    update = f"  rolloutStrategy: {{rollingUpdateConfiguration: {{maxSurge: {surge}}}}}\n"
    assert len(specs(("  replicas: 3", f"{update}  replicas: 3"))) == groups


def test_a_group_of_one_is_its_leader() -> None:
    found = specs(("size: 4", "size: 1"))[0]
    assert (found.size, found.min_count, found.roles) == (1, 1, (RoleSpec("leader", 1),))


def test_workers_may_say_how_many_of_them_are_needed() -> None:
    found = specs(("annotations: {", "annotations: {muster.dev/gang-min: '2', "))[0]
    assert (found.size, found.min_count) == (4, 3)
    assert found.roles == (RoleSpec("leader", 1), RoleSpec("worker", 2))


@pytest.mark.parametrize("swap", [("replicas: 3", "replicas: 0"), ("size: 4", "size: 0")])
def test_a_set_without_pods_describes_no_gang(swap: tuple[str, str]) -> None:
    assert specs(swap) == ()


def test_scaling_a_set_ends_the_gangs_of_the_groups_that_go() -> None:
    objects, three = GangObjects(), specs()
    assert objects.upserted("u", three) == [GangUpserted(spec) for spec in three]
    two = specs(("replicas: 3", "replicas: 2"))
    assert objects.upserted("u", two) == [*(GangUpserted(s) for s in two), GangGone(three[2].key)]
    assert objects.gone("u") == [GangGone(spec.key) for spec in two]


# -- members -------------------------------------------------------------------------------------


def test_labels_name_the_group_and_the_rank() -> None:
    worker = pod("vllm-1-3", labels=labelled(group_index="1", worker_index="3"))
    assert registry.member(worker) == Member("leaderworkerset/team-a/vllm-1", "worker", 3)


def test_a_leader_is_known_by_its_name_before_its_own_webhook_has_labelled_it() -> None:
    leader = pod("vllm-2", labels=labelled(worker_index="0"))
    assert registry.member(leader) == Member("leaderworkerset/team-a/vllm-2", "leader", 0)


def test_a_worker_is_known_by_its_name_before_its_own_webhook_has_labelled_it() -> None:
    worker = pod("vllm-2-1", labels=labelled(group_index="2"))
    assert registry.member(worker) == Member("leaderworkerset/team-a/vllm-2", "worker", 1)


@pytest.mark.parametrize("name", ["vllm", "other-1", "vllm-1-2-3", "vllm-x"])
def test_a_name_that_is_not_of_the_set_makes_no_member(name: str) -> None:
    assert registry.member(pod(name, labels=labelled())) is None


def test_a_member_is_managed_even_without_an_accelerator() -> None:
    assert registry.names_a_group(pod("vllm-0", labels=labelled()))
