"""Room on random small clusters against every set of victims there is.

::

    rack r0   h0 h1     8 GPUs a host, six gangs at most, some of them elastic, three queues;
    rack r1   h2 h3     one gang waits and does not fit
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters.victimsets import cost, fits, has_quota, sets

from loadtest.benches.room.cases import GPUS, NOW, RoomCase, generate
from loadtest.benches.room.churn import churned
from loadtest.benches.room.oracle import may_give_way
from loadtest.benches.room.score import ASKED, answered, key_of, question_of, state_of
from muster.cluster.events import NodeUpserted
from muster.cluster.resumable import run
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, room_for
from muster.kube.names import HOST, RACK
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

CASES = st.integers(0, 1_000_000).map(lambda seed: generate(seed, 6, 2, 2))
LARGER = st.integers(0, 1_000_000).map(lambda seed: generate(seed, 60, 4, 6))
"""With more gangs than the exact search looks at."""


def asked(case: RoomCase) -> RoomAnswer:
    """Return who gives way in a case."""
    state = state_of(case)
    return run(room_for(state.snapshot(), state.charges, question_of(case, ASKED)))


@given(CASES)
@settings(max_examples=150)
def test_no_set_of_victims_costs_less_than_the_one_that_is_proven(case: RoomCase) -> None:
    """Against every set: whole gangs, and all choices of members above a minimum."""
    made = answered(case)
    best = min((cost(case, each) for each in sets(case) if fits(case, each)), default=None)
    assert made.cost == best
    assert made.proven or best is None


@given(CASES | LARGER)
@settings(max_examples=150)
def test_no_gang_is_partial_and_no_queue_below_its_entitlement(case: RoomCase) -> None:
    """Counted from the case, not by the solver; the gang's place is verified pod by pod."""
    made = answered(case)
    assert (made.partial, made.below, made.invalid) == (0, 0, 0)


@given(CASES | LARGER)
@settings(max_examples=100)
def test_no_victim_can_be_spared(case: RoomCase) -> None:
    """The gang does not fit, or its queue lacks the right, if any one victim stays."""
    answer = asked(case)
    if not isinstance(answer, RoomPlan):
        return
    snapshot = state_of(case).snapshot()
    for victim in answer.victims:
        for spared in [victim.rows] if victim.is_whole else [(row,) for row in victim.rows]:
            left = [row for row in answer.rows if row not in spared]
            counts = {
                other.gang.rpartition("/")[2]: len([r for r in other.rows if r in left])
                for other in answer.victims
            }
            later = snapshot.overlay(without_pods=left)
            found = plan_now(later, Question(ASKED, now=NOW))
            assert not (isinstance(found, Plan) and has_quota(case, counts))


@given(CASES)
@settings(max_examples=50)
def test_the_same_cluster_gives_the_same_answer(case: RoomCase) -> None:
    """Two clusters made alike."""
    first, second = asked(case), asked(case)
    if isinstance(first, RoomPlan) and isinstance(second, RoomPlan):
        assert first.victims == second.victims
        assert first.plan.nodes.tolist() == second.plan.nodes.tolist()
    else:
        assert first == second


@given(CASES, st.lists(st.integers(0, 1_000_000), max_size=3))
@settings(max_examples=100)
def test_no_set_of_running_gangs_recurs_when_all_ask_in_turn(
    case: RoomCase, others: list[int]
) -> None:
    """Nobody is spared for being young; whoever was evicted asks again."""
    more = tuple(generate(seed, 6, 2, 2).asked for seed in others)
    found = churned(case, more)
    assert (found.cycles, found.partial) == (0, 0)
    assert found.is_settled


@given(CASES)
@settings(max_examples=50)
def test_who_gives_way_may_by_the_rules_as_written(case: RoomCase) -> None:
    """The rules stated once more, in the oracle."""
    answer = asked(case)
    if isinstance(answer, NoRoom):
        return
    allowed = {key_of(job.name) for job in case.jobs if may_give_way(case, job)}
    assert {victim.gang for victim in answer.victims} <= allowed


@given(
    CASES | LARGER, st.sets(st.integers(0, 3), max_size=3), st.sampled_from(("promised", "kept"))
)
@settings(max_examples=100)
def test_room_that_others_are_promised_helps_as_little_as_that_of_a_cordoned_node(
    case: RoomCase, hosts: set[int], how: str
) -> None:
    """Whether free or full: a gang seemed to fit on free nodes that were promised to others."""
    state, asking = state_of(case), question_of(case, ASKED)
    names = tuple(f"h{number}" for number in sorted(hosts))
    question = replace(asking.question, **{how: names})
    found = run(room_for(state.snapshot(), state.charges, replace(asking, question=question)))
    for number in hosts:
        labels = {RACK: f"r{case.racks[number]}", HOST: f"h{number}"}
        room = {"cpu": 256_000, "pods": 110, "nvidia.com/gpu": GPUS}
        state.apply(NodeUpserted(f"h{number}", labels, room, unschedulable=True), now=NOW)
    cordoned = run(room_for(state.snapshot(), state.charges, asking))
    if isinstance(found, RoomPlan) and isinstance(cordoned, RoomPlan):
        assert found.victims == cordoned.victims
    else:
        assert type(found) is type(cordoned)
