"""Lost members, several at once: their successors go where nothing nearer is to be had.

Small clusters, and an oracle that tries every way to place the successors beside those that stay.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement, product

from hypothesis import assume, given
from hypothesis import event as seen
from hypothesis import strategies as st
from support.clusters.scene import BLOCK, RACK, pod_class
from support.clusters.standby import Standby

from muster.cluster.ids import GangKey, PodUid
from muster.placement.decision import Plan, Wait

Cost = tuple[int, ...]
NEVER: Cost = (99,)


@dataclass(frozen=True)
class Case:
    """``hosts``: (block, rack, gpus). ``level``: required. ``lost``: ranks. ``fate``: of nodes."""

    hosts: list[tuple[int, int, int]]
    busy: list[int]
    size: int
    gpus: int
    level: str | None
    lost: list[int]
    fate: list[str]
    crowd: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hosts = [
        (block, rack, draw(st.sampled_from([8, 8, 4])))
        for block in range(draw(st.integers(1, 2)))
        for rack in range(draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    size = draw(st.integers(2, 6))
    some = st.lists(st.integers(0, len(hosts) - 1), unique=True, max_size=4)
    lost = draw(st.lists(st.integers(0, size - 1), unique=True, min_size=1, max_size=min(size, 4)))
    return Case(
        hosts,
        draw(some),
        size,
        draw(st.sampled_from([8, 4, 2])),
        draw(st.sampled_from([None, BLOCK, RACK])),
        sorted(lost)[: size - 1],
        [draw(st.sampled_from(["free", "gone", "taken"])) for _ in lost],
        draw(some),
    )


def built(case: Case) -> Standby:
    scene = Standby("")
    for number, (block, rack, gpus) in enumerate(case.hosts):
        scene.node(f"n{number}:{gpus}", block=f"b{block}", rack=f"r{rack}")
    return scene


def free_gpus(scene: Standby, node: str) -> int:
    nodes = scene.snapshot.nodes
    row = nodes.row(node)
    return 0 if row is None or not nodes.alive[row] else int(nodes.free("nvidia.com/gpu")[row])


def lose(scene: Standby, case: Case, uids: list[PodUid]) -> list[PodUid]:
    """End the lost members, and do to their nodes what the case says; return who stays."""
    for rank, fate in zip(case.lost, case.fate, strict=False):
        node = scene.node_of(uids[rank])
        scene.end(uids[rank])
        if fate == "taken":
            scene.run(node, gpu=case.gpus)
        elif fate == "gone":
            block, rack, gpus = case.hosts[int(node[1:])]
            scene.node(f"{node}:{gpus}", block=f"b{block}", rack=f"r{rack}", unschedulable=True)
    return [uid for rank, uid in enumerate(uids) if rank not in case.lost]


def usable(scene: Standby, case: Case) -> list[int]:
    nodes = scene.snapshot.nodes
    return [n for n in range(len(case.hosts)) if not nodes.unschedulable[nodes.row(f"n{n}") or 0]]


def cheapest(scene: Standby, case: Case, stay: set[int], kinds: list[tuple[int, int]]) -> Cost:
    """Return the fewest new blocks, then racks, over all ways to place (count, gpus) kinds."""
    place = {n: (case.hosts[n][:1], case.hosts[n][:2]) for n in range(len(case.hosts))}
    depth = {None: -1, BLOCK: 0, RACK: 1}[case.level]
    home = {place[n][depth] for n in stay} if depth >= 0 else set()
    open_ = [n for n in usable(scene, case) if depth < 0 or place[n][depth] in home]
    room = {n: free_gpus(scene, f"n{n}") for n in open_}
    best = NEVER
    ways = [combinations_with_replacement(open_, count) for count, _ in kinds]
    for way in product(*ways):
        used = dict.fromkeys(open_, 0)
        for nodes, (_, gpus) in zip(way, kinds, strict=True):
            for n in nodes:
                used[n] += gpus
        if all(used[n] <= room[n] for n in open_ if used[n]):
            new = [
                len({place[n][level] for n in open_ if used[n]} - {place[n][level] for n in stay})
                for level in (0, 1)
            ]
            best = min(best, tuple(new))
    return best


def cost(case: Case, stay: set[int], nodes: list[str]) -> Cost:
    taken = {int(node[1:]) for node in nodes}
    return tuple(
        len({case.hosts[n][:d] for n in taken} - {case.hosts[n][:d] for n in stay}) for d in (1, 2)
    )


def judge(
    scene: Standby, case: Case, key: GangKey, stayed: list[PodUid], kinds: list[tuple[int, int]]
) -> None:
    stay = {int(scene.node_of(uid)[1:]) for uid in stayed}
    before = {uid: scene.node_of(uid) for uid in stayed}
    best = cheapest(scene, case, stay, kinds)
    found = scene.ask(key)
    if isinstance(found, Wait):
        seen("waits")
        assert best == NEVER
        return
    assert isinstance(found, Plan)
    seen("repaired")
    assert cost(case, stay, scene.nodes_of(found)) == best
    scene.state.apply(scene.as_held(found), now=0.0)
    scene.state.validate()
    assert {uid: scene.node_of(uid) for uid in stayed} == before


@given(cases())
def test_successors_of_equal_members_open_as_few_domains_as_any_placement_does(case: Case) -> None:
    scene = built(case)
    for n in case.busy:
        scene.run(f"n{n}", gpu=min(4, case.hosts[n][2]))
    key = scene.gang("g", case.size, case.gpus, required_level=case.level)
    assume(isinstance(scene.ask(key), Plan))
    stayed = lose(scene, case, scene.start(key))
    for n in case.crowd:
        if free_gpus(scene, f"n{n}") >= 2:
            scene.run(f"n{n}", gpu=2)
    scene.members(key, case.lost, pod_class(case.gpus))
    judge(scene, case, key, stayed, [(len(case.lost), case.gpus)])


@given(cases())
def test_successors_of_two_kinds_open_as_few_domains_as_any_placement_does(case: Case) -> None:
    scene = built(case)
    for n in case.busy:
        scene.run(f"n{n}", gpu=min(4, case.hosts[n][2]))
    key = scene.gang("g", case.size, members=0, required_level=case.level)
    small = case.gpus // 2
    kinds = {rank: small if rank < 2 else case.gpus for rank in range(case.size)}
    for rank, gpus in kinds.items():
        scene.members(key, [rank], pod_class(gpus))
    assume(isinstance(scene.ask(key), Plan))
    stayed = lose(scene, case, scene.start(key))
    for rank in case.lost:
        scene.members(key, [rank], pod_class(kinds[rank]))
    counts = [(sum(kinds[rank] == gpus for rank in case.lost), gpus) for gpus in (case.gpus, small)]
    judge(scene, case, key, stayed, [each for each in counts if each[0]])
