"""The JSON of the answers: names, order and omissions that clients have been written for."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.apiwire.decision import Decision, Nearest
from muster.apiwire.defrag import Defrag, MoveAnswer
from muster.apiwire.explain import Explanation, Ways
from muster.apiwire.gangs import GangRow
from muster.apiwire.problem import Problem
from muster.apiwire.status import Queue, Status
from muster.apiwire.whatif import Set, WhatIfAnswer, WhatIfQuestion, parse

ROW = (
    "gang phase priority queue min size waiting blocked assumed released bound leaving finished "
    "standby submitted_at skips reason partial_since unhealthy"
)


def keys(value: object) -> str:
    return " ".join(json.loads(msgspec.json.encode(value)))


def test_a_row_of_a_gang_has_every_field_in_its_order() -> None:
    assert keys(GangRow("muster/a/b", "Pending")) == ROW


def test_a_status_has_every_field_in_its_order() -> None:
    assert keys(Status(cluster="c", ready=True, generation=1, nodes=2, gangs={}, holds={})) == (
        "cluster ready leader generation nodes gangs holds waiting_for_room queue problems "
        "watch_backlog"
    )
    assert keys(Queue()) == "gangs pods oldest_submitted_at"


@pytest.mark.parametrize(
    ("found", "order"),
    [
        (Explanation("a/b", lines=("no",)), "pod lines"),
        (Explanation("a/b", node="", lines=("no",)), "pod node lines"),
        (
            Explanation(
                "a/b", GangRow("k", "Bound"), "Released", "n", (), {}, -1, lines=("Released: n",)
            ),
            "pod gang state node spares devices rank lines",
        ),
        (
            Explanation(
                "a/b", GangRow("k", "Pending"), decision=Decision("k", 1, "reject"), ways=None
            ),
            "pod gang lines decision ways",
        ),
    ],
)
def test_an_explanation_leaves_out_what_does_not_apply(found: Explanation, order: str) -> None:
    assert keys(found) == order


def test_answers_about_what_might_be_keep_their_order() -> None:
    decision = Decision("k", 1, "plan", members=1, left_over=0, proven=True, domains={})
    assert keys(decision) == "gang generation decision members left_over proven domains"
    assert keys(WhatIfAnswer((), True, decision, (), ())) == "supposed fits decision lines where"
    assert keys(MoveAnswer("p", "a", "b")) == "pod from to"
    assert keys(Ways(0, None, (), None, False)) == "fewer wider ends moves relaxes"
    nothing = Defrag("k", 1, False, reason="no", detail="", certain=True, staying={}, lines=("no",))
    assert keys(nothing) == "gang generation proposal reason detail certain staying lines"


def test_a_client_reads_answers_of_an_extender_that_says_more() -> None:
    raw = b'{"error":"no","seen":["since then"]}'
    assert msgspec.json.decode(raw, type=Problem) == Problem("no")


@given(st.builds(Nearest), st.builds(GangRow), st.builds(WhatIfQuestion))
def test_what_a_server_encodes_a_client_decodes(
    nearest: Nearest, row: GangRow, question: WhatIfQuestion
) -> None:
    decision = Decision("k", 1, "wait", reason="not enough room", nearest=nearest)
    found = Explanation("a/b", row, decision=decision, ways=None)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Explanation) == found
    assert msgspec.json.decode(msgspec.json.encode(question), type=WhatIfQuestion) == question


def test_a_question_carries_what_differs_and_nothing_else() -> None:
    body = msgspec.json.encode(WhatIfQuestion(gang="a/b", set=Set(topology_required="", size=3)))
    assert json.loads(body) == {"gang": "a/b", "set": {"topologyRequired": "", "size": 3}}
    assert parse(body).set == Set(topology_required="", size=3)
