"""RayClusters: the head, worker groups, elastic or not."""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import names
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import ray

CLUSTER = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: tune-abc12, namespace: team-a}
spec:
  headGroupSpec: {template: {spec: {}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 6
    minReplicas: 2
    maxReplicas: 10
    template: {metadata: {annotations: {muster.dev/topology-preferred: rack}}, spec: {}}
  - groupName: tpu
    replicas: 1
    minReplicas: 1
    maxReplicas: 3
    numOfHosts: 4
    template: {spec: {}}
"""
OWNER = ("ray.io/v1", "RayCluster", "tune-abc12")
ELASTIC = ("spec:\n  head", "spec:\n  enableInTreeAutoscaling: true\n  head")


def spec(*swaps: tuple[str, str]) -> GangSpec:
    found = ray.spec(read(CLUSTER, ray.RayCluster, *swaps))
    assert found is not None
    return found


def labelled(node_type: str, group: str) -> dict[str, str]:
    return {"ray.io/cluster": "tune-abc12", "ray.io/node-type": node_type, "ray.io/group": group}


def test_the_head_and_all_desired_workers_are_one_gang() -> None:
    found = spec()
    assert (found.key, found.size, found.min_count) == ("raycluster/team-a/tune-abc12", 11, 11)
    assert found.roles == (RoleSpec("headgroup", 1), RoleSpec("gpu", 6), RoleSpec("tpu", 4))
    assert (found.preferred_level, found.max_count, found.problems) == (names.RACK, None, ())


def test_with_the_autoscaler_only_the_smallest_cluster_is_waited_for() -> None:
    found = spec(ELASTIC)
    assert (found.size, found.min_count, found.max_count) == (11, 7, 1 + 10 + 12)
    assert found.roles == (RoleSpec("headgroup", 1), RoleSpec("gpu", 2), RoleSpec("tpu", 4))


def test_a_group_without_an_upper_bound_leaves_the_cluster_without_one() -> None:
    assert spec(ELASTIC, ("    maxReplicas: 10\n", "")).max_count is None


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ("replicas: 6", "replicas: 1", 7),  # raised to minReplicas
        ("replicas: 6", "replicas: 60", 15),  # lowered to maxReplicas
        ("    replicas: 6\n", "", 7),
        ("groupName: gpu", "groupName: gpu\n    suspend: true", 5),
        ("numOfHosts: 4", "numOfHosts: 0", 8),  # an older CRD without the field
    ],
)
def test_replicas_are_counted_as_the_operator_counts_them(old: str, new: str, size: int) -> None:
    assert spec((old, new)).size == size


def test_a_suspended_cluster_describes_no_gang() -> None:
    suspended = ("spec:\n  head", "spec:\n  suspend: true\n  head")
    assert ray.spec(read(CLUSTER, ray.RayCluster, suspended)) is None


def test_head_and_workers_are_members_without_ranks() -> None:
    head = registry.member(pod(labels=labelled("head", "headgroup"), owner=OWNER))
    worker = registry.member(pod(labels=labelled("worker", "gpu"), owner=OWNER))
    assert head == Member("raycluster/team-a/tune-abc12", "headgroup")
    assert worker == Member("raycluster/team-a/tune-abc12", "gpu")


def test_a_job_that_cleans_up_redis_is_no_member() -> None:
    assert registry.member(pod(labels=labelled("redis-cleanup", ""))) is None


def test_a_head_without_an_accelerator_is_managed_because_it_is_a_member() -> None:
    assert registry.names_a_group(pod(labels=labelled("head", "headgroup")))
