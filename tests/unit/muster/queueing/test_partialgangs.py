"""When a gang that runs in part is reported, and when it is taken down.

::

    a/r1  n1 n2 n3 n4      (8 GPUs each)
"""

from dataclasses import replace

import pytest
from support.clusters.scene import Scene

from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.queueing.partialgangs import (
    PartialTimeouts,
    Remedy,
    is_partial,
    is_whole,
    may_have_run,
    remedy,
    replaceable,
)

PATIENCE = PartialTimeouts(report_s=60.0, roll_back_s=600.0)


@pytest.fixture
def scene() -> Scene:
    return Scene("a/r1  n1 n2 n3 n4")


def half(scene: Scene, *, wait: bool = True) -> GangView:
    """Return a gang of 3 with two members bound; the third waits or does not exist."""
    gang = scene.gang("g", 3)
    uids = scene.bind(scene.place(gang))
    scene.end(uids[2])
    if wait:
        scene.members(gang, [2], scene.snapshot.classes[0])
    return view(scene, gang)


def view(scene: Scene, gang: GangKey) -> GangView:
    found = scene.snapshot.gang(gang)
    assert found is not None
    return found


def due(
    scene: Scene,
    gang: GangView,
    after: float,
    *,
    ran: bool = False,
    patience: PartialTimeouts = PATIENCE,
) -> Remedy:
    pods = scene.snapshot.pods
    return remedy(gang, pods, partial_s=after, ran=ran, patience=patience)


@pytest.mark.parametrize("wait", [True, False])
def test_a_partial_gang_is_left_alone_then_reported_then_rolled_back(
    scene: Scene, *, wait: bool
) -> None:
    gang = half(scene, wait=wait)
    assert is_partial(gang)
    assert due(scene, gang, 59.9) is Remedy.PATIENCE
    assert due(scene, gang, 60.0) is Remedy.REPORT
    assert due(scene, gang, 599.9) is Remedy.REPORT
    assert due(scene, gang, 600.0) is Remedy.ROLL_BACK


def test_one_that_ran_whole_is_only_ever_reported(scene: Scene) -> None:
    assert due(scene, half(scene), 1e9, ran=True) is Remedy.REPORT


def test_nothing_is_rolled_back_where_the_operator_does_not_want_it(scene: Scene) -> None:
    never = PartialTimeouts(report_s=0.0, roll_back_s=None)
    assert due(scene, half(scene), 1e9, patience=never) is Remedy.REPORT


def test_one_member_that_nobody_would_make_anew_keeps_all_of_them(scene: Scene) -> None:
    gang = half(scene)
    assert replaceable(gang, scene.snapshot.pods)
    scene.run("n4", gang=gang.key)
    gang = view(scene, gang.key)
    assert not replaceable(gang, scene.snapshot.pods)


def test_a_gang_whose_missing_member_is_planned_is_given_time(scene: Scene) -> None:
    gang = half(scene)
    scene.hold(scene.place(gang.key))
    assert due(scene, view(scene, gang.key), 1e9) is Remedy.REPORT


def test_whole_gangs_and_gangs_without_any_bound_member_are_no_partial_gangs(scene: Scene) -> None:
    waiting = scene.gang("waits", 2)
    assert not is_partial(view(scene, waiting))
    scene.bind(scene.place(waiting))
    assert is_whole(view(scene, waiting))
    assert not is_partial(view(scene, waiting))


def test_the_past_of_a_partial_gang_found_at_the_start_is_judged_by_its_first_binding(
    scene: Scene,
) -> None:
    gang = replace(half(scene), first_bound_at=1000.0)
    assert not may_have_run(gang, started_at=1600.0, patience=PATIENCE)
    assert may_have_run(gang, started_at=1600.1, patience=PATIENCE)


def test_one_that_ran_is_rolled_back_where_its_owner_says_that_it_restarts(scene: Scene) -> None:
    gang = half(scene)
    assert gang.spec is not None
    restarts = replace(gang, spec=replace(gang.spec, restarts=True))
    assert due(scene, restarts, 599.9, ran=True) is Remedy.REPORT
    assert due(scene, restarts, 600.0, ran=True) is Remedy.ROLL_BACK
