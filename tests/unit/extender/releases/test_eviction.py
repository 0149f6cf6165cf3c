"""Several steps are under way together; an error ends all of them."""

import asyncio

import pytest

from extender.releases.eviction import AT_ONCE, at_once


async def test_what_steps_return_comes_in_their_order_though_few_are_under_way_together() -> None:
    under_way, most = 0, 0

    async def step(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return number * 2

    many = range(3 * AT_ONCE)
    assert await at_once(step, many) == [number * 2 for number in many]
    assert most == AT_ONCE


async def test_after_an_error_no_further_step_is_made() -> None:
    """A coroutine that is made and never awaited is a warning of Python when the program ends."""
    made: list[int] = []

    async def waits(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            raise ValueError("the first one fails")
        await asyncio.Event().wait()

    def step(number: int) -> "asyncio.Future[None]":
        made.append(number)
        return asyncio.ensure_future(waits(number))

    with pytest.raises(ValueError, match="the first one fails"):
        await at_once(step, range(3 * AT_ONCE))
    assert len(made) <= AT_ONCE + 1, "a slot becomes free when a step fails"
