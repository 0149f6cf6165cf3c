"""The planner with queues: who goes, who waits, and why.

::

    cluster (what the nodes have) ─┬─ muster/a   entitled 8 GPUs
                                   └─ muster/b   entitled 8 GPUs      named "a" and "b" everywhere
"""

import pytest
from support.clusters.planners import Bench

from extender.planning.queueturns import Allowance, QueueTurns
from muster.cluster.events import NamespaceUpserted, QueueGone, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.placement.decision import Wait, WaitReason

GPU = Cell("", "nvidia.com/gpu")
ROOT = QueueName("muster/cluster")


def _queues(bench: Bench, *names: str, limit: int = UNLIMITED, **fields: object) -> None:
    bench.engine.apply(QueueUpserted(QueueSpec(ROOT, is_whole=True, is_cluster=True)))
    for name in names:
        quotas = {GPU: Quota(entitled=8, limit=limit)}
        spec = QueueSpec(QueueName(f"muster/{name}"), ROOT, quotas, **fields)  # type: ignore[arg-type]
        bench.engine.apply(QueueUpserted(spec, (Spelling("", name),)))


def _bench(nodes: int) -> Bench:
    bench = Bench()
    for number in range(nodes):
        bench.node(f"n{number}")
    return bench


def _placed(bench: Bench, *keys: GangKey) -> list[int]:
    views = [bench.state.gang(key) for key in keys]
    return [0 if view is None else len(view.released) for view in views]


def _why(bench: Bench, key: GangKey) -> str:
    decision = bench.planner.decisions[key]
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.OVER_QUOTA
    return decision.explanation.cause


async def test_a_queue_takes_what_others_leave_idle_and_no_more_than_its_limit() -> None:
    bench = _bench(3)
    _queues(bench, "a", "b", limit=16)
    first, second, third = (bench.gang(name, 1, queue="a") for name in "xyz")

    await bench.planner.settle()

    assert _placed(bench, first, second, third) == [1, 1, 0]
    assert "queue muster/a has 0 nvidia.com/gpu left" in _why(bench, third)


async def test_who_is_within_its_entitlement_goes_before_who_borrows() -> None:
    bench = _bench(3)
    _queues(bench, "a", "b")
    large, own = bench.gang("large", 3, queue="a", priority=9), bench.gang("own", 1, queue="b")

    await bench.planner.settle()

    assert _placed(bench, large, own) == [0, 1]


async def test_a_gang_that_names_a_queue_that_does_not_exist_waits_until_there_is_one() -> None:
    bench = _bench(1)
    _queues(bench, "a")
    lost = bench.gang("lost", 1, queue="c")

    await bench.planner.settle()
    assert 'no queue is named "c" in namespace ns' in _why(bench, lost)
    assert "name one of: a" in _why(bench, lost)

    _queues(bench, "c")
    await bench.planner.settle()
    assert _placed(bench, lost) == [1]


async def test_without_any_queue_a_name_of_one_means_nothing() -> None:
    bench = _bench(1)
    named = bench.gang("named", 1, queue="nowhere")

    await bench.planner.settle()

    assert _placed(bench, named) == [1]


async def test_gangs_without_a_queue_take_turns_with_the_others_by_priority() -> None:
    bench = _bench(2)
    _queues(bench, "a")
    low, free = bench.gang("low", 1, queue="a"), bench.gang("free", 1, priority=1)
    high = bench.gang("high", 1, queue="a", priority=2)

    await bench.planner.settle()

    assert _placed(bench, low, free, high) == [0, 1, 1]


async def test_a_closed_queue_admits_nobody_and_says_so() -> None:
    bench = _bench(1)
    _queues(bench, "a", is_open=False)
    waits = bench.gang("waits", 1, queue="a")

    await bench.planner.settle()

    assert "queue muster/a is closed" in _why(bench, waits)


async def test_what_no_queue_could_ever_hold_is_said_before_anything_runs() -> None:
    bench = _bench(4)
    _queues(bench, "a", limit=16)
    huge = bench.gang("huge", 3, queue="a")

    await bench.planner.settle()

    assert "can never have more than 16 nvidia.com/gpu" in _why(bench, huge)


async def test_a_gang_goes_once_a_gang_of_its_queue_has_ended() -> None:
    bench = _bench(2)
    _queues(bench, "a", limit=8)
    first, second = bench.gang("first", 1, queue="a"), bench.gang("second", 1, queue="a")
    await bench.planner.settle()
    assert _placed(bench, first, second) == [1, 0]

    bench.end(first)
    await bench.planner.settle()

    assert _placed(bench, second) == [1]


async def test_in_a_strict_queue_nobody_passes_the_first() -> None:
    bench = _bench(2)
    _queues(bench, "a", is_strict=True)
    first = bench.gang("first", 3, queue="a", at=1.0)
    small = bench.gang("small", 1, queue="a", at=2.0)

    await bench.planner.settle()

    assert _placed(bench, first, small) == [0, 0]
    assert "first is before it in queue muster/a" in _why(bench, small)


async def test_a_strict_queue_stays_strict_in_later_rounds() -> None:
    bench = _bench(2)
    _queues(bench, "a", is_strict=True)
    first = bench.gang("first", 3, queue="a", at=1.0, gpus=4)
    await bench.planner.settle()
    assert _placed(bench, first) == [3]
    second = bench.gang("second", 2, queue="a", at=2.0)
    await bench.planner.settle()

    small = bench.gang("small", 1, queue="a", at=3.0, gpus=1)
    await bench.planner.settle()

    assert _placed(bench, second, small) == [0, 0]


async def test_a_view_that_is_older_than_the_snapshot_is_counted_as_the_snapshot_has_it() -> None:
    """Pods go while a cycle's gangs are put in order, in slices."""
    bench = _bench(2)
    _queues(bench, "a")
    gang = bench.gang("gang", 2, queue="a", min_count=1)
    view = bench.state.gang(gang)
    assert view is not None
    bench.end(gang)
    turns, snapshot = QueueTurns(bench.engine), bench.state.snapshot()
    line = run(turns.open_line([view], [], snapshot, bench.planner.parts.claims))
    assert line.next() == gang


async def test_members_above_a_minimum_take_nothing_from_another_gangs_minimum() -> None:
    bench = _bench(3)
    _queues(bench, "a", "b")
    elastic = bench.gang("elastic", 3, queue="a", priority=5, min_count=1)
    other = bench.gang("other", 1, queue="b")

    await bench.planner.settle()

    assert _placed(bench, elastic, other) == [2, 1]


async def test_members_above_a_minimum_stay_within_the_queues_limit() -> None:
    bench = _bench(3)
    _queues(bench, "a", limit=16)
    elastic = bench.gang("elastic", 3, queue="a", min_count=1)

    await bench.planner.settle()

    assert _placed(bench, elastic) == [2]


async def test_a_queue_that_is_deleted_leaves_its_running_gangs_alone() -> None:
    bench = _bench(2)
    _queues(bench, "a")
    runs = bench.gang("runs", 1, queue="a")
    await bench.planner.settle()

    bench.engine.apply(QueueGone(QueueName("muster/a")))
    waits = bench.gang("waits", 1, queue="a")
    await bench.planner.settle()

    assert _placed(bench, runs, waits) == [1, 0]
    bench.state.validate()


async def test_a_gang_of_a_namespace_that_may_not_use_a_queue_waits_until_it_may() -> None:
    bench = _bench(1)
    bench.engine.apply(NamespaceUpserted("ns", {"team": "red"}))
    _queues(bench)
    blue = (Requirement("team", Operator.IN, ("blue",)),)
    spec = QueueSpec(QueueName("muster/a"), ROOT, {GPU: Quota(8)})
    bench.engine.apply(QueueUpserted(spec, (Spelling("", "a"),), blue))
    waits = bench.gang("waits", 1, queue="a")
    await bench.planner.settle()
    assert "namespace ns may not use queue muster/a" in _why(bench, waits)

    bench.engine.apply(QueueUpserted(spec, (Spelling("", "a"),)))
    await bench.planner.settle()

    assert _placed(bench, waits) == [1]


async def test_a_stopped_name_of_an_open_queue_admits_nobody() -> None:
    bench = _bench(1)
    _queues(bench)
    spec = QueueSpec(QueueName("kueue/shared"), ROOT, {GPU: Quota(8)})
    names = (Spelling("ns", "stopped", is_open=False), Spelling("ns", "open"))
    bench.engine.apply(QueueUpserted(spec, names))
    waits, goes = bench.gang("waits", 1, queue="stopped"), bench.gang("goes", 1, queue="open")

    await bench.planner.settle()

    assert _placed(bench, waits, goes) == [0, 1]
    assert '"stopped" is stopped' in _why(bench, waits)


async def test_where_a_controller_of_its_own_admits_gangs_no_quota_is_asked() -> None:
    bench = _bench(2)
    _queues(bench)
    spec = QueueSpec(QueueName("kueue/a"), None, {GPU: Quota(0)})
    name = (Spelling("ns", "a"),)
    bench.engine.apply(QueueUpserted(spec, name, is_elsewhere=True))
    goes = bench.gang("goes", 1, queue="a")
    await bench.planner.settle()
    assert _placed(bench, goes) == [1]

    bench.engine.apply(QueueUpserted(spec, name))
    waits = bench.gang("waits", 1, queue="a")
    await bench.planner.settle()
    assert _placed(bench, waits) == [0]


async def test_a_queue_above_others_holds_no_gangs() -> None:
    bench = _bench(1)
    _queues(bench, "a")
    spec = QueueSpec(QueueName("muster/b"), QueueName("muster/a"), {GPU: Quota(8)})
    bench.engine.apply(QueueUpserted(spec, (Spelling("", "b"),)))
    waits = bench.gang("waits", 1, queue="a")

    await bench.planner.settle()

    assert "muster/a is above other queues: name one below it, such as muster/b" in _why(
        bench, waits
    )


@pytest.mark.parametrize("parent", ["muster/a", "muster/none"])
async def test_below_a_cycle_or_a_missing_parent_nothing_new_is_admitted(parent: str) -> None:
    bench = _bench(2)
    _queues(bench, "a", "b")
    spec = QueueSpec(QueueName("muster/a"), QueueName(parent), {GPU: Quota(8)})
    bench.engine.apply(QueueUpserted(spec, (Spelling("", "a"),)))
    stopped, goes = bench.gang("stopped", 1, queue="a"), bench.gang("goes", 1, queue="b")

    await bench.planner.settle()

    assert _placed(bench, stopped, goes) == [0, 1]
    assert "parent" in _why(bench, stopped)


def _flavored(
    bench: Bench, spot: int, owned: int, *, resources: tuple[str, ...] = ("nvidia.com/gpu",)
) -> None:
    """One queue with two flavors, as Kueue writes it: nodes say which they are."""
    quotas = {Cell("spot", GPU.resource): Quota(spot), Cell("owned", GPU.resource): Quota(owned)}
    spot_nodes, owned_nodes = (Flavor(name, (("kind", name),)) for name in ("spot", "owned"))
    group = ResourceGroup(resources, (spot_nodes, owned_nodes))
    spec = QueueSpec(QueueName("kueue/a"), None, quotas)
    bench.engine.apply(QueueUpserted(spec, (Spelling("ns", "a"),), groups=(group,)))


def _kinds(bench: Bench, *keys: GangKey) -> list[str]:
    """Return the kinds of the nodes that gangs have, a letter for each member."""
    found = []
    for key in keys:
        holds = (bench.state.hold(uid) for uid in sorted(bench.state.members(key)))
        found.append("".join("-" if hold is None else hold.node[0] for hold in holds))
    return found


def _two_kinds(spot: int, owned: int) -> Bench:
    bench = Bench()
    for kind, count in (("spot", spot), ("owned", owned)):
        for number in range(count):
            bench.node(f"{kind}-{number}", labels={"kind": kind})
    return bench


async def test_a_gang_takes_the_first_flavor_that_has_quota_and_goes_to_its_nodes() -> None:
    bench = _two_kinds(2, 2)
    _flavored(bench, 8, 16)
    first, second, third, fourth = (
        bench.gang(name, 1, queue="a", at=i) for i, name in enumerate("wxyz", 1)
    )

    await bench.planner.settle()

    assert _kinds(bench, first, second, third, fourth) == ["s", "o", "o", "-"]
    assert "of flavor spot" in _why(bench, fourth)


async def test_a_gang_is_never_divided_between_flavors() -> None:
    bench = _two_kinds(1, 1)
    _flavored(bench, 8, 8)
    gang = bench.gang("both", 2, queue="a")

    await bench.planner.settle()

    assert _kinds(bench, gang) == ["--"]


async def test_where_the_nodes_of_a_flavor_are_full_the_next_one_is_tried() -> None:
    bench = _two_kinds(1, 2)
    _flavored(bench, 64, 64)
    small, large = (
        bench.gang("small", 1, queue="a", at=1.0),
        bench.gang("large", 2, queue="a", at=2.0),
    )

    await bench.planner.settle()

    assert _kinds(bench, small, large) == ["s", "oo"]


async def test_members_that_come_later_have_the_flavor_of_those_that_have_a_place() -> None:
    bench = _two_kinds(2, 2)
    _flavored(bench, 16, 16)
    gang = bench.gang("elastic", 3, queue="a", min_count=1)
    await bench.planner.settle()
    assert sorted(_kinds(bench, gang)[0]) == ["-", "s", "s"]

    bench.node("spot-2", labels={"kind": "spot"})
    await bench.planner.settle()
    assert sorted(_kinds(bench, gang)[0]) == ["-", "s", "s"]

    _flavored(bench, 24, 16)
    await bench.planner.settle()
    assert _kinds(bench, gang) == ["sss"]


async def test_a_gang_that_was_refused_takes_another_flavor_once_the_first_is_taken() -> None:
    bench = _two_kinds(1, 1)
    _flavored(bench, 0, 0)
    first, second = (
        bench.gang("first", 1, queue="a", at=1.0),
        bench.gang("second", 1, queue="a", at=2.0),
    )
    await bench.planner.settle()

    _flavored(bench, 8, 8)
    await bench.planner.settle()

    assert _kinds(bench, first, second) == ["s", "o"]


async def test_a_group_without_flavors_covers_nothing_and_stops_nobody_else() -> None:
    bench = _two_kinds(1, 0)
    _queues(bench, "b")
    spec = QueueSpec(QueueName("kueue/a"), None, {GPU: Quota(8)})
    empty = (ResourceGroup(("nvidia.com/gpu",), ()),)
    bench.engine.apply(QueueUpserted(spec, (Spelling("ns", "a"),), groups=empty))
    first, second = bench.gang("first", 1, queue="a"), bench.gang("second", 1, queue="b")

    await bench.planner.settle()

    assert _kinds(bench, first, second) == ["s", "-"]


async def test_an_enormous_request_is_refused_and_the_others_go() -> None:
    bench = _bench(2)
    _queues(bench, "a")
    huge = bench.gang("huge", 3, queue="a", gpus=2**62, priority=1)
    small = bench.gang("small", 1, queue="a")

    await bench.planner.settle()

    assert _placed(bench, huge, small) == [0, 1]


async def test_a_gang_whose_queue_cannot_be_asked_waits_alone_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = _bench(2)
    _queues(bench, "a", "b")
    broken = bench.gang("broken", 1, queue="a", priority=1)
    goes = bench.gang("goes", 1, queue="b")
    asked = QueueTurns.allowances

    def fails(self: QueueTurns, key: GangKey) -> list[Allowance]:
        if key == broken:
            raise ZeroDivisionError("by weight 0")
        return asked(self, key)

    monkeypatch.setattr(QueueTurns, "allowances", fails)
    await bench.planner.settle()

    assert _placed(bench, broken, goes) == [0, 1]
    assert "its queue cannot be asked: ZeroDivisionError: by weight 0" in _why(bench, broken)


async def test_what_no_flavor_covers_is_never_admitted() -> None:
    bench = _two_kinds(1, 1)
    _flavored(bench, 8, 8, resources=("cpu",))
    gang = bench.gang("gang", 1, queue="a")

    await bench.planner.settle()

    assert _kinds(bench, gang) == ["-"]
    assert "can never have more than 0 nvidia.com/gpu" in _why(bench, gang)


async def test_a_gang_that_was_refused_is_not_looked_at_again_before_its_queue_has_room() -> None:
    bench = _bench(3)
    _queues(bench, "a", limit=8)
    first = bench.gang("first", 1, queue="a", at=1.0)
    waits = [bench.gang(f"waits-{number}", 1, queue="a", at=2.0 + number) for number in range(3)]
    await bench.planner.settle()
    looks = [view.attempts for key in waits if (view := bench.state.gang(key))]

    other = bench.gang("other", 1, at=1.0)
    await bench.planner.settle()
    bench.end(other)  # room, but not for them
    await bench.planner.settle()

    after = [view.attempts for key in waits if (view := bench.state.gang(key))]
    assert after == looks
    bench.end(first)
    await bench.planner.settle()
    assert _placed(bench, *waits) == [1, 0, 0]


async def test_a_gang_that_never_gives_way_waits_where_such_gangs_use_the_entitlement() -> None:
    """Both queues are entitled to one of three nodes; priority 100 is firm, as in KAI."""
    bench = _bench(3)
    policy = PreemptionPolicy(firm_from=100, keeps_firm_within=True)
    _queues(bench, "a", "b", preemption=policy)
    first = bench.gang("first", 1, queue="a", priority=100)
    await bench.planner.settle()
    second = bench.gang("second", 1, queue="a", priority=100)
    loose = bench.gang("loose", 1, queue="a", priority=99)

    await bench.planner.settle()

    assert _placed(bench, first, second, loose) == [1, 0, 1]
    assert "it never gives way, so it runs only within what queue muster/a" in _why(bench, second)
