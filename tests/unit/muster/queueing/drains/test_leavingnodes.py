"""Which nodes leave, and from when on gangs end there without another place.

::

    a/r1   n1  n2  n3  n4
"""

import pytest
from support.clusters.scene import Scene

from muster.cluster.specs.podconstraints import Taint, TaintEffect
from muster.queueing.drains.leavingnodes import LeavingNode, leaving_nodes
from muster.queueing.drains.notices import CLOUD_CONDITIONS, CLOUD_TAINTS, Notice

ASKED = Notice("muster.dev/drain", "it is drained", has_deadline=True)
SPOT = Notice("spot", "it is interrupted", 120.0)
LATER = Notice("maintenance", "maintenance")
ALL = (ASKED, SPOT, LATER)


def taint(key: str, value: str = "") -> Taint:
    return Taint(key, value, TaintEffect.NO_SCHEDULE)


def leaving(scene: Scene, since: float = 0.0) -> tuple[LeavingNode, ...]:
    found = leaving_nodes(scene.state.snapshot(), ALL, lambda _node, _key: since)
    scene.state.validate()
    return found


@pytest.fixture
def scene() -> Scene:
    return Scene("a/r1 n1 n2 n3 n4")


def test_only_nodes_with_a_taint_that_says_so_leave_by_name(scene: Scene) -> None:
    scene.node("n3", block="a", rack="r1", taints=(taint("muster.dev/drain"),))
    scene.node("n2", block="a", rack="r1", taints=(taint("nvidia.com/gpu"),))
    scene.node("n1", block="a", rack="r1", taints=(taint("other"), taint("spot")))
    assert [(node.name, node.why) for node in leaving(scene)] == [
        ("n1", "it is interrupted"),
        ("n3", "it is drained"),
    ]


def test_a_node_that_is_gone_leaves_no_more(scene: Scene) -> None:
    scene.node("n1", taints=(taint("spot"),))
    scene.alone("pod", "n1")
    scene.remove_node("n1")
    assert leaving(scene) == ()


@pytest.mark.parametrize(
    ("key", "value", "until"),
    [
        ("muster.dev/drain", "", None),
        ("muster.dev/drain", "1764325000", 1764325000.0),
        ("muster.dev/drain", "soon", None),
        ("muster.dev/drain", "9" * 40, None),
        ("muster.dev/drain", "9" * 12, None),
        ("muster.dev/drain", "253402300799", 253402300799.0),
        ("spot", "1764325000", 1090.0),  # 120 s from its notice on, 30 s before that
        ("maintenance", "", None),
    ],
)
def test_until_when_gangs_may_stay(scene: Scene, key: str, value: str, until: float | None) -> None:
    scene.node("n1", taints=(taint(key, value),))
    [node] = leaving(scene, since=1000.0)
    assert node.until == until


@pytest.mark.parametrize(
    ("key", "value", "grace", "due"),
    [
        ("spot", "", 10, 1090.0),  # never later than for the default grace period
        ("spot", "", 50, 1070.0),
        ("spot", "", 600, 520.0),  # so at once
        ("muster.dev/drain", "5000", 600, 5000.0),  # it says when gangs end
        ("maintenance", "", 600, None),
    ],
)
def test_gangs_that_take_longer_to_end_end_sooner(
    scene: Scene, key: str, value: str, grace: int, due: float | None
) -> None:
    scene.node("n1", taints=(taint(key, value),))
    [node] = leaving(scene, since=1000.0)
    assert node.due(grace) == due


def test_a_later_deadline_does_not_hide_when_the_node_is_gone(scene: Scene) -> None:
    scene.node("n1", taints=(taint("muster.dev/drain", "1080"), taint("spot")))
    [node] = leaving(scene, since=1000.0)
    assert (node.until, node.due(30), node.due(90)) == (1080.0, 1080.0, 1030.0)


def test_of_several_notices_the_most_urgent_counts(scene: Scene) -> None:
    taints = (taint("maintenance"), taint("muster.dev/drain", "5000"), taint("spot"))
    scene.node("n1", taints=taints)
    [node] = leaving(scene, since=1000.0)
    assert (node.until, node.why) == (1090.0, "it is interrupted")


def test_a_notice_shorter_than_the_lead_is_due_at_once(scene: Scene) -> None:
    scene.node("n1", taints=(taint("spot"),))
    short = (Notice("spot", "", 20.0),)
    [node] = leaving_nodes(scene.state.snapshot(), short, lambda _node, _key: 1000.0)
    assert node.until == 1000.0


def test_what_is_known_of_clouds_names_each_notice_once() -> None:
    keys = [notice.key for notice in (*CLOUD_TAINTS, *CLOUD_CONDITIONS)]
    assert len(set(keys)) == len(keys)
    assert all(notice.seconds is None or notice.seconds >= 0 for notice in CLOUD_TAINTS)
