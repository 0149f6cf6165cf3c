"""From objects that describe queues to the queues of the model."""

from support.clusters.planners import Bench

from extender.queues.queueobjects import QueueObjects
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.kube.wire import ObjectMeta
from muster.workloads.queues.reading import (
    FlavorGroup,
    FlavorReading,
    QueueAlias,
    QueueReading,
)

A, COHORT = QueueName("kueue/a"), QueueName("kueue/cohort/all")
CLUSTER_QUEUES, LOCAL_QUEUES = "clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io"
FLAVORS = "resourceflavors.kueue.x-k8s.io"


def _described(gpus: int = 8) -> QueueReading:
    spec = QueueSpec(A, COHORT, {Cell("spot", "nvidia.com/gpu"): Quota(gpus)})
    groups = {A: (FlavorGroup(("nvidia.com/gpu",), ("spot",)),)}
    return QueueReading(specs=(spec,), implied=(QueueSpec(COHORT),), groups=groups)


def _meta(name: str, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def _made() -> tuple[Bench, QueueObjects]:
    bench = Bench()
    return bench, QueueObjects(bench.engine)


def test_a_name_and_a_flavor_reach_the_queue_whatever_comes_first() -> None:
    bench, objects = _made()
    alias = QueueAlias("main", A, "default")
    flavor = FlavorReading("spot", {"kind": "spot"})

    objects.seen(LOCAL_QUEUES, _meta("main", "default"), QueueReading(aliases=(alias,)))
    objects.seen(CLUSTER_QUEUES, _meta("a"), _described())
    assert not bench.state.snapshot().queues[A].spec.is_open  # its flavor is missing
    objects.seen(FLAVORS, _meta("spot"), QueueReading(flavors=(flavor,)))

    found = bench.state.snapshot().queues[A]
    assert found.spec.is_open
    assert [(one.namespace, one.text) for one in found.spellings] == [("default", "main")]
    assert [one.labels for one in found.groups[0].flavors] == [(("kind", "spot"),)]


def test_what_is_deleted_is_gone_and_an_implied_queue_with_it() -> None:
    bench, objects = _made()
    objects.seen(CLUSTER_QUEUES, _meta("a"), _described())
    assert set(bench.state.snapshot().queues) == {A, COHORT}

    objects.gone(CLUSTER_QUEUES, _meta("a"))

    assert not bench.state.snapshot().queues


def test_a_queue_is_anothers_for_as_long_as_another_writes_its_status() -> None:
    bench, objects = _made()
    for is_elsewhere in (True, True, False, True):
        objects.seen(CLUSTER_QUEUES, _meta("a"), _described(), is_elsewhere=is_elsewhere)
        assert bench.state.snapshot().queues[A].is_elsewhere is is_elsewhere
    objects.seen(CLUSTER_QUEUES, _meta("a"), _described(gpus=4), is_elsewhere=True)
    assert bench.state.snapshot().queues[A].is_elsewhere

    objects.gone(CLUSTER_QUEUES, _meta("a"))
    objects.seen(CLUSTER_QUEUES, _meta("a"), _described())

    assert not bench.state.snapshot().queues[A].is_elsewhere
