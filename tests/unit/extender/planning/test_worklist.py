"""Every waiting gang is looked at once per round, however often room is freed."""

from extender.engine import Engine
from extender.planning.worklist import WorkList
from muster.cluster.ids import GangKey
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

A, B, C = (GangKey(f"muster/ns/{name}") for name in "abc")


def nothing() -> WorkList:
    return WorkList(Engine(ClusterState("test", levels=("host",), gate=PLAN_GATE), lambda: 0.0))


def parked(*keys: GangKey) -> WorkList:
    work = nothing()
    for key in keys:
        work.park(key)
    return work


def test_a_parked_gang_is_left_alone_until_something_changes() -> None:
    assert not parked(A, B).open_round()


def test_freed_room_brings_every_parked_gang_back() -> None:
    work = parked(A, B)
    work.freed()
    assert work.open_round()
    assert work.todo == {A, B}
    assert not work.parked


def test_room_freed_during_a_round_waits_for_its_end() -> None:
    work = parked(A, B)
    work.freed()
    work.open_round()
    work.todo.discard(A)
    work.park(A)
    work.freed()
    assert work.open_round()
    assert work.todo == {B}, "B has not had its look yet"
    work.todo.discard(B)
    work.park(B)
    assert work.open_round()
    assert work.todo == {A, B}


def test_a_gang_that_changed_while_it_was_planned_is_not_parked() -> None:
    work = nothing()
    work.changed(A)
    work.todo.discard(A)
    work.changed(A)
    work.park(A)
    assert work.todo == {A}
    assert not work.parked


def test_a_change_takes_a_gang_out_of_the_parked_ones() -> None:
    work = parked(A)
    work.changed(A)
    assert work.todo == {A}
    assert not work.parked


def test_room_freed_before_a_gang_was_looked_at_is_no_reason_to_look_twice() -> None:
    work = nothing()
    work.freed()
    work.changed(C)
    assert work.open_round()
    work.todo.discard(C)
    work.park(C)
    assert not work.open_round()


def test_room_freed_while_the_only_gang_is_being_planned_is_not_lost() -> None:
    work = nothing()
    work.changed(C)
    work.open_round()
    work.todo.discard(C)
    work.freed()
    work.park(C)
    assert work.open_round()
    assert work.todo == {C}
