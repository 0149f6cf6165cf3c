"""Jobs that wait suspended: when each is resumed, with how many pods, and what its author sees."""

import copy
from datetime import datetime

import msgspec
import pytest
from support.extenders.suspendedworld import Api, World

from extender.reservations import suspendedjobs
from extender.reservations.priorityclasses import FRESH_S, PriorityClass
from extender.reservations.suspendedjobs import ARRIVE_S, NOT_RESUMED, RESUMED, WAITING
from muster.cluster.events import Tick
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names, wire

FULL = "it asks for 16 nvidia.com/gpu, and queue muster/q has 8 nvidia.com/gpu left"


async def _world(*jobs: tuple[str, int], api: Api | None = None) -> World:
    """An extender that has seen these jobs, one after the other."""
    world = World(api or Api())
    for name, pods in jobs:
        world.api.create(name, pods)
        world.see(name)
    await world.settled()
    return world


def _outcomes(world: World) -> dict[str, float]:
    samples = next(iter(world.metrics.resumed_jobs.collect())).samples
    return {s.labels["outcome"]: s.value for s in samples if s.name.endswith("_total")}


async def test_of_two_jobs_with_room_for_one_the_first_is_resumed_and_the_other_told_once() -> None:
    world = await _world(("a", 2), ("b", 2))
    await world.settled()
    assert world.api.running() == {"a": 2}
    (resumed,) = (each for each in world.recorder.about_jobs if each[1] == RESUMED)
    assert resumed == ("a", RESUMED, "all of its 2 pods have room")
    (waiting,) = (each for each in world.recorder.about_jobs if each[1] == WAITING)
    assert waiting[0] == "b"
    assert FULL in waiting[2]


async def test_a_job_takes_the_room_that_its_rows_held_and_no_other_gets_it_meanwhile() -> None:
    world = await _world(("a", 3), ("b", 1))
    while world.pod("a"):
        world.see("a")
        await world.settled()
        assert world.api.running() == {"a": 3}
    (left,) = world.rows.reserved
    assert world.state.gang_of(left) == "job/ns/b"


async def test_a_job_whose_pods_do_not_come_gives_its_room_up() -> None:
    world = await _world(("a", 3), ("b", 1))
    world.see("a")
    world.pod("a")
    world.api.now += ARRIVE_S - 1
    await world.settled()
    assert world.api.running() == {"a": 3}

    world.api.now += 1
    await world.settled()

    assert world.api.running() == {"a": 3, "b": 1}
    assert _outcomes(world) == {"resumed": 2, "late": 1}


async def test_room_is_kept_for_as_long_as_pods_come_however_slowly() -> None:
    world = await _world(("a", 3), ("b", 1))
    world.see("a")
    for _ in range(3):
        world.api.now += ARRIVE_S - 1
        world.engine.apply(Tick(128))
        mine = [uid for uid in world.rows.reserved if world.state.gang_of(uid) == "job/ns/a"]
        assert all(world.state.hold(uid) for uid in mine)
        await world.settled()
        assert world.api.running() == {"a": 3}
        assert world.pod("a")


async def test_pods_that_come_all_at_once_get_the_places_of_their_rows() -> None:
    world = await _world(("z", 3))
    world.api.create("a", 1)  # goes first by its name
    world.see("a")
    await world.settled()
    places = {_node(world, uid) for uid in world.rows.reserved} - {""}
    world.see("z")
    while world.pod("z"):
        pass
    world.node("new")  # every gang that waits is looked at again
    await world.settled()
    assert world.api.running() == {"z": 3}
    assert {_node(world, uid) for uid in world.released} == places
    assert len(world.released) == len(places) == 3


def _node(world: World, uid: PodUid) -> str:
    hold = world.state.hold(uid)
    return "" if hold is None else hold.node


async def test_members_of_a_smaller_job_go_before_others_though_the_watch_of_jobs_is_late() -> None:
    world = await _world(("a", 1))
    world.api.create("b", 3, 1)
    world.see("b")
    older = copy.deepcopy(world.api.jobs["b"])
    await world.settled()
    assert world.api.running() == {"a": 1, "b": 2}
    world.jobs.upserted(msgspec.convert(older, world.jobs.resource.type))
    world.pod("b")
    world.api.create("c", 1)
    world.see("c")
    await world.settled()
    assert world.api.running() == {"a": 1, "b": 2}


async def test_after_a_restart_jobs_that_were_resumed_go_before_those_that_wait() -> None:
    api = Api()
    await _world(("z", 2), api=api)
    api.create("a", 3)  # goes first by its name
    for pods in range(3):
        world = await _world(api=api)
        await world.settled()
        assert api.running() == {"z": 2}
        assert len(world.rows.reserved) == 3 + 2 - pods
        assert world.pod("z") == (pods < 2)


async def test_the_class_of_a_template_decides_about_its_turn() -> None:
    def named(name: str, value: int, *, default: bool = False) -> PriorityClass:
        return PriorityClass(wire.ObjectMeta(name=name), value=value, global_default=default)

    api = Api(classes=[named("high", 10), named("usual", 5, default=True), named("low", 1)])
    world = World(api)
    for name, priority in (("a", "low"), ("b", ""), ("c", "high")):
        api.create(name, 3, priority=priority)
        world.see(name)
    for expected in "cba":
        await world.settled()
        assert list(api.running()) == [expected]
        world.delete(expected)


async def test_classes_are_listed_again_after_a_while() -> None:
    api = Api()
    world = await _world(("full", 3), api=api)
    api.classes = [PriorityClass(wire.ObjectMeta(name="new"), value=7)]
    api.now += FRESH_S
    api.create("a", 3)
    api.create("b", 3, priority="new")
    for name in "ab":
        world.see(name)
    await world.settled()
    world.delete("full")
    await world.settled()
    assert list(api.running()) == ["b"]


async def test_a_job_whose_resumption_was_not_answered_keeps_its_room() -> None:
    api = Api(mood=["unanswered"])
    world = await _world(("a", 3), ("b", 1), api=api)
    for _ in range(3):
        api.now += 1.0
        await world.settled()
        assert api.running() == {"a": 3}
    assert _outcomes(world) == {"resumed": 1}


async def test_a_refused_smaller_job_waits_for_room_for_all_of_its_pods() -> None:
    world = await _world(("a", 1))
    world.api.mood = ["refused"]
    world.api.create("b", 3, 1)
    world.see("b")
    await world.settled()
    world.see("b")
    await world.settled()
    assert world.api.running() == {"a": 1}

    world.delete("a")
    await world.settled()

    assert world.api.running() == {"b": 3}


async def test_a_job_that_cannot_be_resumed_is_told_and_left_until_it_changes() -> None:
    api = Api(mood=["refused"])
    world = await _world(("a", 2), ("b", 2), api=api)
    assert api.running() == {"b": 2}
    (told,) = (each for each in world.recorder.about_jobs if each[1] == NOT_RESUMED)
    assert told[0] == "a"
    assert told[2].endswith("not with so few")
    world.delete("b")
    await world.settled()
    assert api.running() == {}

    api.jobs["a"]["spec"]["parallelism"] = 1
    world.see("a")
    await world.settled()

    assert api.running() == {"a": 1}


async def test_a_job_that_its_author_resumes_is_left_to_its_pods() -> None:
    world = await _world(("a", 3), ("b", 2))
    mine = world.api.jobs["b"]
    mine["spec"]["suspend"] = False
    assert world.pod("b")  # before the watch of jobs shows it
    await world.settled()
    world.see("b")
    assert world.pod("b")
    await world.settled()
    assert len(world.suspended) == 1
    assert (
        world.state.lack_of_members(next(k for k in world.state.gangs() if k.endswith("b"))) is None
    )
    assert names.RESUMED_AT not in mine["metadata"]["annotations"]


async def test_a_job_that_grows_while_it_waits_is_resumed_as_it_is_then() -> None:
    world = await _world(("a", 3), ("b", 1))
    world.api.jobs["b"]["spec"] |= {"parallelism": 2, "completions": 2}
    world.see("b")
    await world.settled()
    world.delete("a")
    await world.settled()
    assert world.api.running() == {"b": 2}
    assert len(world.rows.reserved) == 2


async def test_after_a_restart_only_jobs_that_were_resumed_lately_get_rows_again() -> None:
    api = Api()
    await _world(("a", 2), api=api)
    fresh = await _world(api=api)
    assert len(fresh.rows.reserved) == 2

    api.now += ARRIVE_S
    late = await _world(api=api)

    assert len(late.rows.reserved) == 0
    when = datetime.fromisoformat(api.jobs["a"]["metadata"]["annotations"][names.RESUMED_AT])
    assert when.utcoffset() is not None


async def test_a_job_that_no_rows_can_be_made_of_stops_no_other() -> None:
    world = World(Api())
    translator = world.suspended._translator
    world.suspended._translator = None  # type: ignore[assignment]
    world.api.create("a", 1)
    world.see("a")
    await world.settled()
    world.suspended._translator = translator
    world.api.create("b", 1)
    world.see("b")
    await world.settled()
    assert world.api.running() == {"b": 1}


async def test_a_namespace_has_so_many_rows_and_its_other_jobs_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suspendedjobs, "MOST_ROWS", 4)
    world = await _world(("a", 3), ("b", 2), ("c", 2))
    assert world.api.running() == {"a": 3}
    assert len(world.rows.reserved) == 3
    for name in "abc":
        assert world.api.running() == {name: 2 + (name == "a")}
        world.delete(name)
        await world.settled()
    assert len(world.rows.reserved) == 0


@pytest.mark.parametrize(("gated_at", "first"), [("02:59", "gated"), ("03:01", "a")])
async def test_suspended_jobs_and_gated_gangs_wait_in_one_line(gated_at: str, first: str) -> None:
    world = await _world(("full", 3))
    for name in ("a", "gated"):
        world.api.create(name, 3)
    job = world.api.jobs["gated"]
    job["spec"]["suspend"] = False
    job["metadata"] |= {"creationTimestamp": f"2026-01-02T{gated_at}:00Z", "annotations": {}}
    for name in ("a", "gated"):
        world.see(name)
    while world.pod("gated"):
        pass
    await world.settled()
    world.delete("full")
    await world.settled()

    assert ("a" in world.api.running()) == (first == "a")
    view = world.state.gang(GangKey("job/ns/gated"))
    assert view is not None
    assert len(view.assumed) == (3 if first == "gated" else 0)
