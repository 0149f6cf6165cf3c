"""What an object of a queue is read as depends on whether gangs of its dialect give way."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from support.clusters.planners import Bench

from extender.intake.sources import queue_sources
from extender.queues.queueobjects import QueueObjects
from muster.kube.resources import Resource
from muster.workloads.queues.kueue import ClusterQueue
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

    def __init__(self) -> None:
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
