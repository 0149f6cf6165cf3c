"""Who goes first on the event loop: requests, then work, a slice at a time.

::

    work ── slice over ──► queue ──► next iteration: bytes are read ──► request? handler : work
"""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from extender.timeslice import AT_ONCE, PATIENCE, SLICE_S, Pace


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """One pace; every step of work takes longer than a slice. ``said``: who did what, in order."""

    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    offers: int = 0

    def __post_init__(self) -> None:
        self.pace = Pace(self.clock, self.offer)

    def offer(self) -> None:
        """Stand for the kernel, which runs another process meanwhile."""
        self.offers += 1

    async def work(self, name: str, steps: int = 1) -> None:
        for _ in range(steps):
            self.clock.now += 1.5 * SLICE_S
            await self.pace.breathe()
            self.said.append(name)

    def request(self) -> None:
        """Arrive as bytes from a socket do: the handler runs an iteration later."""
        self.pace.arrived()
        asyncio.get_running_loop().call_soon(self.said.append, "answer")


async def iterations(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_work_within_its_slice_is_not_interrupted() -> None:
    scene = Scene()
    task = asyncio.create_task(scene.work("work"))
    scene.clock.now = -SLICE_S  # the step ends where the slice began
    await iterations(1)
    assert scene.said == ["work"]
    await task


async def test_a_request_that_is_read_while_work_gives_way_is_answered_first() -> None:
    scene = Scene()
    task = asyncio.create_task(scene.work("work"))
    await iterations(1)  # the work has asked for its turn
    asyncio.get_running_loop().call_soon(scene.request)
    await task
    assert scene.said == ["answer", "work"]


async def test_a_request_made_by_a_process_that_was_given_the_core_is_answered_first() -> None:
    scene = Scene()
    loop = asyncio.get_running_loop()

    def send() -> None:
        loop.call_soon(scene.request)  # bytes are there when sockets are read next

    scene.pace = Pace(scene.clock, send)
    await scene.work("work")
    assert scene.said == ["answer", "work"]


async def test_the_core_is_offered_once_for_all_work_that_waits_for_its_turn() -> None:
    scene = Scene()
    await asyncio.gather(*(scene.work(name) for name in ("events", "plan", "release")))
    assert scene.offers == 1
    await scene.work("events", steps=3)
    assert scene.offers == 4


async def test_the_core_is_offered_to_whoever_has_been_answered() -> None:
    scene = Scene()
    offered: list[str] = []
    scene.pace = Pace(scene.clock, lambda: offered.extend(scene.said[-1:]))
    task = asyncio.create_task(scene.work("work"))
    await iterations(1)
    asyncio.get_running_loop().call_soon(scene.request)
    await task
    assert offered == ["answer"]


async def test_who_is_woken_while_nobody_works_has_a_slice_to_begin_with() -> None:
    scene = Scene()
    scene.clock.now = 100 * SLICE_S  # the process was idle
    scene.pace.begin()
    scene.clock.now -= SLICE_S  # the step takes half a slice
    await scene.work("work")
    assert scene.offers == 0


async def test_who_is_woken_takes_nothing_from_those_who_wait() -> None:
    scene = Scene()
    waiting = asyncio.create_task(scene.work("waits"))
    await iterations(1)
    scene.pace.begin()
    await scene.pace.breathe()
    scene.said.append("comes")
    await waiting
    assert scene.said == ["waits", "comes"]


async def test_work_takes_turns_in_the_order_it_asked() -> None:
    scene = Scene()
    names = [f"work {number}" for number in range(3 * AT_ONCE + 1)]
    await asyncio.gather(*(scene.work(name) for name in names))
    assert scene.said == names


async def test_who_finds_the_slice_used_up_by_another_one_waits_for_the_next() -> None:
    scene = Scene()
    names = "plan", "events", "nodes"
    tasks = [asyncio.create_task(scene.work(name, steps=3)) for name in names]
    most = before = 0
    while len(scene.said) < 2 * len(names):
        await asyncio.sleep(0)
        most, before = max(most, len(scene.said) - before), len(scene.said)
    assert most == 1
    await asyncio.gather(*tasks)
    assert scene.said == [*names] * 3


async def test_work_goes_on_though_the_process_gets_no_core_for_longer_than_a_slice() -> None:
    scene = Scene()
    task = asyncio.create_task(scene.work("work"))
    while not task.done():
        scene.clock.now += 2 * SLICE_S
        await asyncio.sleep(0)
    assert scene.said == ["work"]


async def test_only_so_many_go_on_in_one_iteration() -> None:
    scene = Scene()
    tasks = [asyncio.create_task(scene.work(str(number))) for number in range(3 * AT_ONCE)]
    most = before = 0
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        most, before = max(most, len(scene.said) - before), len(scene.said)
    assert most == AT_ONCE


async def test_who_sends_a_byte_in_every_iteration_does_not_stop_the_work() -> None:
    scene = Scene()
    task = asyncio.create_task(scene.work("work", steps=3))
    count = 0
    while not task.done():
        scene.pace.arrived()
        count += 1
        await asyncio.sleep(0)
    assert scene.said == ["work"] * 3
    assert count <= 3 * (PATIENCE + 4)


async def test_work_that_is_cancelled_in_the_queue_does_not_stop_the_others() -> None:
    scene = Scene()
    first = asyncio.create_task(scene.work("first"))
    second = asyncio.create_task(scene.work("second"))
    await iterations(1)
    first.cancel()
    await second
    assert scene.said == ["second"]
    with pytest.raises(asyncio.CancelledError):
        await first


def test_a_queue_that_one_loop_left_behind_does_not_stop_the_next() -> None:
    scene = Scene()

    async def broken_off() -> None:
        task = asyncio.create_task(scene.work("lost"))
        await iterations(1)
        task.cancel()

    asyncio.run(broken_off())
    asyncio.run(asyncio.wait_for(scene.work("next"), 5))
    assert scene.said == ["next"]


@pytest.mark.parametrize("steps", [1, 7])
async def test_a_driven_generator_gives_its_value(steps: int) -> None:
    scene = Scene()

    def work() -> Generator[None, None, str]:
        for _ in range(steps):
            scene.clock.now += SLICE_S
            yield
        return "found"

    assert await scene.pace.drive(work()) == "found"
