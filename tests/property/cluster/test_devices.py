"""Devices given away, taken back, reported, lost and reported wrongly, in any order.

After every step the model's own books are proven (``validate``): no counter of a device
above what it has, no two MIG instances on one slice, used = the sum of the claims. Beside
that: what the planner finds room for is always held, and what the API server reports decides
which pod has what, not the order of the reports.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import event as seen
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.builders import NOW, gang_key, gang_spec, note, pod, state
from support.clusters.devicekinds import DEVICES, PODS, gpu_node

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.devices.choice import choose, seated
from muster.cluster.devices.claims import unpack
from muster.cluster.devices.onenode import WIDTH, Layout, needs_of, put
from muster.cluster.devices.rooms import UNLIMITED, by_state
from muster.cluster.devices.sharenames import share_name
from muster.cluster.events import (
    Assignment,
    DeviceSpec,
    GangUpserted,
    NodeGone,
    NodeUpserted,
    PlanHeld,
    PodGone,
    PodUpserted,
)
from muster.cluster.ids import PodUid
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import HoldState
from muster.decisions.assign import assignments
from muster.kube.names import PLAN_GATE
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

NAMES = ("g0", "g1", "g2", "g0/1g.5gb@0", "g1/3g.20gb@4")
NODES = ("n1", "n2", "n3", "n4", "n5")
kinds = st.sampled_from(sorted(DEVICES))
pod_kinds = st.sampled_from(sorted(PODS))
nodes = st.sampled_from(NODES)


def stem(name: str) -> str:
    """Return the device that a name is of."""
    return name.partition("/")[0]


def used(snapshot: Snapshot) -> dict[str, list[int]]:
    """Return what is used of each node's devices."""
    return {
        snapshot.nodes.name(row): snapshot.devices.uses(row)
        for row in range(snapshot.nodes.count)
        if snapshot.devices.slots(row)
    }


def named(snapshot: Snapshot) -> Counter[tuple[str, PodUid, str, int]]:
    """Return every claim by names."""
    view = snapshot.devices
    return Counter(
        (
            snapshot.nodes.name(row),
            snapshot.pods.uid(claim.pod),
            share_name(view.slots(row), view.names[row], claim.share),
            claim.flags,
        )
        for row in range(snapshot.nodes.count)
        for claim in (unpack(view.claims[row]) if view.slots(row) else ())
    )


class Devices(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState("test", levels=("kubernetes.io/hostname",), gate=PLAN_GATE)
        self.nodes: dict[str, NodeUpserted] = {}
        self.bound: dict[PodUid, PodUpserted] = {}
        self.count = 0

    def apply(self, *events: object) -> None:
        for event in events:
            self.state.apply(event, now=NOW)  # type: ignore[arg-type]

    @initialize()
    def one_node_of_every_kind(self) -> None:
        for name, kind in zip(NODES, sorted(DEVICES), strict=True):
            self.nodes[name] = gpu_node(name, kind, allocations={})
            self.apply(self.nodes[name])

    def name(self) -> str:
        self.count += 1
        return f"p{self.count}"

    @rule(name=nodes, kind=kinds, ill=st.frozensets(st.integers(0, 1), max_size=1))
    def node_tells(self, *, name: str, kind: str, ill: frozenset[int]) -> None:
        self.nodes[name] = gpu_node(name, kind, ill=ill, allocations={})
        self.apply(self.nodes[name])

    @precondition(lambda self: self.bound)
    @rule(data=st.data(), name=nodes)
    def node_says_who_has_what(self, *, data: st.DataObject, name: str) -> None:
        """Mostly of pods that are there; what they have may be anything, and had by others."""
        if name not in self.nodes:
            return
        there = sorted(uid for uid, event in self.bound.items() if event.node == name)
        some = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple)
        who = st.sampled_from(there or sorted(self.bound))
        named = data.draw(st.dictionaries(who, some, max_size=3))
        self.nodes[name] = replace(self.nodes[name], allocations=named)
        self.apply(self.nodes[name])
        for trouble in self.state.device_troubles(name):
            seen(f"trouble {trouble.kind}")

    @invariant()
    def what_one_pod_alone_was_given_nobody_else_has(self) -> None:
        snapshot = self.state.snapshot()
        for name, event in self.nodes.items():
            row, view = snapshot.nodes.row(name), snapshot.devices
            if row is None or not view.slots(row):
                continue
            named = {u: g for u, g in (event.allocations or {}).items() if self.is_on(u, name)}
            for uid, names in named.items():
                others = {device for u, g in named.items() if u != uid for device in map(stem, g)}
                mine = {stem(n) for n in names if self.is_there(n, event)}
                claims = unpack(view.claims[row])
                has = {view.names[row][c.device] for c in claims if snapshot.pods.uid(c.pod) == uid}
                assert mine - others <= has

    def is_there(self, name: str, event: NodeUpserted) -> bool:
        """Whether a node has such a device, and such a place on it."""
        device, _, place = name.partition("/")
        specs = [spec for spec in event.devices if spec.name == device]
        profiles = {p.name: {start for start, _ in p.masks} for s in specs for p in s.placements}
        profile, _, start = place.partition("@")
        return bool(specs) and (not place or int(start) in profiles.get(profile, ()))

    def is_on(self, uid: PodUid, name: str) -> bool:
        return uid in self.bound and self.bound[uid].node == name

    @rule(name=nodes)
    def node_goes(self, *, name: str) -> None:
        self.nodes.pop(name, None)
        self.apply(NodeGone(name))

    @rule(
        kind=pod_kinds,
        on=nodes,
        named=st.lists(st.sampled_from(NAMES), max_size=2),
    )
    def stranger_is_bound(self, *, kind: str, on: str, named: list[str]) -> None:
        made = pod(self.name(), kind=PODS[kind], on=on, managed=False)
        if named:
            made = replace(made, plan=note(on, devices={on: tuple(named)}))
        self.bound[made.uid] = made
        self.apply(made)

    @rule(
        of=st.lists(pod_kinds, min_size=1, max_size=2).map(lambda k: (k * 4)[:4])
        | st.lists(pod_kinds, min_size=1, max_size=1),
        spares=st.integers(0, 1),
        bind=st.booleans(),
    )
    def gang_is_planned(self, *, of: list[str], spares: int, bind: bool) -> None:
        gang = self.name()
        members = [
            pod(f"{gang}-{i}", gang=gang, rank=i, kind=PODS[kind]) for i, kind in enumerate(of)
        ]
        self.apply(GangUpserted(gang_spec(gang, len(of))), *members)
        snapshot = self.state.snapshot()
        decision = plan_now(snapshot, Question(gang_key(gang), spare_count=spares))
        if isinstance(decision, Plan):
            assert verify(snapshot, decision) == []
            given_out = run(assignments(snapshot, decision))
            self.apply(PlanHeld(gang_key(gang), "id", given_out, NOW + 60, snapshot.generation))
            self._everybody_has_what_it_asks_for(given_out)
        for member in members:
            hold = self.state.hold(member.uid)
            if bind and hold is not None and hold.state is HoldState.ASSUMED:
                named = note(hold.node, *hold.spares, devices=hold.devices)
                shown = replace(member, node=hold.node, plan=named, gates=frozenset())
                self.bound[member.uid] = shown
                self.apply(shown)
            else:
                self.apply(PodGone(member.uid))

    def _everybody_has_what_it_asks_for(self, given_out: tuple[Assignment, ...]) -> None:
        snapshot = self.state.snapshot()
        for each in given_out:
            row = snapshot.nodes.row(each.node)
            pod_row = self.state.pod_row(each.uid)
            assert row is not None
            assert pod_row is not None
            pod_class = snapshot.classes[int(snapshot.pods.pod_class[pod_row])]
            needs = needs_of(snapshot.devices.slots(row), pod_class) or ()
            names = each.devices.get(each.node, ())
            assert len(names) == sum(need.pieces for need in needs)

    @rule(data=st.data(), finished=st.booleans())
    def pod_ends(self, *, data: st.DataObject, finished: bool) -> None:
        if self.bound:
            uid = data.draw(st.sampled_from(sorted(self.bound)))
            gone = self.bound.pop(uid)
            self.apply(replace(gone, finished=True) if finished else PodGone(uid))

    @rule(data=st.data())
    def it_is_told_anew_in_another_order(self, *, data: st.DataObject) -> None:
        facts = [*self.nodes.values(), *self.bound.values()]
        fresh = state(data.draw(st.permutations(facts)))
        fresh.validate()
        assert used(fresh.snapshot()) == used(self.state.snapshot())
        assert named(fresh.snapshot()) == named(self.state.snapshot())

    @precondition(lambda self: self.count % 8 == 7)  # the slowest step by far
    @rule()
    def dump_and_load(self) -> None:
        copy = ClusterState.load(self.state.dump())
        copy.validate()
        assert used(copy.snapshot()) == used(self.state.snapshot())
        self.state = copy

    @invariant()
    def the_books_are_right(self) -> None:
        self.state.validate()

    @precondition(lambda self: self.count % 4 == 0)  # trying pod by pod is what this costs
    @invariant()
    def rooms_are_what_can_be_taken_one_by_one(self) -> None:
        snapshot = self.state.snapshot()
        for kind in PODS.values():
            rooms = snapshot.devices.rooms(kind, snapshot.nodes.count)
            for row in range(snapshot.nodes.count):
                layout = snapshot.devices.slots(row)
                needs = needs_of(layout, kind) if layout else ()
                if needs:
                    tried = seated(layout, list(snapshot.devices.uses(row)), needs, 64)
                    assert rooms[row] == tried


TestDevices = Devices.TestCase


@settings(max_examples=200)
@given(st.data())
def test_a_formula_and_trying_agree_on_any_use_of_a_node(data: st.DataObject) -> None:
    specs = DEVICES[data.draw(kinds.filter(lambda k: bool(DEVICES[k])))]
    layout = _layout(specs)
    uses = [0] * (len(layout) * WIDTH)
    for kind in data.draw(st.lists(pod_kinds, max_size=5)):
        needs = needs_of(layout, PODS[kind])
        for share in (choose(layout, uses, needs) if needs else None) or ():
            put(uses, share)
    pod_class = PODS[data.draw(pod_kinds)]
    needs = needs_of(layout, pod_class)
    matrix = np.array(uses, dtype=np.int32).reshape(1, len(layout), WIDTH)
    found = int(by_state(layout, matrix, pod_class)[0])
    if needs is None:
        assert found == 0
    elif not needs:
        assert found == UNLIMITED
    else:
        assert found == seated(layout, list(uses), needs, 64)


def _layout(specs: tuple[DeviceSpec, ...]) -> Layout:
    snapshot = state(replace(gpu_node("n", "blank"), devices=specs)).snapshot()
    return snapshot.devices.slots(0)
