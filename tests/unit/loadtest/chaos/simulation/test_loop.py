"""Virtual time: nothing waits, and the order of what happens is always the same."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from loadtest.chaos.simulation.loop import Stalled, VirtualLoop, finish_now


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, float, list[str]]:
    told: list[str] = []
    loop = VirtualLoop(told.append)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main()), loop.time(), told


def test_a_day_of_sleep_passes_at_once() -> None:
    async def main() -> str:
        await asyncio.sleep(86_400)
        return "done"

    result, now, told = run(main)
    assert (result, told) == ("done", [])
    assert now == pytest.approx(86_400)


def test_timers_fire_in_the_order_of_their_times_and_equal_ones_as_they_were_set() -> None:
    heard: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for name, delay in (("c", 3.0), ("a", 1.0), ("b1", 2.0), ("b2", 2.0)):
            loop.call_later(delay, heard.append, name)
        await asyncio.sleep(10)

    run(main)
    assert heard == ["a", "b1", "b2", "c"]


def test_timeouts_count_virtual_seconds() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30.0):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    result, *_ = run(main)
    assert result == pytest.approx(30.0)


def test_waiting_for_what_nobody_will_ever_do_is_an_error_and_no_endless_loop() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    loop = VirtualLoop(lambda _text: None)
    task = loop.create_task(main())
    with pytest.raises(Stalled):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


def test_an_exception_that_a_callback_leaves_behind_is_told() -> None:
    def fail() -> None:
        raise ValueError("nobody catches this")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(1)

    _, _, told = run(main)
    assert len(told) == 1
    assert "nobody catches this" in told[0]


def test_a_coroutine_that_waits_is_refused_where_nothing_may_wait() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    async def answers() -> int:
        return 7

    assert finish_now(answers()) == 7
    with pytest.raises(RuntimeError, match="waited"):
        finish_now(waits())
