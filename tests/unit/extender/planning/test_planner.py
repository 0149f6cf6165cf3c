"""The planner's loop on a real state: order, skips, windows, fairness, whole holds."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.planners import Bench

from extender.config.settings import ExtenderConfig
from extender.planning import planner, waitcauses
from extender.planning.requeue import FAILED_RETRY_S
from muster.cluster.events import NodeGone, PodGone
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.kube.names import RACK
from muster.placement import gang as gang_placement
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question
from muster.placement.reasons import explanation
from muster.placement.request import Rows


async def settle(bench: Bench) -> None:
    await bench.planner.settle()
    bench.state.validate()


async def test_higher_priority_gets_the_room() -> None:
    bench = Bench()
    bench.node("n1")
    low, high = bench.gang("low", 1), bench.gang("high", 1, priority=10)
    await settle(bench)
    assert bench.is_released(high)
    assert not bench.is_released(low)


async def test_of_equals_the_first_to_arrive_gets_the_room() -> None:
    bench = Bench()
    bench.node("n1")
    late, early = bench.gang("a", 1, at=900.0), bench.gang("b", 1, at=800.0)
    await settle(bench)
    assert bench.is_released(early)
    assert not bench.is_released(late)


async def test_a_gang_that_does_not_fit_is_counted_and_the_next_one_goes() -> None:
    bench = Bench()
    bench.node("n1")
    large, small = bench.gang("large", 2, priority=10), bench.gang("small", 1)
    await settle(bench)
    assert bench.is_released(small)
    assert bench.view(large).skips == 1
    assert bench.view(large).last_reason
    assert bench.planner.waiting == 1


async def test_gangs_that_take_longer_to_order_than_a_cycle_are_not_ordered_for_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at the clock is a millisecond: to go through 300 gangs takes three cycles."""
    bench = Bench(ExtenderConfig(spare_count=0, cycle_seconds=0.1))
    bench.node("n1")
    for number in range(300):
        bench.gang(f"g{number}", 2)
    orders, ordering = [], planner.order

    def counted(gangs: list[GangView], snapshot: Snapshot, now: float) -> Iterable[GangKey]:
        orders.append(len(gangs))
        return ordering(gangs, snapshot, now)

    monkeypatch.setattr(planner, "order", counted)
    await settle(bench)
    assert bench.planner.waiting == 300
    assert len(orders) < 60


async def test_a_gang_that_the_planner_fails_on_waits_alone_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The defect is made here: a search that cannot stand one gang."""
    bench, search = Bench(), gang_placement.plan

    def brittle(
        snapshot: Snapshot, question: Question, members: Rows | None = None
    ) -> Steps[Decision]:
        if question.gang.endswith("/odd"):
            raise ZeroDivisionError("of all things")
        return search(snapshot, question, members)

    bench.node("n1")
    bench.node("n2")
    odd, even = bench.gang("odd", 1, priority=10), bench.gang("even", 1)
    with monkeypatch.context() as broken:
        broken.setattr(gang_placement, "plan", brittle)
        await settle(bench)
    assert bench.is_released(even)
    assert bench.planner.why(bench.view(odd)) == "PlannerFailed"
    lines = " ".join(waitcauses.lines(bench.view(odd), bench.planner.decisions[odd]))
    assert "ZeroDivisionError: of all things (planning/test_planner.py:" in lines
    assert "dump" in lines
    bench.now += FAILED_RETRY_S
    await settle(bench)
    assert bench.is_released(odd)


async def test_a_plan_that_breaks_a_rule_is_counted_and_never_held(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The defect is made here: a search that puts all members on the node of the first."""
    bench, search = Bench(), gang_placement.plan

    def careless(
        snapshot: Snapshot, question: Question, members: Rows | None = None
    ) -> Steps[Decision]:
        found = yield from search(snapshot, question, members)
        return replace(found, nodes=found.nodes * 0) if isinstance(found, Plan) else found

    bench.node("n1")
    bench.node("n2")
    pair = bench.gang("pair", 2)
    with monkeypatch.context() as broken:
        broken.setattr(gang_placement, "plan", careless)
        await settle(bench)
    assert not bench.is_released(pair)
    assert bench.planner.why(bench.view(pair)) == "UnsoundPlan"
    assert faults(bench, "unsound") == 1
    (line,) = [record for record in caplog.records if record.message == "plan refused"]
    assert [node for _, node in line.plan] == ["n1", "n1"]  # type: ignore[attr-defined]
    bench.now += FAILED_RETRY_S
    await settle(bench)
    assert bench.is_released(pair)


async def test_a_gang_without_room_waits_for_room_though_its_explanation_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The defect is made here: an explanation that cannot stand any gang."""
    bench = Bench()
    bench.node("n1")
    large = bench.gang("large", 2)

    def speechless(*_: object) -> Steps[Decision]:
        raise IndexError("of all things")

    monkeypatch.setattr(gang_placement, "wait", speechless)
    await settle(bench)
    assert bench.planner.why(bench.view(large)) == "NotEnoughRoom"
    told = " ".join(waitcauses.lines(bench.view(large), bench.planner.decisions[large]))
    assert "IndexError: of all things (planning/test_planner.py:" in told
    assert faults(bench, "explanation") == 1


async def test_a_decision_holds_though_it_cannot_be_put_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.node("n1")
    small = bench.gang("small", 1)

    def mute(*_: object) -> list[str]:
        raise KeyError("of all things")

    monkeypatch.setattr(explanation, "render", mute)
    await settle(bench)
    assert bench.is_released(small)
    assert faults(bench, "explanation") == 1


def faults(bench: Bench, kind: str) -> float:
    """Return how many faults of a kind were counted."""
    registry = bench.metrics.registry
    return registry.get_sample_value("muster_planner_faults_total", {"kind": kind}) or 0.0


async def test_a_waiting_gang_is_not_looked_at_again_before_something_changes() -> None:
    bench = Bench()
    bench.node("n1")
    large = bench.gang("large", 2)
    await settle(bench)
    await settle(bench)
    assert bench.view(large).skips == 1


async def test_a_round_in_which_no_gang_is_ready_takes_no_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.node("n1")
    bench.gang("here", 1)
    await settle(bench)
    taken = []
    snapshot = ClusterState.snapshot
    monkeypatch.setattr(ClusterState, "snapshot", lambda self: taken.append(0) or snapshot(self))
    bench.gang("half", 2, size=4)  # its other members have not come
    await settle(bench)
    assert not taken
    bench.gang("whole", 1)
    await settle(bench)
    assert taken


async def test_freed_room_is_offered_to_whoever_waits_in_order() -> None:
    bench = Bench()
    bench.node("n1")
    first = bench.gang("first", 1)
    await settle(bench)
    low, high = bench.gang("low", 1, at=1.0), bench.gang("high", 1, priority=5)
    await settle(bench)
    bench.engine.apply(PodGone(bench.released[0]))
    await settle(bench)
    assert bench.is_released(high)
    assert not bench.is_released(low)
    assert first != high


async def test_a_gang_of_unknown_size_is_planned_when_its_window_is_over() -> None:
    bench = Bench(ExtenderConfig(spare_count=0, assembly_window_seconds=5))
    bench.node("n1")
    key = bench.gang("g", 2, gpus=1, size=None)
    await settle(bench)
    assert not bench.is_released(key)
    bench.now += 4.9
    bench.member(key, 2, gpus=1)
    await settle(bench)
    bench.now += 4.9
    await settle(bench)
    assert not bench.is_released(key), "a new member opens the window anew"
    bench.now += 0.2
    await settle(bench)
    assert bench.is_released(key)
    assert len(bench.released) == 3


async def test_a_contradictory_gang_is_refused_with_its_problems() -> None:
    bench = Bench()
    bench.node("n1")
    key = bench.gang("g", 1, problems=("gang-size: 4 and 8",))
    await settle(bench)
    assert not bench.is_released(key)
    assert "4 and 8" in str(bench.planner.decisions[key])


async def test_a_begun_gang_goes_before_any_priority() -> None:
    bench = Bench()
    bench.node("n1", gpus=16)
    half = bench.gang("half", 2)
    await settle(bench)
    bench.engine.apply(PodGone(bench.released[1]))
    bench.member(half, 1)
    urgent = bench.gang("urgent", 1, priority=1_000_000)
    await settle(bench)
    assert bench.is_released(half)
    assert not bench.is_released(urgent)


async def test_a_plan_that_goes_stale_while_it_is_made_is_made_again() -> None:
    bench = Bench()
    for index in range(40):
        bench.node(f"n{index:02}")
    key = bench.gang("g", 20)

    async def disturb() -> None:
        for index in range(20):
            bench.engine.apply(NodeGone(f"n{index:02}"))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(bench.planner.settle())
        group.create_task(disturb())
    bench.now += 1.0  # a gang whose plans were stale three times in a row is left for a moment
    await settle(bench)
    assert bench.is_released(key)
    nodes = bench.state.snapshot().nodes
    for uid in bench.released:
        hold = bench.state.hold(uid)
        assert hold is not None
        row = nodes.row(hold.node)
        assert row is not None
        assert nodes.alive[row]


async def test_filter_sees_no_part_of_a_plan_before_all_of_it_is_held() -> None:
    bench = Bench()
    for index in range(32):
        bench.node(f"n{index:02}")
    key = bench.gang("g", 32)
    counts: set[int] = set()

    async def look() -> None:
        while not bench.is_released(key):
            holds = [bench.state.hold(uid) for uid in members]
            counts.add(sum(1 for h in holds if h is not None and bench.holding.counts(h)))
            await asyncio.sleep(0)

    members = [bench.state.pod_uid(row) for row in bench.view(key).waiting.tolist()]
    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        group.create_task(bench.planner.settle())
    assert counts <= {0, 32}


async def test_hundreds_of_waiting_gangs_do_not_keep_a_new_one_from_its_place() -> None:
    bench = Bench()
    for index in range(4):
        bench.node(f"n{index}")
    for index in range(300):
        bench.gang(f"w{index}", 5, gpus=8)
    await settle(bench)
    assert bench.planner.waiting == 300
    small = bench.gang("small", 1)
    await settle(bench)
    assert bench.is_released(small)


@pytest.mark.parametrize("seconds", [10.0])
async def test_a_deferred_gang_is_left_alone_for_that_long(seconds: float) -> None:
    bench = Bench()
    bench.node("n1")
    key = bench.gang("g", 1)
    bench.worklist.defer(key, seconds)
    await settle(bench)
    assert not bench.is_released(key)
    bench.now += seconds
    await settle(bench)
    assert bench.is_released(key)


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    nodes=st.integers(1, 12),
    ends=st.lists(st.integers(0, 60), max_size=12),
)
def test_gangs_are_placed_whole_or_not_at_all_and_none_that_fits_is_left(
    sizes: list[int], nodes: int, ends: list[int]
) -> None:
    async def run() -> None:
        bench = Bench()
        for index in range(nodes):
            bench.node(f"n{index:02}")
        gangs: dict[GangKey, int] = {}
        for index, size in enumerate(sizes):
            gangs[bench.gang(f"g{index}", size)] = size
        await settle(bench)
        for end in ends:
            if bench.released:
                gone = bench.released.pop(end % len(bench.released))
                key = bench.state.gang_of(gone)
                bench.engine.apply(PodGone(gone))
                if key is not None:
                    gangs.pop(key, None)  # it has lost a member: no longer of its size
            await settle(bench)
        used = sum(
            len(view.released) for key in bench.state.gangs() if (view := bench.state.gang(key))
        )
        for key, size in gangs.items():
            view = bench.view(key)
            assert len(view.released) in (0, size)
            if not len(view.released):
                assert size > nodes - used, "it fits and was left waiting"

    asyncio.run(run())


async def test_a_preference_that_is_required_for_a_while_relaxes_by_itself() -> None:
    bench = Bench()
    bench.node("n1", rack="r1")
    bench.node("n2", rack="r2")
    gang = bench.gang("g", 2, at=bench.now, preferred_level=RACK, relax_after=60.0)
    await settle(bench)
    assert not bench.is_released(gang)
    bench.now += 59.0
    await settle(bench)
    assert not bench.is_released(gang)
    bench.now += 1.0
    await settle(bench)
    assert bench.is_released(gang)


async def test_what_fits_no_node_there_is_is_looked_at_again_when_one_comes() -> None:
    bench = Bench()
    bench.node("n1")
    key = bench.gang("g", 1, gpus=16)
    await settle(bench)
    assert bench.planner.why(bench.view(key)) == "LargerThanAnyNode"
    bench.node("n2", gpus=16)
    await settle(bench)
    assert bench.is_released(key)


async def test_a_gang_whose_members_are_still_coming_is_not_sorted_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench, looked = Bench(), list[GangKey]()
    found = bench.state.gang

    def gang(_state: object, key: GangKey) -> GangView | None:
        looked.append(key)
        return found(key)

    monkeypatch.setattr(type(bench.state), "gang", gang)
    caplog.set_level("DEBUG", "extender.reporting.reporter")
    bench.node("n1")
    key = bench.gang("train", 1, min_count=2, size=2)
    await bench.planner.settle()
    assert not looked
    said = [vars(record) for record in caplog.records if record.message == "gang incomplete"]
    assert [(each["gang"], each["present"], each["needed"]) for each in said] == [(key, 1, 2)]
    bench.node("n2")
    bench.member(key, 1)
    await bench.planner.settle()
    assert bench.is_released(key)
