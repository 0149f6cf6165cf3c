"""Whatever a namespace does, the room held for pods that are never stored has a bound.

::

    ──── begins … ──┤ the first one comes short ├── gated: 10, 20, 40 … 240 min ──┤ begins … ───
                    └── those begun before it end within a life
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.queueing.reservationterms import (
    FIRST_PENALTY_S,
    MOST_EXPECTED,
    MOST_PENALTY_S,
    Payer,
    ReservationTerms,
    Term,
    payers,
)

LIFE_S = 80.0
STEP_S = 10.0
TEAM, OTHERS = "team-a", "team-b"


@dataclass
class World:
    """A clock, the terms that are open, and the pod seconds of those that came short."""

    now: float = 0.0
    terms: ReservationTerms = field(default_factory=lambda: ReservationTerms(LIFE_S))
    open: dict[Term, float] = field(default_factory=dict)
    wasted: float = 0.0

    def begin(self, members: int) -> None:
        if not self.terms.problem(payers(TEAM), members, self.now):
            self.open[self.terms.begin(payers(TEAM), members, self.now)] = self.now
        assert self.terms.expected(Payer("namespace", TEAM)) <= MOST_EXPECTED
        assert not self.terms.problem(payers(OTHERS), MOST_EXPECTED, self.now)

    def store(self, which: int) -> None:
        if not self.open:
            return
        term = [*self.open][which % len(self.open)]
        term.stored(self.now)
        if not term.missing:
            self.terms.close(term)
            del self.open[term]

    def wait(self, seconds: float) -> None:
        """Look every ``STEP_S``, as the extender looks every second."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + STEP_S, end) if self.open else end
            for term, since in [*self.open.items()]:
                if term.until <= self.now:
                    self.terms.came_short(term, self.now)
                    del self.open[term]
                    held = self.now - since
                    assert held <= LIFE_S + STEP_S
                    self.wasted += term.missing * held
            self.terms.tidy(self.now)


def rounds(seconds: float) -> int:
    """Return how many penalties can begin in a time, less than a day."""
    count, penalty = 1, FIRST_PENALTY_S
    while seconds >= penalty:
        seconds -= penalty
        count, penalty = count + 1, min(2 * penalty, MOST_PENALTY_S)
    return count


step = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from([1, 2, 16, 4_096, MOST_EXPECTED])),
    st.tuples(st.just("store"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 19.0, LIFE_S, FIRST_PENALTY_S, 4 * 3600.0])),
)


@given(st.lists(step, max_size=40))
@settings(deadline=None)
def test_the_room_held_for_pods_that_are_never_stored_is_bounded_in_time_and_amount(
    steps: list[tuple[str, float]],
) -> None:
    world = World()
    for kind, value in steps:
        match kind:
            case "begin":
                world.begin(int(value))
            case "store":
                world.store(int(value))
            case "wait":
                world.wait(value)
    world.wait(LIFE_S)
    assert not world.open
    assert world.terms.expected(Payer("namespace", TEAM)) == 0
    one = MOST_EXPECTED * 2 * (LIFE_S + STEP_S)
    if world.now < 24 * 3600.0:
        assert world.wasted <= one * rounds(world.now)


def test_a_namespace_that_asks_all_day_holds_room_for_minutes() -> None:
    """The attack: as many gangs as it may have, again and again, and never a pod."""
    world = World()
    while world.now < 24 * 3600.0:
        world.begin(MOST_EXPECTED)
        world.wait(STEP_S)
    assert world.wasted <= MOST_EXPECTED * 12 * (LIFE_S + STEP_S)
    assert world.wasted >= MOST_EXPECTED * 20.0


def test_stored_pods_renew_a_term_up_to_its_life() -> None:
    world = World()
    world.begin(4_096)
    (term,) = world.open
    for _ in range(20):
        world.wait(STEP_S)
        world.store(0)
    assert world.open == {}
    assert term.end == LIFE_S
    assert "did not come" in world.terms.problem(payers(TEAM), 1, world.now)


def test_a_person_with_many_namespaces_is_one_payer() -> None:
    terms, users = ReservationTerms(LIFE_S), ("anna", "anna", "boris")
    first = terms.begin(payers("team-0", "anna"), MOST_EXPECTED, 0.0)
    answers = [terms.problem(payers(f"team-{n + 1}", who), 1, 0.0) for n, who in enumerate(users)]
    assert ["anna" in answer for answer in answers] == [True, True, False]
    terms.came_short(first, 20.0)
    assert "the user anna" in terms.problem(payers("team-9", "anna"), 1, 30.0)
    assert not terms.problem(payers("team-9", "boris"), 1, 30.0)
    assert not terms.problem(payers("team-9", "anna"), 1, 20.0 + FIRST_PENALTY_S)


def test_a_controller_does_not_answer_for_whom_it_creates_pods() -> None:
    controller = "system:serviceaccount:kube-system:job-controller"
    terms = ReservationTerms(LIFE_S)
    first = terms.begin(payers("team-0", controller), MOST_EXPECTED, 0.0)
    terms.came_short(first, 20.0)
    assert terms.problem(payers("team-0", controller), 1, 30.0)
    assert not terms.problem(payers("team-1", controller), MOST_EXPECTED, 30.0)
