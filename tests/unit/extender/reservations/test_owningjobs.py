"""RayJobs and TrainJobs that wait suspended, and the objects that they make, in any order.

::

    RayJob ──► RayCluster of a new name ──► pods     TrainJob ──► JobSet, suspended with it ──► pods
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.extenders.suspendedworld import Api, World

from extender.reservations.suspendedjobs import ARRIVE_S, RESUMED
from extender.reservations.suspendedrows import members
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.kube import names, wire

KINDS = ["RayJob", "TrainJob"]


async def _world(kind: str, *jobs: tuple[str, int], api: Api | None = None) -> World:
    """An extender that has seen these jobs, and what they have made, one after the other."""
    world = World(api or Api())
    for name, pods in jobs:
        world.api.create(name, pods, kind=kind)
        world.see(name)
        world.see_made(name)
    await world.settled()
    return world


def _gang(world: World, name: str) -> GangKey:
    """The gang of a job's pods."""
    made = world.api.made[name]
    return GangKey(f"{made['kind'].lower()}/ns/{made['metadata']['name']}")


def _places(world: World) -> set[str]:
    """The nodes where rows have room."""
    holds = [world.state.hold(uid) for uid in world.rows.reserved]
    return {hold.node for hold in holds if hold is not None}


@pytest.mark.parametrize("kind", KINDS)
async def test_of_two_jobs_with_room_for_one_the_first_is_resumed_and_its_pods_take_its_room(
    kind: str,
) -> None:
    world = await _world(kind, ("a", 2), ("b", 2))
    assert world.api.running() == {"a": 2}
    (told,) = (each for each in world.recorder.about_jobs if each[1] == RESUMED)
    assert told == ("a", RESUMED, "all of its 2 pods have room")
    world.see("a")
    world.see_made("a")
    mine = _places(world)
    while world.pod("a"):
        await world.settled()
        assert world.api.running() == {"a": 2}
    assert {world.state.hold(uid).node for uid in world.released} == mine  # type: ignore[union-attr]
    assert len(mine) == 2

    world.delete("a")
    await world.settled()

    assert world.api.running() == {"b": 2}


@pytest.mark.parametrize("pods_first", [False, True])
async def test_a_rayjob_keeps_its_room_though_its_pods_are_in_a_gang_of_a_new_name(
    *, pods_first: bool
) -> None:
    world = await _world("RayJob", ("a", 3), ("b", 1))
    places = _places(world)
    assert world.state.gang(GangKey("rayjob/ns/a")) is not None
    if pods_first:  # the watches of RayJobs and RayClusters are late
        assert world.pod("a")
        assert world.pod("a")
        await world.settled()
    world.see_made("a")
    world.see("a")
    await world.settled()
    assert _places(world) | {world.state.hold(uid).node for uid in world.released} == places  # type: ignore[union-attr]
    rows = {world.state.gang_of(uid) for uid in world.rows.reserved}
    assert rows == {_gang(world, "a"), "rayjob/ns/b"}
    assert world.state.gang(GangKey("rayjob/ns/a")) is None
    while world.pod("a"):
        await world.settled()
    assert world.api.running() == {"a": 3}
    assert len(world.released) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pods", range(4))
async def test_after_a_restart_jobs_that_were_resumed_keep_the_room_of_pods_that_have_not_come(
    kind: str, pods: int
) -> None:
    api = Api()
    world = await _world(kind, ("z", 3), api=api)
    for _ in range(pods):
        world.pod("z")
    api.create("a", 3, kind=kind)  # goes first by its name
    fresh = World(api)
    await fresh.settled()
    await fresh.settled()
    assert api.running() == {"z": 3}
    mine = {uid for uid in fresh.rows.reserved if fresh.state.gang_of(uid) != "rayjob/ns/a"}
    assert len(mine - {u for u in mine if fresh.state.gang_of(u) == "jobset/ns/a"}) == 3 - pods


async def test_after_a_restart_before_its_cluster_is_there_a_rayjob_keeps_its_room() -> None:
    api = Api()
    await _world("RayJob", ("z", 3), api=api)
    api.create("a", 3, kind="RayJob")
    world = World(api, makes=False)
    await world.settled()
    assert len(_places(world)) == 3
    world.see("z")
    await world.settled()
    assert len(_places(world)) == 3
    gang = world.state.gang(GangKey("rayjob/ns/z"))
    assert gang is not None
    assert gang.spec is not None
    world.see_made("z")
    while world.pod("z"):
        await world.settled()
    assert api.running() == {"z": 3}
    assert len(world.released) == 3


async def test_the_room_of_a_row_goes_to_one_of_its_role_in_whatever_order_they_come() -> None:
    world = await _world("RayJob", ("a", 3))
    (entry,) = world.suspended._entries.values()

    def nodes() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for uid, (_, role) in entry.rows.items():
            hold = world.state.hold(uid)
            found.setdefault(role, []).append("" if hold is None else hold.node)
        return {role: sorted(each) for role, each in found.items()}

    before = nodes()
    spec = replace(entry.job.spec, key=GangKey("raycluster/ns/a-x"), name="a-x")
    parts = world.suspended._translator, world.suspended._priorities
    rows = list(members(replace(entry.job, spec=spec), *parts))
    world.feed.gang_object("x", spec)
    world.suspended._room.move(entry, spec, rows[::-1])
    assert {role: len(each) for role, each in before.items()} == {"headgroup": 1, "w": 2}
    assert nodes() == before


async def test_a_cluster_that_comes_while_rows_are_entered_has_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api()
    await _world("RayJob", ("z", 3), api=api)
    api.create("a", 1, kind="RayJob")
    world = World(api, makes=False)

    async def breathe(_: Pace) -> None:
        if not api.made:
            world.see_made("z")

    monkeypatch.setattr(Pace, "breathe", breathe)
    await world.settled()
    assert {world.state.gang_of(uid) for uid in world.rows.reserved} == {
        _gang(world, "z"),
        "rayjob/ns/a",
    }
    assert len(_places(world)) == 3
    while world.pod("z"):
        await world.settled()
    assert api.running() == {"z": 3}
    assert len(world.released) == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_whose_pods_do_not_come_gives_its_room_up(kind: str) -> None:
    world = await _world(kind, ("a", 3), ("b", 1))
    world.see("a")
    world.api.now += ARRIVE_S
    await world.settled()
    assert world.api.running() == {"a": 3, "b": 1}
    assert world.state.gang(GangKey("rayjob/ns/a")) is None


async def test_a_trainjob_waits_until_its_jobset_says_what_it_will_make() -> None:
    world = World(Api())
    world.api.create("a", 2, kind="TrainJob")
    world.see("a")
    await world.settled()
    assert world.api.running() == {}
    world.see_made("a")
    await world.settled()
    assert world.api.running() == {"a": 2}


async def test_a_jobset_that_is_seen_first_waits_for_its_trainjob() -> None:
    world = World(Api())
    world.api.create("a", 2, kind="TrainJob")
    world.see_made("a")
    await world.settled()
    assert world.api.running() == {}
    world.see("a")
    await world.settled()
    assert world.api.running() == {"a": 2}


async def test_a_trainjob_that_somebody_else_suspended_is_not_resumed() -> None:
    world = World(Api())
    world.api.create("a", 2, kind="TrainJob")
    del world.api.jobs["a"]["metadata"]["annotations"][names.SUSPENDED_BY]
    for _ in range(2):
        world.see("a")
        world.see_made("a")
        await world.settled()
    assert world.api.running() == {}
    assert world.suspended._owned.made(world.api.jobs["a"]["metadata"]["uid"]) is None


async def test_a_trainjob_whose_jobset_is_deleted_waits_for_the_next_one() -> None:
    world = await _world("TrainJob", ("a", 3), ("b", 1))
    made = world.api.made.pop("b")
    world.kinds["jobsets"].gone(_meta(made))
    assert {world.state.gang_of(uid) for uid in world.rows.reserved} == {"jobset/ns/a"}
    world.delete("a")
    await world.settled()
    assert world.api.running() == {}
    world.see_made("b")
    await world.settled()
    assert world.api.running() == {"b": 1}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_that_is_suspended_again_waits_until_its_pods_have_gone(kind: str) -> None:
    world = await _world(kind, ("a", 3))
    world.see("a")
    world.see_made("a")
    while world.pod("a"):
        pass
    await world.settled()
    job = world.api.jobs["a"]
    job["spec"]["suspend"] = True
    job["metadata"]["annotations"] = {names.SUSPENDED_BY: names.MUSTER}
    world.see("a")
    if kind == "RayJob":  # KubeRay deletes the cluster, then its pods go
        gone = world.api.made.pop("a")
        world.kinds["rayclusters"].gone(_meta(gone))
    world.see_made("a")
    await world.settled()
    assert world.api.running() == {}
    assert not world.rows.reserved

    world.end_pods("a")
    await world.settled()

    assert world.api.running() == {"a": 3}


async def test_the_deadline_of_a_rayjob_is_that_of_its_cluster_whichever_is_seen_first() -> None:
    for cluster_first in (False, True):
        world = World(Api())
        world.api.create("a", 2, kind="RayJob")
        job = world.api.jobs["a"]
        job["spec"] |= {"suspend": False, "activeDeadlineSeconds": 90}
        job["metadata"]["annotations"] = {}
        for see in (world.see_made, world.see) if cluster_first else (world.see, world.see_made):
            see("a")
        while world.pod("a"):
            pass
        gang = world.state.gang(_gang(world, "a"))
        assert gang is not None
        assert gang.spec is not None
        assert gang.spec.max_run_time == 90.0


async def test_a_cluster_of_no_suspended_job_is_what_its_own_object_says() -> None:
    world = await _world("RayJob", ("full", 3))
    world.api.create("a", 2, kind="RayJob")
    job = world.api.jobs["a"]
    job["spec"]["suspend"], job["metadata"]["annotations"] = False, {}
    world.see("a")
    world.see_made("a")
    while world.pod("a"):
        pass
    await world.settled()
    view = world.state.gang(_gang(world, "a"))
    assert view is not None
    assert len(view.waiting) == 2


def _meta(found: dict[str, Any]) -> wire.ObjectMeta:
    return msgspec.convert(found["metadata"], wire.ObjectMeta)
