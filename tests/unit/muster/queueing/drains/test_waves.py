"""Which gangs end now: by place, deadline, budget and rate; the rest is told what it waits for."""

import pytest

from muster.cluster.ids import GangKey
from muster.queueing.drains.waves import Leaver, wave_of

A, B = GangKey("g/a"), GangKey("g/b")


@pytest.mark.parametrize(
    ("lacks", "until", "goes"),
    [
        ("", None, True),
        ("", 2000.0, True),
        ("no room", None, False),
        ("no room", 1001.0, False),
        ("no room", 1000.0, True),
        ("no room", 999.0, True),
    ],
)
def test_a_gang_without_another_place_stays_until_its_time_has_come(
    lacks: str, until: float | None, *, goes: bool
) -> None:
    wave = wave_of([Leaver(A, "", lacks, until)], {}, {}, 1000.0)
    assert wave.goes == ((A,) if goes else ())
    assert wave.waits == ({} if goes else {A: "no room"})


def test_those_of_one_wave_share_a_budget_and_the_cheaper_one_goes_first() -> None:
    both = [Leaver(A, "", "", None, {"ns/keep": 2}), Leaver(B, "", "", None, {"ns/keep": 1})]
    assert wave_of(both, {"ns/keep": 3}, {}, 0.0).goes == (A, B)
    wave = wave_of(both, {"ns/keep": 2}, {}, 0.0)
    assert wave.goes == (A,)
    assert wave.waits == {B: "disruption budget ns/keep allows 0 disruptions, 1 are needed"}


def test_a_gang_that_a_budget_never_lets_go_keeps_nobody_else() -> None:
    both = [Leaver(A, "", "", None, {"ns/keep": 2}), Leaver(B, "", "", None, {"ns/keep": 1})]
    assert wave_of(both, {"ns/keep": 1}, {}, 0.0).goes == (B,)


def test_a_budget_is_kept_though_the_time_has_come() -> None:
    late = Leaver(A, "", "no room", 0.0, {"ns/keep": 1})
    assert wave_of([late], {"ns/keep": -1}, {}, 1000.0).waits == {
        A: "disruption budget ns/keep allows 0 disruptions, 1 are needed"
    }


def test_gangs_of_a_queue_end_as_fast_as_it_allows_and_those_of_others_beside_them() -> None:
    three = [
        Leaver(A, "q", "", None),
        Leaver(B, "q", "", None),
        Leaver(GangKey("g/c"), "", "", None),
    ]
    wave = wave_of(three, {}, {"q": 1, "": 5}, 0.0)
    assert wave.goes == (A, "g/c")
    assert wave.waits == {B: "too many gangs of its queue have ended within this minute"}
