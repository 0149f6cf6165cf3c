"""What is asked for over the network: once at a time, kept for a while, and never too much."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from extender.access.answercache import AT_ONCE, MOST, WAITING, AnswerCache, Busy

YES_S, NO_S = 60.0, 10.0


class Oracle:
    """Answers questions when it is let, and counts them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: list[str] = []
        self.under_way = self.most = 0
        self.go = asyncio.Event()
        self.go.set()
        self.fails: Exception | None = None
        self.cache = AnswerCache[str, bool](YES_S, NO_S, lambda: self.now)

    def ask(self, question: str, *, answer: bool) -> Callable[[], Awaitable[bool]]:
        async def really() -> bool:
            self.asked.append(question)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await self.go.wait()
            self.under_way -= 1
            if self.fails is not None:
                raise self.fails
            return answer

        return really

    async def get(self, question: str, *, answer: bool = True) -> bool:
        return await self.cache.get(question, self.ask(question, answer=answer))


@pytest.mark.parametrize(("answer", "keep_s"), [(True, YES_S), (False, NO_S)])
async def test_an_answer_is_kept_for_its_time_and_no_longer(*, answer: bool, keep_s: float) -> None:
    oracle = Oracle()
    for at, asked in ((0.0, 1), (keep_s - 0.1, 1), (keep_s, 2)):
        oracle.now = 1000.0 + at
        assert await oracle.get("a", answer=answer) is answer
        assert len(oracle.asked) == asked


async def test_an_answer_that_changed_takes_the_place_of_the_old_one() -> None:
    oracle = Oracle()
    assert await oracle.get("a", answer=True)
    oracle.now += YES_S
    assert not await oracle.get("a", answer=False)
    assert not await oracle.get("a", answer=True)


async def test_a_hundred_who_want_the_same_wait_for_one_question() -> None:
    oracle = Oracle()
    oracle.go.clear()
    waiting = [asyncio.create_task(oracle.get("a")) for _ in range(100)]
    await asyncio.sleep(0)
    oracle.go.set()
    assert await asyncio.gather(*waiting) == [True] * 100
    assert oracle.asked == ["a"]


async def test_who_goes_away_takes_nobody_elses_answer_along() -> None:
    oracle = Oracle()
    oracle.go.clear()
    first, second = (asyncio.create_task(oracle.get("a")) for _ in range(2))
    while not oracle.asked:  # noqa: ASYNC110  one turn of the loop or two
        await asyncio.sleep(0)
    first.cancel()
    oracle.go.set()
    assert await second
    assert first.cancelled() or first.cancelling()


async def test_a_failure_is_told_to_all_who_wait_and_is_not_kept() -> None:
    oracle = Oracle()
    oracle.go.clear()
    waiting = [asyncio.create_task(oracle.get("a")) for _ in range(3)]
    await asyncio.sleep(0)
    oracle.fails = OSError("gone")
    oracle.go.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in answers] == [OSError] * 3
    oracle.fails = None
    assert await oracle.get("a")
    assert len(oracle.asked) == 2


async def test_a_flood_of_questions_is_bounded_and_who_had_a_yes_keeps_its_turn() -> None:
    oracle = Oracle()
    assert await oracle.get("known")
    oracle.now += YES_S  # old: it has to be asked anew
    oracle.go.clear()
    flood = [asyncio.create_task(oracle.get(f"{i}", answer=False)) for i in range(WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await oracle.get("one more")
    known = asyncio.create_task(oracle.get("known"))
    await asyncio.sleep(0)
    oracle.go.set()
    assert await known
    assert not any(await asyncio.gather(*flood))
    assert oracle.most == AT_ONCE


async def test_what_is_kept_is_bounded_and_noes_do_not_push_out_a_yes() -> None:
    oracle = Oracle()
    assert await oracle.get("yes")
    for i in range(2 * MOST):
        await oracle.get(f"no-{i}", answer=False)
    assert len(oracle.cache._no) == MOST
    asked = len(oracle.asked)
    assert await oracle.get("yes")
    assert len(oracle.asked) == asked
