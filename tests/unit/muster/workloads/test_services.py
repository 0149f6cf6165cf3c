"""Which gangs serve requests: by who made their pods, by their object, or as their user says."""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import controller, pod

from muster.cluster.events import Event, GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads import registry
from muster.workloads.dialects import leaderworkerset, ray, volcano
from muster.workloads.gangbook import GangBook

OWNERS = [
    ("apps/v1", "ReplicaSet", True),
    ("apps/v1", "StatefulSet", True),
    ("v1", "ReplicationController", True),
    ("apps.kruise.io/v1alpha1", "CloneSet", True),
    ("batch/v1", "Job", False),
    ("argoproj.io/v1alpha1", "Workflow", False),
    ("example.com/v1", "StatefulSet", False),
    ("ray.io/v1", "RayService", True),
]
TRAINS = {"muster.dev/serves": "false"}
SERVES = {"muster.dev/serves": "true"}


def serves(found: wire.Pod) -> bool:
    spec = registry.spec_from_pod(found)
    assert spec is not None
    return spec.serves


@pytest.mark.parametrize(("version", "kind", "expected"), OWNERS)
def test_a_pod_alone_serves_if_a_controller_of_services_made_it(
    version: str, kind: str, *, expected: bool
) -> None:
    assert serves(pod(owner=(version, kind, "x"))) is expected


def test_a_pod_without_a_controller_does_not_serve() -> None:
    assert not serves(pod())


def test_an_owner_that_is_no_controller_says_nothing() -> None:
    reference = wire.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="x")
    meta = wire.ObjectMeta(name="p", namespace="team-a", owner_references=(reference,))
    assert not serves(wire.Pod(metadata=meta))


def test_its_user_has_the_last_word() -> None:
    """A StatefulSet that trains; a bare pod that serves."""
    assert not serves(pod(labels=TRAINS, owner=("apps/v1", "StatefulSet", "x")))
    assert serves(pod(annotations=SERVES))


def test_pods_that_name_a_gang_do_not_serve_whoever_made_them_unless_they_say_so() -> None:
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
    owner = ("apps/v1", "StatefulSet", "x")
    assert not serves(pod(labels=gang, owner=owner))
    assert serves(pod(labels=gang | SERVES, owner=owner))


def test_kueues_serving_groups_serve() -> None:
    group = {
        "kueue.x-k8s.io/pod-group-name": "g",
        "kueue.x-k8s.io/pod-group-total-count": "2",
    }
    assert not serves(pod(annotations=group))
    assert serves(pod(annotations=group | {"kueue.x-k8s.io/pod-group-serving": "true"}))


def test_groups_of_a_leaderworkerset_serve_unless_their_templates_say_otherwise() -> None:
    text = """
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    metadata: {name: vllm, namespace: team-a, labels: {}}
    spec: {leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {}}}}
    """
    kind = leaderworkerset.LeaderWorkerSet
    found = leaderworkerset.spec(read(text, kind))
    trains = leaderworkerset.spec(
        read(text, kind, ("labels: {}", 'labels: {muster.dev/serves: "false"}'))
    )
    assert found is not None
    assert found.serves
    assert trains is not None
    assert not trains.serves


@pytest.mark.parametrize(("kind", "expected"), [("RayService", True), ("RayJob", False)])
def test_a_raycluster_serves_for_a_rayservice(kind: str, *, expected: bool) -> None:
    meta = wire.ObjectMeta(
        name="c", namespace="team-a", owner_references=(controller("ray.io/v1", kind, "x"),)
    )
    found = ray.spec(ray.RayCluster(metadata=meta))
    assert found is not None
    assert found.serves is expected


@pytest.mark.parametrize(("minimum", "expected"), [(0, True), (1, True), (2, False)])
def test_volcanos_group_for_a_deployments_pods_serves_while_each_comes_by_itself(
    minimum: int, *, expected: bool
) -> None:
    """Its controller copies the pods' owner (pkg/controllers/podgroup)."""
    meta = wire.ObjectMeta(
        name="g", namespace="team-a", owner_references=(controller("apps/v1", "ReplicaSet", "x"),)
    )
    found = volcano.spec(volcano.PodGroup(meta, volcano.PodGroupSpec(min_member=minimum)))
    assert found is not None
    assert found.serves is expected


@pytest.mark.parametrize("trains", [True, False])
def test_a_gang_of_several_groups_serves_only_if_all_do(*, trains: bool) -> None:
    unit = (GangKey("d/n/a"), GangKey("d/n/b"))
    book, events = GangBook(), list[Event]()
    for key, serves_ in zip(unit, (True, not trains), strict=True):
        name = key.rpartition("/")[2]
        events = book.told(GangSpec(key, "n", name, "d", min_count=1, unit=unit, serves=serves_))
    (found,) = (event.spec for event in events if isinstance(event, GangUpserted))
    assert found.serves is not trains
