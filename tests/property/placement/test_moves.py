"""Moves against brute force on small clusters: every set of pods, every node.

::

    rack r1   a b         4 GPUs a node, pods alone and gangs of two, some of which
    rack r2   c d e       nobody may move; one gang waits
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters.movescheck import problems
from support.clusters.scene import RACK, Scene

from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.tables.pods import PodFlag
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.moves.proposals import NoHelp, Proposal, Unhelpful, propose
from muster.placement.question import Question

NODES = {"a": "r1", "b": "r1", "c": "r2", "d": "r2", "e": "r2"}
GPUS = 4


@dataclass(frozen=True)
class Runs:
    """One running gang: a node per member."""

    nodes: tuple[str, ...]
    gpus: int
    priority: int = 0
    stays: bool = False
    rack: bool = False


@dataclass(frozen=True)
class Case:
    """What runs, and what waits."""

    running: tuple[Runs, ...]
    members: int
    gpus: int
    rack: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    free = dict.fromkeys(NODES, GPUS)
    running: list[Runs] = []
    for _ in range(draw(st.integers(2, 6))):
        gpus = draw(st.sampled_from([1, 1, 2, 2, 3, 4]))
        size = draw(st.sampled_from([1, 1, 1, 2]))
        room = [name for name in NODES for _ in range(free[name] // gpus)]
        rack = draw(st.booleans()) if size > 1 else False
        if rack:
            room = [name for name in room if NODES[name] == draw(st.sampled_from(["r1", "r2"]))]
        if len(room) < size:
            continue
        nodes = tuple(draw(st.permutations(room))[:size])
        if rack and len({NODES[node] for node in nodes}) > 1:
            continue
        for node in nodes:
            free[node] -= gpus
        stays = draw(st.sampled_from([False, False, False, True]))
        running.append(Runs(nodes, gpus, draw(st.sampled_from([0, 0, 1, 2])), stays, rack))
    return Case(
        tuple(running), draw(st.integers(1, 3)), draw(st.sampled_from([3, 4])), draw(st.booleans())
    )


def scene_of(case: Case) -> tuple[Scene, GangKey]:
    scene = Scene("")
    for name, rack in NODES.items():
        scene.node(f"{name}:{GPUS}", block="x", rack=rack)
    for number, each in enumerate(case.running):
        spec = {"required_level": RACK} if each.rack else {}
        fields = {"priority": each.priority, "stays": each.stays}
        scene.crew(f"r{number}", each.nodes, each.gpus, spec=spec, **fields)  # type: ignore[arg-type]
    wish = {"required_level": RACK} if case.rack else {}
    key = scene.gang("waiting", case.members, case.gpus, priority=1, **wish)
    return scene, key


# --- brute force ------------------------------------------------------------------------

Price = tuple[int, int, int, int, int]
Pod = tuple[int, int]  # which gang, which member


def cheapest(case: Case) -> Price | None:
    """Return the least price of any moves after which the gang fits, None if none do."""
    pods = [
        (gang, member)
        for gang, each in enumerate(case.running)
        if not each.stays and each.priority <= 1
        for member in range(len(each.nodes))
    ]
    sets = [
        some for count in range(1, len(pods) + 1) for some in itertools.combinations(pods, count)
    ]
    for some in sorted(sets, key=lambda some: price(case, some)):
        if any(fits(case, free) for free in _placements(case, some)):
            return price(case, some)
    return None


def price(case: Case, moved: Sequence[Pod]) -> Price:
    gangs = {gang for gang, _ in moved}
    running = case.running
    return (
        max(running[gang].priority for gang in gangs),
        1000 * sum(running[gang].gpus * len(running[gang].nodes) for gang in gangs),
        len(gangs),
        len(moved),
        1000 * sum(running[gang].gpus for gang, _ in moved),
    )


def _placements(case: Case, moved: Sequence[Pod]) -> Iterator[dict[str, int]]:
    """Yield what is left free for every way to place the moved elsewhere."""
    at = {
        (gang, member): node
        for gang, each in enumerate(case.running)
        for member, node in enumerate(each.nodes)
    }
    for targets in itertools.product(NODES, repeat=len(moved)):
        if any(at[pod] == node for pod, node in zip(moved, targets, strict=True)):
            continue
        now = at | dict(zip(moved, targets, strict=True))
        free = dict.fromkeys(NODES, GPUS)
        for (gang, _), node in now.items():
            free[node] -= case.running[gang].gpus
        if min(free.values()) >= 0 and _together(case, now):
            yield free


def _together(case: Case, at: dict[Pod, str]) -> bool:
    return all(
        len({NODES[at[number, member]] for member in range(len(each.nodes))}) == 1
        for number, each in enumerate(case.running)
        if each.rack
    )


def fits(case: Case, free: dict[str, int]) -> bool:
    room = {name: amount // case.gpus for name, amount in free.items()}
    if not case.rack:
        return sum(room.values()) >= case.members
    racks = set(NODES.values())
    return any(sum(room[n] for n in NODES if NODES[n] == rack) >= case.members for rack in racks)


# --- the properties ---------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(cases())
def test_a_proven_proposal_is_the_cheapest_there_is_and_every_one_can_be_carried_out(
    case: Case,
) -> None:
    scene, key = scene_of(case)
    if sum(len(each.nodes) for each in case.running) > 5:
        return  # brute force tries 5 ** pods placements
    found = run(propose(scene.snapshot, Question(key)))
    if isinstance(found, Unhelpful) and found.reason is NoHelp.FITS_NOW:
        assert isinstance(plan_now(scene.snapshot, Question(key)), Plan)
        return
    best = cheapest(case)
    if isinstance(found, Proposal):
        assert problems(scene.snapshot, found) == []
        assert best is not None
        assert tuple(found.price) >= best
        if found.proven:
            assert tuple(found.price) == best
    elif found.certain and found.reason is not NoHelp.NEVER:
        assert best is None


@settings(max_examples=20, deadline=None)
@given(cases())
def test_the_same_snapshot_gives_the_same_moves(case: Case) -> None:
    scene, key = scene_of(case)
    first, second = (run(propose(scene.snapshot, Question(key))) for _ in range(2))
    if isinstance(first, Proposal):
        assert isinstance(second, Proposal)
        assert first.disturbed == second.disturbed
    else:
        assert first == second


@settings(max_examples=20, deadline=None)
@given(cases())
def test_another_free_node_never_makes_the_moves_dearer(case: Case) -> None:
    scene, key = scene_of(case)
    before = run(propose(scene.snapshot, Question(key)))
    scene.node(f"f:{GPUS}", block="x", rack="r2")
    after = run(propose(scene.snapshot, Question(key)))
    if not isinstance(before, Proposal):
        return
    if isinstance(after, Unhelpful):
        assert after.reason is NoHelp.FITS_NOW
    elif after.proven:
        assert after.price <= before.price


@settings(max_examples=20, deadline=None)
@given(cases())
def test_nobody_who_stays_is_ever_moved(case: Case) -> None:
    scene, key = scene_of(case)
    found = run(propose(scene.snapshot, Question(key)))
    if isinstance(found, Proposal):
        for move in found.moves:
            assert not int(scene.snapshot.pods.flags[move.pod]) & PodFlag.STAYS
            assert scene.snapshot.pods.priority[move.pod] <= 1
