"""One question at a time: turns that a few wait for, and that are always given back."""

import asyncio

import pytest

from extender.readapi.whatif import WAITING, Crowded, WhatIfQueue


async def test_whoever_gives_up_waiting_leaves_the_line() -> None:
    turns = WhatIfQueue()
    async with turns:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), turns:
                raise AssertionError("it was another's turn")
        assert turns.waiting == 1
    assert turns.waiting == 0


async def test_more_than_a_few_are_sent_away_at_once() -> None:
    turns, done = WhatIfQueue(), asyncio.Event()

    async def hold() -> None:
        async with turns:
            await done.wait()

    held = [asyncio.create_task(hold()) for _ in range(1 + WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Crowded):
        async with turns:
            raise AssertionError("there was no place in the line")
    done.set()
    await asyncio.gather(*held)
    async with turns:
        assert turns.waiting == 1


async def test_an_error_in_a_turn_gives_it_back() -> None:
    turns = WhatIfQueue()
    with pytest.raises(ValueError, match="wrong"):
        async with turns:
            raise ValueError("wrong")
    assert turns.waiting == 0
