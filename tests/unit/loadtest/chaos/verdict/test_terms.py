"""Leaders write one after the other: what of it is found."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from extender.config.settings import ExtenderConfig
from loadtest.chaos.muster import Muster
from loadtest.chaos.simulation.loop import VirtualLoop
from loadtest.chaos.simulation.server import Server
from loadtest.chaos.verdict.terms import Terms

LEASE_S = 15.0


@pytest.fixture
def terms() -> Iterator[Terms]:
    loop = VirtualLoop(print)

    async def make() -> Terms:
        server = Server(loop.time, random.Random(0))
        muster = Muster(
            server,
            ExtenderConfig(),
            random.Random(0),
            lambda _steps: None,
            lambda _text: None,
            count=2,
        )
        return Terms(muster, LEASE_S, slack_s=5.0)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        yield runner.run(make())


def test_a_leader_writes_as_long_as_nobody_followed_it(terms: Terms) -> None:
    for writer in ("muster-0_1", "muster-0_1", "muster-1_1", "muster-1_1", "muster-0_2"):
        terms.wrote(writer, "PATCH p")
    assert terms.late_writes == []


def test_a_write_of_a_former_leader_after_its_successors_is_found(terms: Terms) -> None:
    for writer in ("muster-0_1", "muster-1_1", "muster-0_1"):
        terms.wrote(writer, "PATCH p")
    assert terms.late_writes == ["muster-0_1 wrote after muster-1_1 had: PATCH p"]


def test_nobody_fit_is_no_idle_lease(terms: Terms) -> None:
    terms.look(10 * LEASE_S)
    assert terms.idle == []
