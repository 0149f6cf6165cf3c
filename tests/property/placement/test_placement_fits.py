"""More room never costs a gang its fit, and the order in which nodes were heard of is nothing.

Gangs of equal pods and of two kinds, whole and in slices, of GPUs, parts of GPUs and MIG
instances, on small clusters with pods running:

::

    fits ──► a running pod ends ──► still fits
         ──► a free node comes ──► still fits
         ──► the same cluster told in another order ──► the same nodes, the same spares
"""

from dataclasses import dataclass

from hypothesis import event as seen
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.devicekinds import AMOUNTS, DEVICES, PODS
from support.clusters.scene import BLOCK, RACK, Scene, pod_class

from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.decision import Decision, Plan
from muster.placement.reasons.explanation import to_dict

COUNTED = [pod_class(gpus, cpu) for gpus, cpu in ((1, 1000), (2, 500), (0, 2000), (4, 1000))]


@dataclass(frozen=True)
class Host:
    """``kind``: of ``support.devicekinds``, or "" for 4 GPUs that nobody tells more of."""

    name: str
    block: str
    rack: str
    kind: str


@dataclass(frozen=True)
class Gang:
    kinds: tuple[tuple[PodClass, int], ...]
    required: str | None
    preferred: str | None
    slice_size: int | None

    def put(self, scene: Scene) -> GangKey:
        size = sum(count for _, count in self.kinds)
        key = scene.gang(
            "g", size, members=0,
            required_level=self.required, preferred_level=self.preferred,
            slice_size=self.slice_size, slice_level=RACK if self.slice_size else None,
        )  # fmt: skip
        rank = 0
        for number, (kind, count) in enumerate(self.kinds):
            scene.members(key, range(rank, rank + count), kind, role=f"kind{number}-")
            rank += count
        return key


@dataclass(frozen=True)
class Case:
    hosts: tuple[Host, ...]
    running: tuple[tuple[str, PodClass], ...]
    gang: Gang

    def scene(self, order: tuple[Host, ...] = ()) -> tuple[Scene, list[PodUid], GangKey]:
        scene = Scene("")
        for host in order or self.hosts:
            add(scene, host)
        uids = [scene.run(node, like=kind) for node, kind in self.running]
        return scene, uids, self.gang.put(scene)


def add(scene: Scene, host: Host) -> None:
    if host.kind:
        room = {"cpu": 4000, **AMOUNTS[host.kind]}
        devices = DEVICES[host.kind]
        name = f"{host.name}:0"
        scene.node(name, block=host.block, rack=host.rack, allocatable=room, devices=devices)
    else:
        scene.node(f"{host.name}:4", block=host.block, rack=host.rack, allocatable={"cpu": 4000})


@st.composite
def cases(draw: st.DrawFn, kinds: list[str], pods: list[PodClass], most: int = 2) -> Case:
    hosts = tuple(
        Host(
            f"n{number}",
            draw(st.sampled_from(["a", "a", "b"])),
            draw(st.sampled_from(["r1", "r2", "-"])),
            draw(st.sampled_from(kinds)),
        )
        for number in range(draw(st.integers(1, 5)))
    )
    asked = st.sampled_from(pods)
    running = tuple(
        (host.name, draw(asked)) for host in hosts for _ in range(draw(st.integers(0, 2)))
    )
    groups = tuple(
        (kind, draw(st.integers(1, 3)))
        for kind in draw(st.lists(asked, min_size=1, max_size=most, unique=True))
    )
    required, preferred = draw(
        st.sampled_from([(None, None), (None, RACK), (RACK, None), (BLOCK, None), (BLOCK, RACK)])
    )
    size = sum(count for _, count in groups)
    sliced = draw(st.sampled_from([None, None, 1, 2, 3]))
    slices = None if sliced is None or sliced > size else sliced
    return Case(hosts, running, Gang(groups, required, preferred, slices))


counted = cases([""], COUNTED)
fractions = cases(["plain", "mig", "vgpu", "sliced", ""], list(PODS.values()), most=1)


def fits(decision: Decision) -> bool:
    return isinstance(decision, Plan)


@given(st.one_of(counted, fractions), st.data())
def test_a_pod_that_ends_never_loses_a_fit(case: Case, data: st.DataObject) -> None:
    scene, uids, key = case.scene()
    before = scene.decide(key)
    seen("fits" if fits(before) else "waits")
    if not fits(before) or not uids:
        return
    if scene.state.snapshot().devices.open:
        seen("more runs than there is")  # who ends makes room for one of these
        return
    for uid in data.draw(st.sets(st.sampled_from(uids), min_size=1)):
        scene.end(uid)
        scene.state.validate()
        assert fits(scene.decide(key))


@given(st.one_of(counted, fractions), st.sampled_from(["a", "b"]), st.sampled_from(["r1", "r9"]))
def test_a_node_that_comes_never_loses_a_fit(case: Case, block: str, rack: str) -> None:
    scene, _, key = case.scene()
    before = scene.decide(key)
    seen("fits" if fits(before) else "waits")
    add(scene, Host("extra", block, rack, case.hosts[0].kind))
    scene.state.validate()
    if fits(before):
        assert fits(scene.decide(key))


@given(st.one_of(counted, fractions), st.integers(0, 2), st.data())
def test_the_order_in_which_nodes_are_told_changes_nothing(
    case: Case, spares: int, data: st.DataObject
) -> None:
    one, _, key = case.scene()
    orders = st.just(case.hosts[::-1]) | st.permutations(case.hosts).map(tuple)
    other, _, _ = case.scene(data.draw(orders))
    first, second = one.decide(key, spares=spares), other.decide(key, spares=spares)
    assert to_dict(first) | {"generation": 0} == to_dict(second) | {"generation": 0}
    if isinstance(first, Plan) and isinstance(second, Plan):
        assert one.nodes_of(first) == other.nodes_of(second)
        assert _spares(one, first) == _spares(other, second)


def test_of_equal_racks_the_first_by_name_is_taken_whichever_was_told_first() -> None:
    racks = [[Host(f"{rack}n{i}", "a", rack, "") for i in range(2)] for rack in ("r1", "r2")]
    gang = Gang(((pod_class(4), 2),), RACK, None, None)
    for hosts in (racks[0] + racks[1], racks[1] + racks[0]):
        scene, _, key = Case(tuple(hosts), (), gang).scene()
        assert scene.nodes_of(scene.place(key)) == ["r1n0", "r1n1"]


def _spares(scene: Scene, plan: Plan) -> list[list[str]]:
    name = scene.snapshot.nodes.name
    return [[name(int(row)) if row >= 0 else "" for row in each] for each in plan.spares]
