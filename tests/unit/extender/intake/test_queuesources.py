"""What an object of a queue is read as depends on the configuration."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from support.clusters.planners import Bench

from extender.intake.sources import queue_sources
from extender.queues.queueobjects import QueueObjects
from muster.cluster.quota.queuespec import ShareFunction
from muster.kube.resources import Resource
from muster.workloads.queues.kueue import ClusterQueue
from muster.workloads.queues.muster import OwnQueue
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.registry import QueueKind

CLUSTER_QUEUE = """
metadata: {name: a}
spec:
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any}
"""


class Statuses:
    """Takes note of what is written into statuses."""

    program = "muster"

    def __init__(self, *, counts_past_use: bool = False) -> None:
        self.counts_past_use = counts_past_use
        self.readings: list[QueueReading] = []

    def seen(
        self, _kind: QueueKind[Any], _served: Resource[Any], _found: Any, reading: QueueReading
    ) -> None:
        """Note an object."""
        self.readings.append(reading)


@pytest.mark.parametrize(
    ("making_room", "unobeyed"),
    [
        ((), ("spec.preemption.reclaimWithinCohort: Any: no gang of this kind of queue gives",)),
        (("muster", "volcano"), ("spec.preemption.reclaimWithinCohort: Any: no gang of this",)),
        (("kueue",), ()),
    ],
)
def test_a_policy_is_named_as_not_obeyed_just_where_kueues_queues_make_no_room(
    making_room: Collection[str], unobeyed: tuple[str, ...]
) -> None:
    statuses = Statuses()
    sources = queue_sources(QueueObjects(Bench().engine), statuses, making_room)  # type: ignore[arg-type]
    (source,) = (one for one in sources if one.resource.type is ClusterQueue)
    source.upserted(msgspec.yaml.decode(CLUSTER_QUEUE, type=ClusterQueue))
    (reading,) = statuses.readings
    assert len(reading.unobeyed) == len(unobeyed)
    assert all(map(str.startswith, reading.unobeyed, unobeyed))


@pytest.mark.parametrize(("counts", "number"), [(False, 1), (True, 0)])
def test_a_mode_that_needs_past_use_is_obeyed_where_it_counts(*, counts: bool, number: int) -> None:
    statuses = Statuses(counts_past_use=counts)
    sources = queue_sources(QueueObjects(Bench().engine), statuses)  # type: ignore[arg-type]
    (source,) = (one for one in sources if one.resource.type is ClusterQueue)
    text = CLUSTER_QUEUE.replace(
        "preemption: {reclaimWithinCohort: Any}",
        "admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}",
    )
    source.upserted(msgspec.yaml.decode(text, type=ClusterQueue))
    assert len(statuses.readings[0].unobeyed) == number


@pytest.mark.parametrize(
    ("kueue_shares", "shares"), [(True, None), (False, ShareFunction.PRIORITY)]
)
def test_kueues_queues_go_by_priority_where_the_configuration_is_without_fair_sharing(
    *, kueue_shares: bool, shares: ShareFunction | None
) -> None:
    statuses = Statuses()
    sources = queue_sources(
        QueueObjects(Bench().engine),
        statuses,
        kueue_shares=kueue_shares,  # type: ignore[arg-type]
    )
    for source in (one for one in sources if one.resource.type in (ClusterQueue, OwnQueue)):
        found = msgspec.yaml.decode(CLUSTER_QUEUE, type=source.resource.type)
        source.upserted(found)
    by_dialect = {
        spec.name.partition("/")[0]: spec.shares
        for reading in statuses.readings
        for spec in reading.specs
    }
    assert by_dialect == {"kueue": shares, "muster": None}
