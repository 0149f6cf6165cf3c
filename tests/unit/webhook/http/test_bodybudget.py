"""Bytes of large reviews that may lie in memory at once."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from webhook.http.bodybudget import BodyBudget

TOTAL = 100
Steps = list[tuple[str, int, bool]]
# What is done, by whom or for how much, and whether all come to rest before the next step: what
# is done in the same moment as another thing meets what that one has only begun.
ASKED: st.SearchStrategy[Steps] = st.lists(
    st.tuples(
        st.sampled_from(["ask", "leave", "give up"]), st.integers(1, 2 * TOTAL), st.booleans()
    ),
    max_size=40,
)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Holder:
    """One client: waits for room, holds it, leaves when it is told to."""

    def __init__(self, budget: BodyBudget, amount: int) -> None:
        self.amount = min(amount, TOTAL)
        self.inside = False
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._hold(budget, amount))

    async def _hold(self, budget: BodyBudget, amount: int) -> None:
        async with budget.held(amount):
            self.inside = True
            await self.leave.wait()
        self.inside = False


def look(budget: BodyBudget, queue: list[Holder]) -> None:
    held = sum(one.amount for one in queue if one.inside)
    assert budget.free == TOTAL - held
    waiting = [one for one in queue if not one.inside]
    assert not waiting or waiting[0].amount > budget.free  # whoever is first has no room
    inside = [one.inside for one in queue]
    assert inside == sorted(inside, reverse=True)  # first come, first served


async def end(holders: list[Holder]) -> None:
    """Nobody ends in an error: all have left, or have given up."""
    ended = await asyncio.gather(*(one.task for one in holders), return_exceptions=True)
    assert [one for one in ended if not isinstance(one, asyncio.CancelledError | None)] == []


async def check(steps: Steps) -> None:
    budget, queue, gone = BodyBudget(TOTAL), list[Holder](), list[Holder]()
    for verb, number, settles in steps:
        if verb == "ask":
            queue.append(Holder(budget, number))
        elif queue:
            one = queue.pop(number % len(queue))
            gone.append(one)
            if verb == "leave" and one.inside:
                one.leave.set()
            else:
                one.task.cancel()
        if settles:
            await settle()
            look(budget, queue)
    for one in queue:
        one.task.cancel()
    await end([*queue, *gone])
    assert budget.free == TOTAL


@given(ASKED)
def test_no_more_is_held_than_there_is_and_the_first_in_the_queue_is_served_first(
    steps: Steps,
) -> None:
    asyncio.run(check(steps))


def test_whoever_gives_up_while_another_leaves_ends_as_cancelled() -> None:
    """The one that leaves passes over him; there is nothing left to take back."""
    leave, give_up = ("leave", 2, False), ("give up", 1, False)
    asyncio.run(check([("ask", TOTAL, True), ("ask", TOTAL, True), leave, give_up]))
