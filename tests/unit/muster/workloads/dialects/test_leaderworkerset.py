"""LeaderWorkerSets: every group of a leader and its workers is a gang of its own."""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import names
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import leaderworkerset

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


def spec(*swaps: tuple[str, str]) -> GangSpec:
    found = leaderworkerset.spec(read(SET, leaderworkerset.LeaderWorkerSet, *swaps))
    assert found is not None
    return found


def member(name: str, **places: str) -> Member:
    found = registry.member(pod(name, labels=labelled(**places)))
    assert found is not None
    assert found.template == "leaderworkerset/team-a/vllm:group"
    return found


def labelled(**more: str) -> dict[str, str]:
    places = {key.replace("_", "-"): value for key, value in more.items()}
    return {f"{LABEL}/{key}": value for key, value in {"name": "vllm", **places}.items()}


# -- gangs ---------------------------------------------------------------------------------------


def test_a_set_describes_what_each_of_its_groups_copies() -> None:
    found = spec()
    assert (found.key, found.size, found.min_count) == ("leaderworkerset/team-a/vllm:group", 4, 4)
    assert found.roles == (RoleSpec("leader", 1), RoleSpec("worker", 3))
    assert (found.required_level, found.problems) == (names.RACK, ())


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
    found = spec(swap)
    assert (found.size, found.min_count, found.roles) == (4, 1, (RoleSpec("leader", 1),))


def test_a_group_of_one_is_its_leader() -> None:
    found = spec(("size: 4", "size: 1"))
    assert (found.size, found.min_count, found.roles) == (1, 1, (RoleSpec("leader", 1),))


def test_workers_may_say_how_many_of_them_are_needed() -> None:
    found = spec(("annotations: {", "annotations: {muster.dev/gang-min: '2', "))
    assert (found.size, found.min_count) == (4, 3)
    assert found.roles == (RoleSpec("leader", 1), RoleSpec("worker", 2))


def test_groups_without_pods_are_not_described() -> None:
    none = read(SET, leaderworkerset.LeaderWorkerSet, ("size: 4", "size: 0"))
    assert leaderworkerset.spec(none) is None


# -- members -------------------------------------------------------------------------------------


def test_labels_name_the_group_and_the_rank() -> None:
    worker = member("vllm-1-3", group_index="1", worker_index="3")
    assert (worker.key, worker.role, worker.rank) == ("leaderworkerset/team-a/vllm-1", "worker", 3)


def test_a_leader_is_known_by_its_name_before_its_own_webhook_has_labelled_it() -> None:
    leader = member("vllm-2", worker_index="0")
    assert (leader.key, leader.role, leader.rank) == ("leaderworkerset/team-a/vllm-2", "leader", 0)


def test_a_worker_is_known_by_its_name_before_its_own_webhook_has_labelled_it() -> None:
    worker = member("vllm-2-1", group_index="2")
    assert (worker.key, worker.role, worker.rank) == ("leaderworkerset/team-a/vllm-2", "worker", 1)


@pytest.mark.parametrize("name", ["vllm", "other-1", "vllm-1-2-3", "vllm-x"])
def test_a_name_that_is_not_of_the_set_makes_no_member(name: str) -> None:
    assert registry.member(pod(name, labels=labelled())) is None


def test_a_member_is_managed_even_without_an_accelerator() -> None:
    assert registry.names_a_group(pod("vllm-0", labels=labelled()))
