"""A cluster of no nodes, as autoscalers leave it at night: every gang waits and is told why.

::

    (nothing)          or          block a ── rack r1 ── n1, and n1 goes
"""

import pytest
from support.clusters.scene import BLOCK, HOST, RACK, Scene, pod_class

from muster.placement.decision import Wait, WaitReason
from muster.placement.reasons.explanation import render


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("required", [None, BLOCK, RACK, HOST])
def test_a_gang_waits_for_the_first_node_whatever_it_requires(
    required: str | None,
    sliced: bool,  # noqa: FBT001  by keyword, from pytest
    mixed: bool,  # noqa: FBT001
    gone: bool,  # noqa: FBT001
) -> None:
    scene = Scene("a/r1 n1" if gone else "")
    if gone:
        scene.remove_node("n1")
    slices = {"slice_size": 2, "slice_level": HOST} if sliced else {}
    preferred = HOST if required == HOST else RACK  # a wider one than required says nothing
    wishes = {"required_level": required, "preferred_level": preferred} | slices
    gang = scene.gang("g", 4, members=2, **wishes)
    scene.members(gang, range(2, 4), pod_class(1) if mixed else pod_class(8))
    decision = scene.decide(gang)
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.NO_FEASIBLE_NODE
    assert render(decision)[-1] == "remedy: no node is there: add nodes"
