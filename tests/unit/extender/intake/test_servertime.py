"""The extender's clock and the API server's, before anything is listed."""

import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from support.extenders.extenders import world

from extender.engine import SteadyClock
from extender.intake import servertime
from extender.intake.servertime import ServerTime
from muster.kube.client import KubeClient
from muster.kube.errors import AuthError, DecodeError, KubeError, TransportError
from muster.kube.http.serverclock import Skew

START, UP = 1_000_000.0, 500.0
MINUTES_25 = 1500.0


class Answers:
    """What a client says of the API server's clock, one after the other."""

    def __init__(self, *answers: Skew | KubeError) -> None:
        self.answers = list(answers)

    async def skew(self, clock: Callable[[], float]) -> Skew:
        clock()
        found = self.answers.pop(0)
        if isinstance(found, KubeError):
            raise found
        return found


async def time_after(*answers: Skew | KubeError) -> float:
    """Return the time after a start at ``START`` by our own clock."""
    clock, client = SteadyClock(lambda: START, lambda: UP), Answers(*answers)
    await ServerTime(cast(KubeClient, client), clock).begin()
    assert not client.answers
    return clock()


@pytest.mark.parametrize("ahead_s", [MINUTES_25, -MINUTES_25, 1.6, -1.6])
async def test_a_difference_of_more_than_a_second_for_certain_moves_the_clock(
    ahead_s: float,
) -> None:
    assert await time_after(Skew(ahead_s, 0.6)) == START + ahead_s


@pytest.mark.parametrize("ahead_s", [1.5, -1.5, 0.5, 0.0])
async def test_clocks_that_may_be_within_a_second_are_taken_as_equal(ahead_s: float) -> None:
    assert await time_after(Skew(ahead_s, 0.6)) == START


async def test_an_api_server_that_does_not_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(servertime, "RETRY_S", 0.0)
    refused, unreadable = TransportError("refused"), AuthError("token: not there yet")
    answers = (refused, refused, unreadable, Skew(MINUTES_25, 0.6))
    assert await time_after(*answers) == START + MINUTES_25
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 3, "each problem once, and that the clock was moved"


async def test_an_answer_without_a_date_leaves_the_clock_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await time_after(DecodeError("Date header '': not a date")) == START
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("off_s", [MINUTES_25, -MINUTES_25])
async def test_a_date_over_http_sets_a_clock_to_within_a_second(off_s: float) -> None:
    async with world() as cluster:
        clock = SteadyClock(lambda: time.time() + off_s)
        await ServerTime(cast(Any, cluster.extender.client), clock).begin()
        assert clock() == pytest.approx(time.time(), abs=1.5)
