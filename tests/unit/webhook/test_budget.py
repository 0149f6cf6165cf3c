"""Bytes of large reviews that may lie in memory at once."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from webhook.budget import Budget

TOTAL = 100
ASKED = st.lists(
    st.tuples(st.sampled_from(["ask", "leave", "give up"]), st.integers(1, 2 * TOTAL)),
    max_size=40,
)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Holder:
    """One client: waits for room, holds it, leaves when it is told to."""

    def __init__(self, budget: Budget, amount: int) -> None:
        self.amount = min(amount, TOTAL)
        self.inside = False
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._hold(budget, amount))

    async def _hold(self, budget: Budget, amount: int) -> None:
        async with budget.held(amount):
            self.inside = True
            await self.leave.wait()
        self.inside = False


async def check(steps: list[tuple[str, int]]) -> None:
    budget, queue = Budget(TOTAL), list[Holder]()
    for verb, number in steps:
        if verb == "ask":
            queue.append(Holder(budget, number))
        elif queue:
            one = queue.pop(number % len(queue))
            if verb == "leave" and one.inside:
                one.leave.set()
            else:
                one.task.cancel()
        await settle()
        held = sum(one.amount for one in queue if one.inside)
        assert budget.free == TOTAL - held
        waiting = [one for one in queue if not one.inside]
        assert not waiting or waiting[0].amount > budget.free  # whoever is first has no room
        inside = [one.inside for one in queue]
        assert inside == sorted(inside, reverse=True)  # first come, first served
    for one in queue:
        one.task.cancel()
    await settle()
    assert budget.free == TOTAL


@given(ASKED)
def test_no_more_is_held_than_there_is_and_the_first_in_the_queue_is_served_first(
    steps: list[tuple[str, int]],
) -> None:
    asyncio.run(check(steps))
