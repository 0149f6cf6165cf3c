"""Whatever happens, no more jobs are resumed than have room and quota, and each only once.

Jobs, RayJobs and TrainJobs of one to three pods, some of which take fewer, are created and deleted.
Their controllers take their time to make RayClusters, JobSets and pods; PATCHes are refused, or
their answers get lost; the extender starts anew at any moment, and sees objects in any order.
"""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.extenders.suspendedworld import QUOTA, Api, World

from extender.reservations.suspendedjobs import ARRIVE_S

job = st.sampled_from("abcde")
created = st.tuples(
    job,
    st.integers(1, 3),
    st.integers(0, 2),
    st.just(""),
    st.sampled_from(["Job", "RayJob", "TrainJob"]),
)
step = st.one_of(
    st.tuples(st.just("create"), created),
    st.tuples(st.just("create"), created),
    st.tuples(st.just("show"), job),
    st.tuples(st.just("made"), job),
    st.tuples(st.just("pod"), job),
    st.tuples(st.just("pods"), job),
    st.tuples(st.just("pod"), job),
    st.tuples(st.just("delete"), job),
    st.tuples(st.just("mood"), st.sampled_from(["refused", "unsent", "unanswered"])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("later"), st.none()),
)


def act(world: World, kind: str, what: Any) -> World:
    api = world.api
    match kind:
        case "create" if what[0] not in api.jobs:
            api.create(*what)
            world.see(what[0])
        case "show" | "made" if what in api.jobs:
            (world.see if kind == "show" else world.see_made)(what)
        case "pod":
            world.pod(what)
        case "pods":
            while world.pod(what):
                pass
        case "delete" if what in api.jobs:
            world.delete(what)
        case "mood":
            api.mood.append(what)
        case "restart":
            return World(api)
        case "later":
            api.now += 1.0
    return world


async def play(steps: list[tuple[str, Any]]) -> None:
    world = World(Api())
    api = world.api
    for kind, what in steps:
        world = act(world, kind, what)
        await world.settled()
        assert len(set(api.resumed)) == len(api.resumed)
        assert sum(api.running().values()) <= QUOTA
    await _all_end(world)


async def _all_end(world: World) -> None:
    """Every job that is left runs once those before it have ended; then nothing is left."""
    api = world.api
    api.mood.clear()
    for _ in range(3 * len(api.jobs) + 1):
        for name in list(api.jobs):
            world.see_made(name)
            world.see(name)
        api.now += 1.0
        await world.settled()
        for name in list(api.running()):
            world.delete(name)
        await world.settled()
    assert all(job["metadata"]["uid"] in api.refused for job in api.jobs.values())
    for name in list(api.jobs):
        world.delete(name)
    api.now += ARRIVE_S
    await world.settled()
    assert (len(world.suspended), len(world.rows.reserved)) == (0, 0)
    assert not any(world.state.gangs())


@given(st.lists(step, max_size=25))
@settings(deadline=None)
def test_jobs_are_resumed_once_and_never_over_quota_or_room(steps: list[tuple[str, Any]]) -> None:
    asyncio.run(play(steps))
