"""Processes that are stopped and continued in virtual time."""

import asyncio
from contextvars import Context

from loadtest.chaos.simulation.loop import Process, VirtualLoop


def test_a_stopped_process_does_nothing_until_it_is_continued_and_others_go_on() -> None:
    loop, told = VirtualLoop(print), list[tuple[str, int]]()

    async def tick(name: str) -> None:
        for _ in range(3):
            await asyncio.sleep(1.0)
            told.append((name, round(loop.time())))

    async def main() -> None:
        process = Process()
        inside = loop.create_task(tick("inside"), context=process.context.copy())
        outside = loop.create_task(tick("outside"), context=Context())
        await asyncio.sleep(1.5)
        process.stopped = True
        await asyncio.sleep(10.0)
        loop.resume(process)
        await asyncio.gather(inside, outside)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    assert [at for name, at in told if name == "outside"] == [1, 2, 3]
    assert [at for name, at in told if name == "inside"] == [1, 12, 12]


def test_what_a_process_has_handed_on_is_not_stopped_with_it() -> None:
    loop, told = VirtualLoop(print), list[int]()

    async def carry() -> None:
        await asyncio.sleep(1.0)
        told.append(round(loop.time()))

    async def send() -> None:
        await loop.create_task(carry(), context=Context())

    async def main() -> None:
        process = Process()
        sending = loop.create_task(send(), context=process.context.copy())
        await asyncio.sleep(0.5)
        process.stopped = True
        await asyncio.sleep(10.0)
        loop.resume(process)
        await sending

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    assert told == [1]
