"""The buffer by itself: bounded, and each entry with the cause that it has."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.story.chain import chain, of_gang, of_pod
from extender.story.entries import NOTHING, Entry
from extender.story.story import Story
from muster.cluster.effects import CapacityFreed, Effect, GangChanged, HoldExpired, PodConfirmed
from muster.cluster.events import (
    Assignment,
    Event,
    GangSkipped,
    PlanHeld,
    PlanNote,
    PodForgotten,
    PodGone,
    PodReleased,
    PodUpserted,
    Tick,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import PodClass

GANG = GangKey("muster/ns/g")
OTHER = GangKey("muster/ns/other")
CLASS = PodClass((("pods", 1),))
NOW = 100.0


def uid(number: int) -> PodUid:
    return PodUid(number.to_bytes(16, "big"))


def seen(number: int, node: str | None = None, **fields: object) -> PodUpserted:
    gates = frozenset() if node or fields.get("plan") else frozenset({"muster.dev/plan"})
    pod = PodUpserted(uid(number), "ns", f"g-{number}", CLASS, (), node, gates=gates, gang=GANG)
    for name, value in fields.items():
        object.__setattr__(pod, name, value)
    return pod


def held(*numbers: int, plan: str = "p") -> PlanHeld:
    return PlanHeld(GANG, plan, tuple(Assignment(uid(n), "n1") for n in numbers), 0.0, 1)


def note(story: Story, event: Event, *effects: Effect, cause: int = NOTHING) -> int:
    return story.note(event, effects or (GangChanged(GANG),), NOW, cause)


def entry(story: Story, number: int) -> Entry:
    return next(each for each in story.entries() if each.number == number)


def causes(story: Story, numbers: Sequence[int]) -> list[int]:
    return [entry(story, number).cause for number in numbers]


def placed(story: Story) -> list[int]:
    """Note how a gang of two is placed; return the numbers of all entries."""
    numbers = [note(story, seen(0)), note(story, seen(1))]
    look = story.look(GANG, 2, 0, NOW)
    plan = story.decided(GANG, 2, (("example.com/rack", 1),), NOW, look)
    hold = note(story, held(0, 1), cause=plan)
    writes = [note(story, PodReleased(uid(n))) for n in (0, 1)]
    carried = PlanNote("p", "n1")
    bound = [
        note(story, seen(n, "n1", plan=carried), PodConfirmed(uid(n), "n1", as_planned=True))
        for n in (0, 1)
    ]
    return [*numbers, look, plan, hold, *writes, *bound]


def test_from_the_last_member_to_the_node_each_entry_has_its_cause() -> None:
    story = Story(100)
    first, last, look, plan, hold, write, other, bound, _ = numbers = placed(story)
    assert causes(story, numbers) == [0, 0, last, look, plan, hold, hold, write, other]
    assert [entry(story, n).what for n in (first, look, plan, hold, write, bound)] == [
        "waits, gated",
        "is complete: 2 members wait, 0 have a node",
        "fits: 2 members on 1 rack",
        "plan p holds room for 2 pods",
        "is released: its pin is written",
        "is bound to n1; as planned",
    ]


def test_a_gang_that_waits_is_looked_at_again_because_room_is_freed() -> None:
    story = Story(100)
    note(story, seen(0))
    look = story.look(GANG, 1, 0, NOW)
    note(story, GangSkipped(GANG, "not enough room"), cause=look)
    freed = note(story, PodGone(uid(9)), GangChanged(OTHER), CapacityFreed())
    again = story.look(GANG, 1, 0, NOW)
    assert causes(story, [again]) == [freed]


def test_a_hold_that_expires_follows_from_the_hold_and_leads_to_the_next_look() -> None:
    story = Story(100)
    note(story, seen(0))
    story.look(GANG, 1, 0, NOW)
    hold = note(story, held(0))
    expired = note(story, Tick(), HoldExpired(GANG, uid(0)), CapacityFreed())
    again = story.look(GANG, 1, 0, NOW)
    assert causes(story, [expired, again]) == [hold, expired]
    assert entry(story, expired).what == "time passed; its room is given up: deadline"
    assert entry(story, expired).gangs == (GANG,)


def test_a_plan_is_given_up_because_of_what_was_done_last() -> None:
    story = Story(100)
    hold = note(story, held(0))
    forgotten = note(story, PodForgotten(uid(0), "vanished"))
    assert causes(story, [forgotten]) == [hold]


def test_an_evicted_pod_goes_because_of_its_eviction_and_others_of_themselves() -> None:
    story = Story(100)
    placed(story)
    evicted = story.evicted(uid(0), GANG, "its gang is rolled back", NOW)
    ends = [
        *(note(story, seen(n, "n1", plan=PlanNote("p", "n1"), terminating=True)) for n in (0, 1)),
        *(note(story, PodGone(uid(n))) for n in (0, 1)),
    ]
    assert causes(story, ends) == [evicted, NOTHING, evicted, NOTHING]


def test_a_pod_made_with_its_plan_follows_from_the_hold_of_that_plan() -> None:
    story = Story(100)
    hold = note(story, held(0, plan="early"))
    carried = PlanNote("early", "n1")
    made = note(story, seen(7, plan=carried))
    bound = note(story, seen(7, "n1", plan=carried))
    assert causes(story, [made, bound]) == [hold, made]


@given(st.integers(1, 30), st.lists(st.integers(0, 5), max_size=120))
def test_however_much_happens_no_more_than_the_last_entries_are_kept(
    most: int, acts: list[int]
) -> None:
    story = Story(most)
    for place, act in enumerate(acts):
        pod = place % 7
        match act:
            case 0:
                note(story, seen(pod))
            case 1:
                note(story, held(pod, plan=f"p{place}"), cause=story.look(GANG, 1, 0, NOW))
            case 2:
                note(story, PodReleased(uid(pod)))
            case 3:
                note(story, seen(pod, "n1", plan=PlanNote(f"p{place - 1}", "n1")))
            case 4:
                story.evicted(uid(pod), GANG, "x", NOW)
            case _:
                note(story, PodGone(uid(pod)), GangChanged(GangKey(f"muster/ns/{place}")))
    entries = story.entries()
    numbers = [each.number for each in entries]
    assert len(numbers) <= most
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else not acts
    assert all(each.cause < each.number for each in entries)
    known = [story._changes, story._acts, story._plans, story._evictions]
    assert {n for numbers_ in known for n in numbers_.values()} <= set(numbers)


def test_with_no_entries_nothing_is_kept_and_every_number_is_none() -> None:
    story = Story(0)
    assert set(placed(story)) == {NOTHING}
    assert story.evicted(uid(0), GANG, "x", NOW) == NOTHING
    assert story.entries() == []
    assert not story._changes
    assert not story._acts


@pytest.mark.parametrize("most", [100, 6])
def test_the_chain_of_a_pod_has_its_causes_and_what_followed_as_far_as_it_is_kept(
    most: int,
) -> None:
    story = Story(most)
    note(story, PodGone(uid(9)), GangChanged(OTHER))
    first, last, look, plan, hold, write, other, bound, there = placed(story)
    found = [e.number for e in run(chain(story.entries(), of_pod(frozenset({uid(0)}))))]
    whole = [first, last, look, plan, hold, write, other, bound, there]
    assert found == [number for number in whole if number > there - most]


def test_the_chain_of_a_gang_leaves_out_what_others_have_done() -> None:
    story = Story(100)
    ended = note(story, PodGone(uid(9)), GangChanged(OTHER), CapacityFreed())
    beside = story.look(OTHER, 1, 0, NOW)
    look = story.look(GANG, 1, 0, NOW)  # it waited for room
    assert [e.number for e in run(chain(story.entries(), of_gang("ns", "g")))] == [ended, look]
    assert [e.number for e in run(chain(story.entries(), of_gang("ns", "other")))] == [
        ended, beside, look,
    ]  # fmt: skip
    assert run(chain(story.entries(), of_gang("ns", "none"))) == []
    assert run(chain([], of_gang("ns", "g"))) == []
