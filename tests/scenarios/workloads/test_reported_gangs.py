"""What users of other gang schedulers reported, as what must hold here.

The numbers are those of the reports.
"""

import math

import pytest
from support.clusters.scene import RACK, Scene, pod_class
from support.dialects.kinds import VOLCANO, cluster_with, create, described, member
from support.extenders.extenders import PODS, plan_of

from muster.placement.decision import Plan, Wait


async def test_of_two_pod_groups_of_all_the_nodes_one_goes_whole_and_the_other_holds_nothing() -> (
    None
):
    """volcano#3373: both were placed in part, and neither ran. Here on five nodes."""
    async with cluster_with([(VOLCANO, "PodGroup")]) as cluster:
        for group in ("one", "other"):
            await create(cluster.api, described(VOLCANO, "PodGroup", group, {"minMember": 5}))
        for n in range(5):
            for group in ("one", "other"):
                keys = {"scheduling.k8s.io/group-name": group}
                await cluster.api.create(PODS, member(f"{group}-{n}", annotations=keys))
        await cluster.settled()
        released = {
            group: sum([plan_of(await cluster.pod(f"{group}-{n}")) is not None for n in range(5)])
            for group in ("one", "other")
        }
        assert sorted(released.values()) == [0, 5]


def test_a_hundred_sub_groups_on_a_thousand_nodes_are_each_in_a_rack_of_their_own() -> None:
    """volcano#4899: 100 tier-1 groups of ten nodes, 1,000 pods in 100 sub-groups of ten."""
    racks = "\n".join(
        f"a/r{r:03} {' '.join(f'n{r:03}-{n}' for n in range(10))}" for r in range(100)
    )
    scene = Scene(racks)
    key = scene.gang("g", 1000, slice_size=10, slice_level=RACK)
    plan = scene.place(key)
    racks_of = scene.racks_of(plan)
    for start in range(0, 1000, 10):
        assert len(set(racks_of[start : start + 10])) == 1
    assert len(set(racks_of)) == 100


def test_a_node_with_one_pod_slot_takes_one_of_two_members_of_different_kinds() -> None:
    """kueue#11287: two pod sets of one pod each were both counted on a node for one pod."""
    scene = Scene("")
    scene.node("n1", block="a", rack="r1", allocatable={"pods": 1})
    key = scene.gang("g", 2, gpu=1, members=0)
    scene.members(key, range(1), pod_class(1), role="leader")
    scene.members(key, range(1, 2), pod_class(2), role="worker")
    assert isinstance(scene.decide(key), Wait)
    scene.node("n2", block="a", rack="r1", allocatable={"pods": 1})
    assert isinstance(scene.decide(key), Plan)


def test_the_node_of_a_pod_that_is_still_terminating_is_not_free() -> None:
    """kueue#10076: the job had finished, its pods had not, and the next gang was admitted."""
    scene = Scene("a/r1 n1 n2")
    leaving = scene.run("n1", terminating=True)
    key = scene.gang("g", 2)
    assert isinstance(scene.decide(key), Wait)
    scene.end(leaving)
    assert isinstance(scene.decide(key), Plan)


@pytest.mark.parametrize("pods", [72, 150])
def test_many_pods_without_any_wish_leave_whole_racks_free(pods: int) -> None:
    """kueue#10406: 33 racks of 18 nodes with 4 GPUs; single-GPU pods went everywhere."""
    racks = "\n".join(
        f"a/r{r:02} {' '.join(f'n{r:02}-{n:02}:4' for n in range(18))}" for r in range(33)
    )
    scene = Scene(racks)
    used: set[str] = set()
    for number in range(pods):
        plan = scene.place(scene.gang(f"p{number}", 1, gpu=1))
        scene.hold(plan)
        used |= set(scene.racks_of(plan))
    assert len(used) == math.ceil(pods / (18 * 4))
