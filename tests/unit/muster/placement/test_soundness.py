"""What the last look at a plan finds.

::

    a/r1  n1 n2      b/r2  n3 n4      -/-  n5       (8 GPUs each)
"""

from dataclasses import replace

import numpy as np
import pytest
from support.clusters.scene import BLOCK, RACK, Scene

from muster.cluster.ids import GangKey
from muster.placement.decision import Plan
from muster.placement.soundness import breaches


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2
        b/r2  n3 n4
        -/-   n5
    """)


def moved(scene: Scene, key: GangKey, *nodes: str) -> tuple[str, ...]:
    """Return the breaches of a gang's plan with its members on other nodes."""
    plan = scene.place(key)
    rows = [scene.snapshot.nodes.row(name) for name in nodes]
    return breaches(scene.snapshot, replace(plan, nodes=np.array(rows, dtype=np.int32)), 0.0)


def test_a_plan_of_the_planner_has_none(scene: Scene) -> None:
    key = scene.gang("g", 4, required_level=BLOCK, slice_size=2, slice_level=RACK, gpu=4)
    assert breaches(scene.snapshot, scene.place(key), 0.0) == ()


def test_two_members_that_a_node_has_no_room_for(scene: Scene) -> None:
    (found,) = moved(scene, scene.gang("g", 2), "n1", "n1")
    assert found == "16 nvidia.com/gpu on node n1, 8 are free"


def test_members_outside_the_required_domain(scene: Scene) -> None:
    (found,) = moved(scene, scene.gang("g", 2, required_level=BLOCK), "n1", "n3")
    assert found == f"members are in several domains of {BLOCK}, one is required"


def test_members_on_a_node_without_the_required_label(scene: Scene) -> None:
    key = scene.gang("g", 2, required_level=BLOCK, gpu=4)
    assert moved(scene, key, "n5", "n5")


def test_a_preferred_level_while_it_is_still_required(scene: Scene) -> None:
    key = scene.gang("g", 2, preferred_level=RACK, relax_after=60.0)
    assert moved(scene, key, "n1", "n3")
    plan = scene.place(key)
    rows = [scene.snapshot.nodes.row(name) for name in ("n1", "n3")]
    apart = replace(plan, nodes=np.array(rows, dtype=np.int32))
    assert breaches(scene.snapshot, apart, 1e9) == ()


def test_a_slice_in_two_racks(scene: Scene) -> None:
    key = scene.gang("g", 4, slice_size=2, slice_level=RACK)
    assert moved(scene, key, "n1", "n3", "n2", "n4")
    assert not moved(scene, key, "n2", "n1", "n3", "n4")


def test_a_member_that_occurs_twice(scene: Scene) -> None:
    plan = scene.place(scene.gang("g", 2))
    twice: Plan = replace(plan, pods=plan.pods[[0, 0]])
    assert breaches(scene.snapshot, twice, 0.0) == ("a member occurs twice",)
