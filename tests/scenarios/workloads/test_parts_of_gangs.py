"""Parts of gangs as other schedulers' users write them, from the object to the plan.

Each test draws its racks: ``block/rack`` and its nodes of 8 GPUs; every member fills one.
"""

from typing import Any

import msgspec
from support.clusters.scene import BLOCK, RACK, Scene, pod_class

from muster.cluster.events import GangUpserted
from muster.cluster.specs.gangspec import GangSpec, number
from muster.placement.decision import Decision, Plan
from muster.workloads.dialects import kai, volcanojob
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


def numbered(drawing: str, spec: GangSpec, *parts: tuple[str, int]) -> tuple[Scene, Decision]:
    """Plan a gang with so many members of each role, each with the number that it gets."""
    scene = Scene(drawing)
    laid = resolve(spec, scene.state.snapshot().levels)
    scene.state.apply(GangUpserted(laid), now=0.0)
    for role, count in parts:
        numbers = [number(laid, role, index) for index in range(count)]
        scene.members(spec.key, numbers, WORKER, role=role)
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


def kai_group(*parts: JSON, **spec: object) -> GangSpec:
    document = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"subGroups": parts} | spec}
    found = kai.spec(msgspec.convert(document, kai.PodGroup))
    assert found is not None
    return found


def part(name: str, minimum: int, level: str = "", parent: str = "") -> JSON:
    made: JSON = {"name": name, "minMember": minimum}
    if level:
        made["topologyConstraint"] = {"requiredTopologyLevel": level}
    return made | ({"parent": parent} if parent else {})


def test_a_part_with_a_level_of_its_own_shares_a_domain_and_the_others_need_not() -> None:
    #  four workers fit in r2 only; the router stands anywhere
    scene, plan = planned(
        """
        a/r1  n1 n2
        a/r2  n3 n4 n5 n6
        """,
        kai_group(part("router", 1), part("workers", 4, RACK)),
        ("router", 1),
        ("workers", 4),
    )
    assert isinstance(plan, Plan)
    assert scene.racks_of(plan) == ["a/r1", *["a/r2"] * 4]


def test_each_of_two_parts_has_a_domain_of_its_own() -> None:
    scene, plan = planned(
        """
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        """,
        kai_group(part("prefill", 3, RACK), part("decode", 3, RACK)),
        ("prefill", 3),
        ("decode", 3),
    )
    assert isinstance(plan, Plan)
    racks = scene.racks_of(plan)
    assert {*racks[:3]} != {*racks[3:]}
    assert len({*racks[:3]}) == len({*racks[3:]}) == 1


def test_parts_of_parts_lie_in_each_other() -> None:
    #  a block has room for one half, a rack for a quarter
    scene, plan = planned(
        """
        a/r1  n1 n2
        a/r2  n3 n4
        b/r3  n5 n6
        b/r4  n7 n8
        """,
        kai_group(
            part("one", 0, BLOCK), part("a", 2, RACK, "one"), part("b", 2, RACK, "one"),
            part("two", 0, BLOCK), part("c", 2, RACK, "two"), part("d", 2, RACK, "two"),
        ),
        *((name, 2) for name in "abcd"),
    )  # fmt: skip
    assert isinstance(plan, Plan)
    racks = scene.racks_of(plan)
    assert [racks[n] == racks[n + 1] for n in (0, 2, 4, 6)] == [True] * 4
    assert len({rack[0] for rack in racks[:4]}) == len({rack[0] for rack in racks[4:]}) == 1


def test_a_part_that_no_domain_holds_waits_though_the_members_fit() -> None:
    _, decision = planned(
        """
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        """,
        kai_group(part("router", 1), part("workers", 4, RACK)),
        ("router", 1),
        ("workers", 4),
    )
    assert not isinstance(decision, Plan)


def test_a_leader_beside_partitions_is_in_none_of_them() -> None:
    policy = {"partitionSize": 3, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    leader = {"name": "leader", "replicas": 1}
    scene, plan = planned(
        """
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        a/r3  n7
        """,
        volcano_job(leader, {"name": "worker", "replicas": 6, "partitionPolicy": policy}),
        ("leader", 1),
        ("worker", 6),
    )
    assert isinstance(plan, Plan)
    racks = scene.racks_of(plan)
    assert racks[0] == "a/r3"
    assert len({*racks[1:4]}) == len({*racks[4:]}) == 1


def test_parts_of_different_sizes_share_a_domain_each() -> None:
    #  two and four members; in turn they would be cut after the fourth
    scene, plan = numbered(
        """
        a/r1  n1 n2 n3 n4
        a/r2  n5 n6
        """,
        kai_group(part("prefill", 2, RACK), part("decode", 4, RACK)),
        ("prefill", 2),
        ("decode", 4),
    )
    assert isinstance(plan, Plan)
    homes = {
        scene.snapshot.pods.roles[scene.snapshot.pods.role[row]]: rack
        for row, rack in zip(plan.pods.tolist(), scene.racks_of(plan), strict=True)
    }
    assert homes == {"prefill": "a/r2", "decode": "a/r1"}


def test_more_members_of_a_part_than_it_needs_share_its_domain() -> None:
    #  the part needs two of its three members: all three in one rack, or the third waits
    scene, plan = numbered(
        """
        a/r1  n1 n2
        a/r2  n3 n4 n5
        """,
        kai_group(part("router", 1), part("workers", 2, RACK)),
        ("workers", 3),
        ("router", 1),
    )
    assert isinstance(plan, Plan)
    racks = dict(zip(plan.pods.tolist(), scene.racks_of(plan), strict=True))
    pods = scene.snapshot.pods
    assert (
        len({rack for row, rack in racks.items() if pods.roles[pods.role[row]] == "workers"}) == 1
    )


def test_the_member_of_a_part_beyond_what_it_needs_waits_where_its_domain_is_full() -> None:
    scene, plan = numbered(
        """
        a/r1  n1 n2
        a/r2  n3 n4
        """,
        kai_group(part("router", 1), part("workers", 2, RACK)),
        ("workers", 3),
        ("router", 1),
    )
    assert isinstance(plan, Plan)
    pods = scene.snapshot.pods
    roles = [pods.roles[pods.role[row]] for row in plan.pods.tolist()]
    assert sorted(roles) == ["router", "workers", "workers"]
    racks = {
        rack for role, rack in zip(roles, scene.racks_of(plan), strict=True) if role != "router"
    }
    assert len(racks) == 1
