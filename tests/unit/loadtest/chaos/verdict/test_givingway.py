"""Who gave way as it should, and who did not, judged by marks and by what holds room.

::

    queue own (8 GPUs)  preemptor p: one pod of 8 GPUs, waits
    queue lent (8)      victim v: one pod of 8 GPUs on n; other w: likewise on m
"""

from dataclasses import replace

import pytest

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.simulation.teams import GPU, Team
from loadtest.chaos.verdict.givingway import LATE_S, SOON_S, GivingWay
from loadtest.chaos.verdict.records import PodRecord, Records


def job(name: str, queue: str) -> Job:
    return Job(
        name=name, size=1, minimum=1, gpus=8, required="", seen=True, scheduler="", owned=True,
        grouped=False, urgent=False, lone=False, held=False, life_s=60.0, queue=queue,
    )  # fmt: skip


def pod(gang: str, node: str = "", uid: str = "") -> PodRecord:
    return PodRecord(
        uid=uid or gang, name=f"{gang}-0", gang=gang, node=node, phase="Pending", gated=not node,
        blocked=False, going=False, target=node, requests={GPU: 8},
    )  # fmt: skip


class Case:
    """A judge on records that the test writes; ``fits``: whether p has room without v."""

    def __init__(self) -> None:
        self.records = Records()
        self.jobs = {"p": job("p", "own"), "v": job("v", "lent"), "w": job("w", "lent")}
        self.fits, self.placed, self.now = True, set[str](), 1000.0
        self.judge = GivingWay(
            self.records,
            self.jobs,
            (Team("own", 8), Team("lent", 8)),
            lambda _job, _without: self.fits,
            lambda job: job.name in self.placed,
        )
        for each in (pod("p"), pod("v", "n"), pod("w", "m")):
            self.put(each)
        self.look(LATE_S)

    def put(self, now: PodRecord) -> None:
        was = self.records.pods.get(now.uid)
        self.records.pods[now.uid] = now
        self.records.by_name[now.name] = now.uid
        self.records.members.setdefault(now.gang, set()).add(now.uid)
        self.records._changed(was, now)

    def drop(self, uid: str) -> None:
        was = self.records.pods.pop(uid)
        self.records.members[was.gang].discard(uid)
        self.records._changed(was, None)

    def mark(self, preemptor: str = "muster/default/p") -> None:
        self.put(replace(self.records.pods["v"], gives_way_to=preemptor))

    def look(self, seconds: float = 1.0, *, is_rough: bool = False) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            self.judge.look(self.now, is_rough=is_rough)

    @property
    def found(self) -> list[str]:
        it = self.judge.findings
        return [*it.cycles, *it.below, *it.for_nothing, *it.half]


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_gang_that_gives_way_and_waits_until_the_other_runs_is_as_it_should_be(
    case: Case,
) -> None:
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.put(pod("v", uid="v2"))
    case.look(30)
    case.placed.add("p")
    case.put(pod("p", "n"))
    case.look()
    case.put(pod("v", "k", uid="v2"))
    case.look()
    case.judge.rest()

    assert case.found == []
    assert (case.judge.findings.orders, case.judge.findings.served) == (1, 1)


@pytest.mark.parametrize(("fits", "is_cycle"), [(True, True), (False, False)])
def test_a_gang_that_comes_back_to_the_room_that_the_other_needs_has_made_a_cycle(
    case: Case,
    fits: bool,  # noqa: FBT001  # a parameter of the test
    is_cycle: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.look()
    case.fits = fits
    case.put(pod("v", "n", uid="v2"))
    case.look()

    assert bool(case.judge.findings.cycles) is is_cycle


def test_after_a_fault_nobody_is_judged_by_what_may_not_be_known_yet(case: Case) -> None:
    case.put(pod("p", "n"))
    case.look(LATE_S, is_rough=True)
    case.put(pod("p"))
    case.look()
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.look()
    case.put(pod("v", "n", uid="v2"))
    case.look()

    assert case.found == []


def test_a_queue_that_is_taken_below_its_entitlement_is_found(case: Case) -> None:
    case.drop("w")
    case.look(LATE_S)
    case.mark()
    case.look(SOON_S + 1)

    assert case.judge.findings.below == [
        "gang v gives way to p: queue lent uses 8 GPUs with its 8, and is entitled to 8"
    ]


def test_a_queue_to_which_another_gang_comes_in_the_same_moment_is_not_below(case: Case) -> None:
    """Between two looks of the judge ``w`` comes and ``v`` goes: both are never seen together."""
    case.drop("w")
    case.look(LATE_S)
    case.mark()
    case.drop("v")
    case.put(pod("w", "m"))
    case.look(SOON_S + 1)

    assert case.found == []


def test_members_that_go_alone_leave_their_queue_what_the_others_hold(case: Case) -> None:
    case.drop("w")
    for number in range(3):
        case.put(pod("v", "n", uid=f"v{number}"))
    case.look(LATE_S)
    case.put(replace(case.records.pods["v"], gives_way_to="muster/default/p", members_going=1))
    case.look(SOON_S + 1)

    assert case.found == []


def test_an_eviction_for_a_gang_that_has_long_been_gone_is_for_nothing(case: Case) -> None:
    case.mark()
    case.jobs["p"].over = True
    case.look()
    case.jobs["p"].over = False
    case.drop("p")
    case.look(SOON_S + 1)

    case.judge.evicted("v")

    assert case.judge.findings.for_nothing == [
        "gang v is evicted for p, which does not wait any more"
    ]


def test_an_eviction_for_members_above_a_minimum_that_wait_is_not_for_nothing(case: Case) -> None:
    case.mark()
    case.put(pod("p", "n"))
    case.put(pod("p", uid="p2"))
    case.look(SOON_S + 1)

    case.judge.evicted("v")

    assert case.found == []


def test_a_gang_that_never_ran_though_another_gave_way_to_it_is_found_at_rest(case: Case) -> None:
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.look(LATE_S)

    case.judge.rest()

    assert case.judge.findings.for_nothing == ["gang v gave way to p, which never ran"]


def test_nobody_is_judged_by_a_gang_that_was_begun_anew_since_another_gave_way_to_it(
    case: Case,
) -> None:
    """Found by a run: the new one, with the old name, may wait for other room."""
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.look(SOON_S)
    case.drop("p")
    case.put(pod("p", uid="p2"))
    case.look(LATE_S + 3)

    case.judge.rest()

    assert case.found == []


@pytest.mark.parametrize(
    ("queue", "ranked", "is_right"),
    [("own", "high", True), ("own", "", False), ("lent", "high", False)],
)
def test_the_room_may_go_to_a_gang_of_the_same_queue_with_a_higher_priority(
    case: Case,
    queue: str,
    ranked: str,
    is_right: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    case.jobs["h"] = replace(job("h", queue), ranked=ranked)
    case.put(pod("h"))
    case.look()
    case.mark()
    case.judge.evicted("v")
    case.drop("v")
    case.look(3)
    case.put(pod("h", "n"))
    case.placed.add("h")
    case.look(LATE_S + 3)

    case.judge.rest()

    assert (case.judge.findings.for_nothing == []) == is_right
    assert case.judge.findings.overtaken == is_right


def test_a_marked_gang_that_is_still_there_at_rest_is_found(case: Case) -> None:
    case.mark()

    case.judge.rest()

    assert case.judge.findings.half == ["gang v is marked, and v-0 stays"]
