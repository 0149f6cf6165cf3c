"""When pods end that are being deleted, or whose gang gives way.

::

    a/r1   n1  n2  n3  n4     8 GPUs each
"""

from dataclasses import replace

import pytest
from support.clusters.builders import pod_class
from support.clusters.scene import Scene

from muster.cluster.ids import GangKey
from muster.queueing.backfill.expectedends import Going, certain_ends

NOW = 1_000.0


@pytest.fixture
def scene() -> Scene:
    return Scene("a/r1 n1 n2 n3 n4")


def ends(scene: Scene, going: Going | None = None, slack: float = 0.0) -> list[tuple[object, ...]]:
    """Return what is certain to end: when, the nodes, the gang, and whether it is late."""
    snapshot = scene.state.snapshot()
    found = certain_ends(snapshot, NOW, going or {}, slack)
    nodes = snapshot.pods.node
    return [
        (
            one.at,
            [snapshot.nodes.name(int(nodes[row])) for row in one.rows],
            one.gang,
            one.is_overrun,
        )
        for one in found
    ]


def kill(scene: Scene, gang: GangKey, *times: float) -> None:
    """Delete the first members of a gang."""
    for uid, by in zip(scene.state.members(gang), times, strict=False):
        scene._apply(replace(scene._pods[uid], terminating=True, ends_by=by))


def test_pods_that_are_deleted_end_when_they_are_killed(scene: Scene) -> None:
    for node, by in (("n1", 1_020.0), ("n2", 1_300.0), ("n3", 1_020.0)):
        kill(scene, scene.alone(f"on-{node}", node), by)
    assert ends(scene) == [
        (1_020.0, ["n1", "n3"], None, False),
        (1_300.0, ["n2"], None, False),
    ]


def test_deleted_members_of_one_gang_end_together(scene: Scene) -> None:
    kill(scene, scene.crew("g", ["n1", "n2", "n3"]), 1_020.0, 1_300.0)
    assert ends(scene) == [(1_300.0, ["n1", "n2"], None, False)]


def test_where_it_is_not_known_when_they_are_killed_they_count_as_gone(scene: Scene) -> None:
    kill(scene, scene.crew("g", ["n1"]), 0.0)
    assert ends(scene) == [(NOW, ["n1"], None, False)]


@pytest.mark.parametrize(
    ("killed", "slack", "at", "is_late"),
    [
        (NOW - 10, 0.0, NOW + 60, True),
        (NOW - 10, 30.0, NOW + 20, False),
        (NOW - 40, 30.0, NOW + 60, True),
        (NOW - 900, 30.0, NOW + 900, True),
    ],
)
def test_who_is_there_after_it_was_killed_is_late(
    scene: Scene, killed: float, slack: float, at: float, *, is_late: bool
) -> None:
    kill(scene, scene.crew("g", ["n1"]), killed)
    assert ends(scene, slack=slack) == [(at, ["n1"], None, is_late)]


def test_a_gang_that_gives_way_ends_after_its_longest_grace_period(scene: Scene) -> None:
    crew = scene.crew("g", ["n1", "n2"], like=replace(pod_class(8), grace_seconds=600))
    assert ends(scene, {crew: ()}) == [(NOW + 600, ["n1", "n2"], crew, False)]


def test_once_its_pods_are_deleted_it_ends_when_the_last_one_is_killed(scene: Scene) -> None:
    crew = scene.crew("g", ["n1", "n2"], like=replace(pod_class(8), grace_seconds=600))
    kill(scene, crew, 1_400.0)
    assert ends(scene, {crew: ()}) == [(NOW + 600, ["n2", "n1"], crew, False)], "not all yet"
    kill(scene, crew, 1_400.0, 1_500.0)
    assert ends(scene, {crew: ()}) == [(1_500.0, ["n1", "n2"], crew, False)]


def test_of_a_gang_that_others_can_spare_the_members_that_go_end(scene: Scene) -> None:
    crew = scene.crew("g", ["n1", "n2", "n3"])
    first, second, _ = scene.state.members(crew)
    kill(scene, crew, 1_010.0)
    assert ends(scene, {crew: (second,)}) == [
        (1_010.0, ["n1"], None, False),
        (NOW + 30, ["n2"], crew, False),
    ]
    assert ends(scene, {crew: (first, second)}) == [(NOW + 30, ["n2", "n1"], crew, False)]
