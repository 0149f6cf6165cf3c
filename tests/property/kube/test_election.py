"""Elections under lost, late and repeated messages, pauses, crashes and clocks that disagree.

Time here is the world's; each candidate sees it through a clock with an offset and a speed of
its own. The Lease lives on a server that does what the API server does with resourceVersion.

    lease 15 s │ deadline 10 s │ a write ends 4 s after it was sent, at the latest
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muster.kube.leading import election
from muster.kube.leading.election import (
    Candidate,
    Create,
    Decision,
    ElectionTimes,
    LeaseRecord,
    Lost,
    Read,
    Renew,
    Rest,
    Take,
    decide,
)

RULES = ElectionTimes(lease_s=15, deadline_s=10, retry_s=2)
WRITE_S = 4.0  # as the default configuration has it; 1 s is left for clocks
STEP_S = 0.5
SLOW_S = 3.0
SPEEDS = st.floats(0.98, 1.02)
OFFSETS = st.floats(-1e6, 1e6)
FATES = st.sampled_from(
    [
        *["ok"] * 4,
        "slow",  # its answer takes SLOW_S
        "lost",
        "late",  # given up by who sent it, and arrives at any time
        "deaf",  # arrives, its answer is lost
    ]
)
ONE_FARES_BADLY = FATES.flatmap(lambda fate: st.permutations([fate, "ok", "ok"]))
ALL_FATES = st.tuples(*[FATES] * 3) | ONE_FARES_BADLY.map(tuple)
PERIODS = st.sampled_from([1.0, 3.0, 6.0, 12.0, 16.0, 20.0])
PERSONS = st.integers(0, 2)
SECONDS = st.sampled_from([0.05, 0.5, 1.0, 2.0, 4.0, 5.0, 9.9, 10.1, 14.0, 15.5])


class Refused(Exception):
    """The server's 409 or 404."""


@dataclass
class Server:
    """One Lease with optimistic concurrency."""

    record: LeaseRecord | None = None
    version: int = 0

    def handle(self, who: str, request: Decision) -> LeaseRecord | None:
        """Answer a request, or raise ``Refused``."""
        match request:
            case Read():
                return self.record
            case Create():
                if self.record is not None:
                    raise Refused
                return self._write(who, 0)
            case Take(version, transitions):
                self._check(version)
                return self._write(who, transitions)
            case Renew(version):
                self._check(version)
                return self._write(who, self.record.transitions if self.record else 0)
        raise AssertionError(request)

    def release(self, who: str) -> None:
        if self.record is not None and self.record.holder == who:
            self._write("", self.record.transitions)

    def _check(self, version: str) -> None:
        if self.record is None or self.record.version != version:
            raise Refused

    def _write(self, who: str, transitions: int) -> LeaseRecord:
        self.version += 1
        self.record = LeaseRecord(str(self.version), who, RULES.lease_s, transitions)
        return self.record


@dataclass
class Person:
    """A process: its clock, what it knows, and the request whose answer it waits for."""

    number: int
    offset: float
    speed: float
    life: int = 0
    me: Candidate = field(init=False)
    asked: Decision | None = None
    asked_at: float = 0.0  # by the world's time
    answer: LeaseRecord | Refused | None = None
    answered: bool = False
    paused: bool = False
    over: bool = False
    writes_end: float = float("-inf")  # when the last write it sent has surely ended

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start a new process: new identity, nothing known; what was written goes on."""
        self.life += 1
        self.me = Candidate(f"{self.number}_{self.life}", RULES)
        self.asked, self.answered, self.paused, self.over = None, False, False, False

    def now(self, world: float) -> float:
        return self.offset + self.speed * world

    def may_write(self, world: float) -> bool:
        return not self.over and not self.paused and self.now(world) < self.me.leads_until


class Elections(RuleBasedStateMachine):
    """Three candidates; every message may fare badly."""

    @initialize(clocks=st.tuples(*[st.tuples(OFFSETS, SPEEDS)] * 3), quiet=st.booleans())
    def start(self, clocks: tuple[tuple[float, float], ...], quiet: bool) -> None:  # noqa: FBT001
        self.world = 0.0
        self.server = Server()
        self.late: list[tuple[str, Decision]] = []
        self.people = [Person(n, offset, speed) for n, (offset, speed) in enumerate(clocks)]
        if quiet:
            self.a_while_passes(RULES.lease_s + 10, ("ok", "ok", "ok"))

    # -- what happens ----------------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.world += seconds

    @rule(seconds=PERIODS, fates=ALL_FATES)
    def a_while_passes(self, seconds: float, fates: tuple[str, str, str]) -> None:
        """Let everybody act and write twice a second, each with requests that fare alike."""
        for _ in range(round(seconds / STEP_S)):
            self.world += STEP_S
            for person, fate in zip(self.people, fates, strict=True):
                self._arrive_once(person)
                if person.asked is not None and self.world >= person.asked_at + SLOW_S:
                    self.a_slow_answer_arrives_or_is_given_up(person.number, heard=True)
                self.act(person.number, fate)
                self.at_most_one_may_write()
                self.writes_if_it_may(person.number)

    @rule(who=PERSONS, fate=FATES)
    def act(self, who: int, fate: str) -> None:
        """Let a candidate do what it decides; ``fate`` is what becomes of its request."""
        person = self.people[who]
        if person.over or person.paused or person.asked is not None:
            return
        request = self._decide(person)
        if request is None:
            return
        if fate == "slow":
            person.asked = request
        elif fate in ("ok", "deaf"):
            self._arrive(person, request)
            self._hear(person, heard=fate == "ok")
        else:
            if fate == "late":
                self.late.append((person.me.identity, request))
            self._hear(person, heard=False)

    @rule(who=PERSONS)
    def a_slow_request_arrives(self, who: int) -> None:
        self._arrive_once(self.people[who])

    @rule(who=PERSONS, heard=st.booleans())
    def a_slow_answer_arrives_or_is_given_up(self, who: int, heard: bool) -> None:  # noqa: FBT001
        person = self.people[who]
        if person.asked is None or person.paused:
            return
        if not person.answered:
            self.late.append((person.me.identity, person.asked))
        self._hear(person, heard=heard and person.answered)

    @precondition(lambda self: self.late)
    @rule(index=st.integers(0, 9))
    def a_late_request_arrives(self, index: int) -> None:
        who, request = self.late.pop(index % len(self.late))
        try:
            self.server.handle(who, request)
        except Refused:
            return

    @rule(who=PERSONS)
    def a_hint_comes_from_the_watch(self, who: int) -> None:
        person = self.people[who]
        if not person.paused:
            person.me = election.hinted(person.me)

    @rule(who=PERSONS)
    def writes_if_it_may(self, who: int) -> None:
        person = self.people[who]
        if not person.may_write(self.world):
            return
        for other in self.people:
            assert other is person or other.writes_end <= self.world, "two leaders write at once"
        person.writes_end = self.world + WRITE_S

    @rule(who=PERSONS)
    def is_stopped(self, who: int) -> None:
        self.people[who].paused = True

    @rule(who=PERSONS)
    def goes_on(self, who: int) -> None:
        self.people[who].paused = False

    @rule(who=PERSONS)
    def is_killed_and_started_again(self, who: int) -> None:
        self.people[who].begin()

    @rule(who=PERSONS)
    def resigns(self, who: int) -> None:
        """Stop writing; give the Lease up when nothing is under way any more."""
        person = self.people[who]
        if person.may_write(self.world) and person.writes_end <= self.world:
            person.over = True
            self.server.release(person.me.identity)

    @rule()
    def somebody_deletes_the_lease(self) -> None:
        self.server.record = None

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def at_most_one_may_write(self) -> None:
        people = getattr(self, "people", [])
        assert sum(person.may_write(self.world) for person in people) <= 1

    def teardown(self) -> None:
        """When everything works again there is exactly one leader, after four leases at most."""
        if not hasattr(self, "people"):
            return
        for person in self.people:
            person.begin() if person.over or person.paused else None
            person.asked, person.answered = None, False
        for _ in range(4):
            self.a_while_passes(RULES.lease_s, ("ok", "ok", "ok"))
            for person in self.people:
                if person.over:
                    person.begin()
        assert sum(person.may_write(self.world) for person in self.people) == 1

    # -- inside ----------------------------------------------------------------------------------

    def _decide(self, person: Person) -> Decision | None:
        now = person.now(self.world)
        request = decide(person.me, now)
        match request:
            case Lost():
                person.over = True
                return None
            case Rest(until):
                assert until > now
                return None
            case Read():
                person.me = election.reading(person.me, now)
            case _:
                person.me = election.writing(person.me, now)
        person.asked, person.answered, person.asked_at = request, False, self.world
        return request

    def _arrive_once(self, person: Person) -> None:
        if person.asked is not None and not person.answered:
            self._arrive(person, person.asked)

    def _arrive(self, person: Person, request: Decision) -> None:
        person.asked, person.answered = request, True
        try:
            person.answer = self.server.handle(person.me.identity, request)
        except Refused as refused:
            person.answer = refused

    def _hear(self, person: Person, *, heard: bool) -> None:
        now, asked, answer = person.now(self.world), person.asked, person.answer
        person.asked, person.answered = None, False
        if not heard:
            person.me = election.failed(person.me, now, RULES.retry_s)
        elif isinstance(answer, Refused):
            person.me = election.outrun(person.me)
        elif isinstance(asked, Read):
            person.me = election.seen(person.me, answer, now)
        else:
            assert answer is not None
            person.me = election.acknowledged(person.me, answer, now)


TestElections = Elections.TestCase
