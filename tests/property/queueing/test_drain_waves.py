"""Waves of gangs that leave nodes, and where they go: drawn at random, checked from outside.

Never below a budget, never half a gang, never onto a node that leaves, never more gangs of a queue
within a minute than it allows; and whoever can go is gone in the end.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from support.clusters import roomscene
from support.clusters.roomscene import RoomScene
from support.clusters.scene import GPU, Scene

from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import Taint, TaintEffect
from muster.decisions.drainplan import ON_THE_WAY, UNOWNED, DrainedGang, drain_plan
from muster.placement.question import Question
from muster.queueing.drains.leavingnodes import leaving_nodes
from muster.queueing.drains.notices import Notice
from muster.queueing.drains.waves import Leaver, wave_of

BUDGETS, QUEUES = ("x", "y", "z"), ("a", "b")
NOW = 1000.0


@st.composite
def leavers(draw: st.DrawFn) -> list[Leaver]:
    found = []
    for number in range(draw(st.integers(0, 8))):
        held = draw(st.dictionaries(st.sampled_from(BUDGETS), st.integers(1, 4), max_size=2))
        found.append(
            Leaver(
                GangKey(f"g/{number}"),
                draw(st.sampled_from(QUEUES)),
                draw(st.sampled_from(["", "", "no room"])),
                draw(st.sampled_from([None, NOW - 1, NOW, NOW + 1])),
                held,
            )
        )
    return found


ALLOWED = st.dictionaries(st.sampled_from(BUDGETS), st.integers(-1, 6))
RATES = st.dictionaries(st.sampled_from(QUEUES), st.integers(-1, 3))


@given(leavers(), ALLOWED, RATES)
def test_a_wave_breaks_no_budget_and_no_rate_and_leaves_nobody_out_who_may_go(
    asked: list[Leaver], allowed: Mapping[str, int], rates: Mapping[str, int]
) -> None:
    wave = wave_of(asked, allowed, rates, NOW)
    goes = [one for one in asked if one.gang in wave.goes]
    taken, queues = Counter[str](), Counter(one.queue for one in goes)
    for one in goes:
        taken.update(one.held)
        assert not one.lacks or (one.until is not None and one.until <= NOW)
    assert all(pods <= allowed.get(budget, 0) for budget, pods in taken.items())
    assert all(count <= max(rates[name], 0) for name, count in queues.items() if name in rates)
    assert set(wave.goes) | set(wave.waits) == {one.gang for one in asked}
    assert not set(wave.goes) & set(wave.waits)
    for one in asked:
        if one.gang in wave.goes or (one.lacks and (one.until is None or one.until > NOW)):
            continue
        full = [name for name, n in one.held.items() if taken[name] + n > allowed.get(name, 0)]
        assert full or queues[one.queue] >= max(rates.get(one.queue, 9), 0), "it might have gone"


@given(leavers(), ALLOWED)
def test_wave_by_wave_everybody_goes_whom_the_budgets_allow_at_all(
    asked: list[Leaver], allowed: Mapping[str, int]
) -> None:
    """What a budget allows is there again once a wave has settled."""
    left = asked
    for _ in range(len(asked) + 1):
        wave = wave_of(left, allowed, {}, NOW + 1)
        left = [one for one in left if one.gang not in wave.goes]
        if not wave.goes:
            break
    for one in left:
        never = one.lacks and one.until is None
        assert never or any(n > allowed.get(name, 0) for name, n in one.held.items())


# --- places ---------------------------------------------------------------------------------------

DRAIN = Notice("drain", "it is drained")
TAINT = Taint("drain", "", TaintEffect.NO_SCHEDULE)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Six nodes of 8 GPUs, some of which leave, and gangs with members where there is room."""
    scene, free = Scene("a/r1 n0 n1 n2\na/r2 n3 n4 n5"), dict.fromkeys(range(6), 8)
    for number in range(draw(st.integers(1, 5))):
        gpu = draw(st.sampled_from([2, 4, 8]))
        nodes = []
        for _ in range(draw(st.integers(1, 3))):
            open_ = [node for node, left in free.items() if left >= gpu]
            if open_:
                nodes.append(draw(st.sampled_from(open_)))
                free[nodes[-1]] -= gpu
        if nodes:
            minimum = draw(st.integers(1, len(nodes)))
            owned = draw(st.sampled_from([True, True, True, False]))
            spec, names = {"min_count": minimum}, [f"n{node}" for node in nodes]
            scene.crew(f"g{number}", names, gpu, spec=spec, owned=owned)
    for node in draw(st.sets(st.integers(0, 5), min_size=1, max_size=3)):
        rack = f"r{1 + node // 3}"
        scene.node(f"n{node}", block="a", rack=rack, taints=(TAINT,))
    return scene


@given(scenes())
def test_no_half_gang_ends_and_all_that_have_a_place_fit_there_together(scene: Scene) -> None:
    snapshot = scene.state.snapshot()
    leaving = leaving_nodes(snapshot, [DRAIN], lambda _node, _key: 0.0)
    rows = {node.row for node in leaving}
    found = run(drain_plan(snapshot, leaving, lambda key: Question(key, now=NOW)))
    pods = snapshot.pods
    on = [row for node in rows for row in snapshot.nodes.pods_on(node).tolist()]
    there = {snapshot.gang_at(int(pods.gang[row])) for row in on}
    assert {one.gang for one in found} == there
    for one in found:
        _is_whole_or_spared(scene, one, rows)
    _fit_together(scene, found, rows)
    costs = [one.cost.lost for one in found if not one.fixed]
    assert costs == sorted(costs) or any(one.cost.gangs == 0 for one in found)


def test_work_before_the_last_checkpoint_is_not_lost() -> None:
    """old runs for 900 s, saved 10 s ago; new runs for 100 s; both on n0, so old goes first."""
    scene, now = RoomScene("a/r1 n0\na/r2 n1 n2"), roomscene.NOW
    old = scene.runs("old", ["n0"], 4, since=now - 900)
    new = scene.runs("new", ["n0"], 4, since=now - 100)
    scene.node("n0", block="a", rack="r1", taints=(TAINT,))
    snapshot = scene.state.snapshot()
    leaving = leaving_nodes(snapshot, [DRAIN], lambda _node, _key: 0.0)

    def lost(checkpoints: dict[GangKey, float]) -> dict[GangKey, int]:
        asks = partial(Question, now=now)
        found = run(drain_plan(snapshot, leaving, asks, checkpoints))
        return {one.gang: one.cost.lost for one in found}

    assert list(lost({}).items()) == [(new, 400), (old, 3600)]
    assert list(lost({old: now - 10}).items()) == [(old, 40), (new, 400)]


def _fit_together(scene: Scene, found: tuple[DrainedGang, ...], leaving: set[int]) -> None:
    snapshot = scene.state.snapshot()
    used = snapshot.nodes.used(GPU).copy()
    for one in (each for each in found if each.plan is not None):
        assert one.plan is not None
        assert not one.fixed
        assert not one.lacks
        for row in one.rows:
            used[snapshot.pods.node[row]] -= _gpus(scene, row)
        assert set(one.plan.pods.tolist()) <= set(one.rows)
        for row, node in zip(one.plan.pods.tolist(), one.plan.nodes.tolist(), strict=True):
            assert node not in leaving
            used[node] += _gpus(scene, row)
    assert (used <= snapshot.nodes.allocatable(GPU)).all()
    assert all(one.plan is not None or one.lacks or one.fixed for one in found)


def _gpus(scene: Scene, row: int) -> int:
    snapshot = scene.state.snapshot()
    return snapshot.classes[int(snapshot.pods.pod_class[row])].request(GPU)


def _is_whole_or_spared(scene: Scene, one: DrainedGang, rows: set[int]) -> None:
    snapshot = scene.state.snapshot()
    view = snapshot.gang(one.gang)
    assert view is not None
    assert view.spec is not None
    assert one.fixed in ("", UNOWNED)
    assert one.fixed != ON_THE_WAY
    ends, bound = set(one.rows), set(view.bound.tolist())
    assert ends <= bound
    if one.is_whole:
        assert ends == bound
    else:
        assert all(int(snapshot.pods.node[row]) in rows for row in ends)
        assert len(bound) - len(ends) >= view.spec.min_count
