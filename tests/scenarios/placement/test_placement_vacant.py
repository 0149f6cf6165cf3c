"""Members without an index of their own: successors take over the ranks of those that were lost.

::

    block a ─┬─ rack r1 ── n1 n2 n3        (8 GPUs each)
             └─ rack r2 ── n4 n5 n6
"""

from dataclasses import replace

import pytest
from support.clusters.scene import BLOCK, GATE, pod_class
from support.clusters.standby import Standby

from muster.cluster.events import PlanNote, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.podconstraints import LabelSet
from muster.placement.decision import Plan


@pytest.fixture
def scene() -> Standby:
    return Standby("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
    """)


def unranked(scene: Standby, key: GangKey, count: int) -> list[PodUid]:
    """Create gated members that nobody numbered, as a plain Job's pods are."""
    made = []
    for _ in range(count):
        uid = scene._uid()
        made.append(uid)
        scene._apply(
            PodUpserted(
                uid=uid,
                namespace="ns",
                name=f"g-{uid[-1]:03}",
                pod_class=pod_class(),
                labels=LabelSet("ns", ()),
                gates=frozenset({GATE}),
                gang=key,
                managed=True,
                owned=True,
            )
        )
    return made


def ranks(scene: Standby, key: GangKey) -> dict[int, str]:
    """Plan and bind as the extender does, the plan's annotation on each pod; return rank → node."""
    plan = scene.ask(key)
    assert isinstance(plan, Plan)
    held = scene.as_held(plan)
    scene.state.apply(held, now=0.0)
    for each in held.assignments:
        told = PlanNote("plan", each.node, rank=each.rank)
        pod = replace(scene._pods[each.uid], node=each.node, gates=frozenset(), plan=told)
        scene._apply(pod)
    scene.state.validate()
    return {each.rank: each.node for each in held.assignments}


def test_successors_take_over_the_ranks_that_were_lost_and_their_racks(scene: Standby) -> None:
    key = scene.gang("g", 4, members=0, required_level=BLOCK)
    for node in ("n3", "n6"):
        scene.run(node)
    unranked(scene, key, 4)
    first = ranks(scene, key)
    assert sorted(first) == [0, 1, 2, 3]
    racks = {rank: scene.rack_of(node) for rank, node in first.items()}
    assert racks[0] == racks[1] != racks[2] == racks[3]
    by_rank = {
        int(scene.snapshot.pods.rank[row]): scene.snapshot.pods.uid(row)
        for row in scene.view(key).bound.tolist()
    }
    for rank in (1, 2):
        scene.end(by_rank[rank])
    unranked(scene, key, 2)
    again = ranks(scene, key)
    assert sorted(again) == [1, 2]
    assert {rank: scene.rack_of(node) for rank, node in again.items()} == {
        rank: racks[rank] for rank in (1, 2)
    }


def test_members_that_nobody_numbered_and_muster_did_not_plan_leave_no_vacant_rank(
    scene: Standby,
) -> None:
    key = scene.gang("g", 2, members=0)
    scene.run("n1", gang=key)
    unranked(scene, key, 1)
    assert sorted(ranks(scene, key)) == [1]
