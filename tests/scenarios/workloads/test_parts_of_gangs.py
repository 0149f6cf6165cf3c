"""Parts of gangs as other schedulers' users write them, from the object to the plan.

Each test draws its racks: ``block/rack`` and its nodes of 8 GPUs; every member fills one.
"""

from typing import Any

import msgspec
from support.clusters.scene import Scene, pod_class

from muster.cluster.events import GangUpserted
from muster.cluster.specs.gangspec import GangSpec
from muster.placement.decision import Decision, Plan
from muster.workloads.dialects import volcanojob
from muster.workloads.keys.levels import resolve

JSON = dict[str, Any]
WORKER = pod_class(8)


def planned(drawing: str, spec: GangSpec, *parts: tuple[str, int]) -> tuple[Scene, Decision]:
    """Plan a gang with so many members of each role, in rank order."""
    scene = Scene(drawing)
    scene.state.apply(GangUpserted(resolve(spec, scene.state.snapshot().levels)), now=0.0)
    rank = 0
    for role, count in parts:
        scene.members(spec.key, range(rank, rank + count), WORKER, role=role)
        rank += count
    return scene, scene.decide(spec.key)


def volcano_job(*tasks: JSON, **spec: object) -> GangSpec:
    document = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": tasks} | spec}
    found = volcanojob.spec(msgspec.convert(document, volcanojob.Job))
    assert found is not None
    return found


def test_so_many_partitions_start_as_the_job_needs() -> None:
    #  four partitions of three, two needed, seven nodes
    policy = {"totalPartitions": 4, "partitionSize": 3, "minPartitions": 2}
    policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    spec = volcano_job({"name": "worker", "replicas": 12, "partitionPolicy": policy})
    scene, plan = planned(
        """
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6 n7
        """,
        spec,
        ("worker", 12),
    )
    assert isinstance(plan, Plan)
    assert len(plan.pods) // 3 == 2
    racks = scene.racks_of(plan)
    assert (set(racks[:3]), set(racks[3:6])) in (({"a/r1"}, {"a/r2"}), ({"a/r2"}, {"a/r1"}))
