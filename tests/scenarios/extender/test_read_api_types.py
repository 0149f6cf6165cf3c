"""Every answer of the read API is what its type in ``muster.apiwire`` says, and nothing more."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from support.extenders.extenders import PODS, World, world

from loadtest.testbed.client.pods import Gang, pod
from muster.apiwire.defrag import Defrag
from muster.apiwire.drains import DrainsAnswer
from muster.apiwire.explain import Explanation
from muster.apiwire.gangs import GangRow
from muster.apiwire.problem import Problem
from muster.apiwire.status import Status
from muster.apiwire.whatif import WhatIfAnswer, WhatIfQuestion, Without


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 2, "r2": 2})
        await running.gang(Gang("bound", 2))
        placed = await running.released(["bound-0", "bound-1"])
        await running.bind("bound-0", placed["bound-0"])
        await running.gang(Gang("waits", 3))
        await running.gang(Gang("never", 9))
        await running.api.create(PODS, pod("plain"))
        await running.settled()
        yield running


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/status", Status),
        ("/v1/gangs", list[GangRow]),
        ("/v1/explain/default/bound-0", Explanation),
        ("/v1/explain/default/bound-1", Explanation),
        ("/v1/explain/default/waits-0", Explanation),
        ("/v1/explain/default/never-0", Explanation),
        ("/v1/explain/default/plain", Explanation),
        ("/v1/explain/default/gone", Problem),
        ("/v1/defrag/default/waits", Defrag),
        ("/v1/defrag/default/none", Problem),
        ("/v1/drains", DrainsAnswer),
        ("/v1/drains?node=r1-0&node=r2-1", DrainsAnswer),
        ("/v1/drains?node=r9", Problem),
    ],
)
async def test_an_answer_read_by_its_type_and_written_again_is_the_same(
    cluster: World, path: str, kind: Any
) -> None:
    async with cluster.http.get(path) as reply:
        raw = await reply.read()
    assert msgspec.json.encode(msgspec.json.decode(raw, type=kind)) == raw


async def test_a_question_of_the_types_is_answered_by_the_types(cluster: World) -> None:
    question = WhatIfQuestion(gang="waits", without=Without(gangs=("bound",)))
    async with cluster.http.post("/v1/whatif", data=msgspec.json.encode(question)) as reply:
        raw = await reply.read()
    found = msgspec.json.decode(raw, type=WhatIfAnswer)
    assert found.fits
    assert found.decision.decision == "plan"
    assert msgspec.json.encode(found) == raw
