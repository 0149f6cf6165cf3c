"""ClusterState against a naive model: whatever happens, in whatever order.

The naive model keeps plain dictionaries of what the API server said last and recomputes
everything from them. Where the ledger has a choice (which hold yields, which spare is
taken) the model does not repeat its algorithm; it checks that the step was a legal one.

    zone z ─┬─ rack r0 ── n0 n1
            ├─ rack r1 ── n2 n3        nodes come, go and change all the time; pods may be
            └─ (none)  ── n4           bound to nodes that were never seen (n5)
"""

from dataclasses import replace

import numpy as np
from hypothesis import event as seen
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from support import fingerprint
from support.builders import (
    GPU,
    LEVELS,
    NOW,
    gang_key,
    gang_spec,
    gpus_of,
    node,
    note,
    pod,
    pod_class,
    uid,
)

from cluster.constraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodClass,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)
from cluster.dump import Frozen, dump
from cluster.effects import (
    CapacityFreed,
    Effect,
    GangChanged,
    HoldExpired,
    Overcommitted,
    PlanBroken,
    PodConfirmed,
)
from cluster.errors import PlanStale
from cluster.events import (
    Assignment,
    BudgetUpserted,
    Event,
    GangGone,
    GangSkipped,
    GangUpserted,
    MembersMoved,
    NamespaceGone,
    NamespaceUpserted,
    NodeGone,
    NodeUpserted,
    PlanHeld,
    PodForgotten,
    PodGone,
    PodReleased,
    PodUpserted,
    Tick,
)
from cluster.holds import HoldState
from cluster.ids import PodUid
from cluster.matching import term_matches
from cluster.pods import HELD, PodState
from cluster.snapshot import Snapshot
from cluster.state import PLAN_GATE, ClusterState

NODES = ("n0", "n1", "n2", "n3", "n4")
RACKS = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1", "n4": None}
PODS = tuple(f"p{i}" for i in range(8))
GANGS = ("a", "b")
TAINT = Taint("maintenance", "", TaintEffect.NO_SCHEDULE)
APP = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
NO_APP = LabelSelector((Requirement("app", Operator.DOES_NOT_EXIST),))
TEAM = LabelSelector((Requirement("team", Operator.IN, ("red",)),))
APART = PodAffinityTerm("muster.dev/rack", APP, frozenset({"ns"}))
KINDS = (
    pod_class(1),
    pod_class(4),
    pod_class(0, cpu=20_000),
    pod_class(2, tolerations=(Toleration("maintenance", exists=True),)),
    pod_class(1, pod_anti_affinity=(APART,)),
    pod_class(0, host_ports=(HostPort("", "TCP", 80),)),
    pod_class(0, host_ports=(HostPort("10.0.0.1", "TCP", 80), HostPort("", "UDP", 80))),
)
QUERIES = (
    (APP, frozenset({"ns"}), None, True),
    (NO_APP, frozenset({"ns"}), None, False),
    (LabelSelector(), frozenset[str](), TEAM, True),
)

names = st.sampled_from(PODS)
node_names = st.sampled_from(NODES)
kinds = st.sampled_from(KINDS)


class Cluster(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.state = ClusterState("test", levels=LEVELS)
        self.now = NOW
        self.nodes: dict[str, NodeUpserted] = {}
        self.pods: dict[PodUid, PodUpserted] = {}  # as the model must believe them to be
        self.told: list[PodUpserted] = []  # every pod event ever, to be replayed late
        self.namespaces: dict[str, dict[str, str]] = {}
        self.incarnation = dict.fromkeys(PODS, 0)
        self.kept: list[tuple[Snapshot, object]] = []
        self.excess: dict[tuple[str, str], int] = {}
        for name in NODES:
            self.nodes[name] = node(name, zone="z", rack=RACKS[name], pods=4)
            self.apply(self.nodes[name])
        for i, name in enumerate(PODS[:6]):
            self.pod(pod(name, gang=GANGS[i % 2], kind=KINDS[i % 2], rank=i))

    # --- the API server ---------------------------------------------------------------

    @rule(
        name=node_names,
        gpus=st.sampled_from((0, 4, 8)),
        flags=st.sampled_from(("", "", "", "tainted", "cordoned", "unready", "devices", "no rack")),
    )
    def node_appears_or_changes(self, name: str, gpus: int, flags: str) -> None:
        event = node(
            name,
            zone="z",
            rack=None if flags == "no rack" else RACKS[name],
            gpus=gpus,
            pods=4,
            taints=(TAINT,) if flags == "tainted" else (),
            unschedulable=flags == "cordoned",
            ready=flags != "unready",
            devices=gpus_of(gpus, per_numa=2) if flags == "devices" else (),
        )
        self.nodes[name] = event
        self.apply(event)

    @rule(name=node_names)
    def node_goes(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.apply(NodeGone(name))

    @rule(
        name=names,
        gang=st.sampled_from((*GANGS, None)),
        kind=kinds,
        app=st.sampled_from(("web", None)),
        foreign_gate=st.sampled_from((False, False, True)),
        ours=st.sampled_from((True, True, False)),
        rank=st.integers(-1, 3),
        priority=st.integers(0, 2),
    )
    def pod_appears_or_changes(
        self,
        *,
        name: str,
        gang: str | None,
        kind: PodClass,
        app: str | None,
        foreign_gate: bool,
        ours: bool,
        rank: int,
        priority: int,
    ) -> None:
        gates = {PLAN_GATE} | ({"theirs"} if foreign_gate else set())
        self.pod(
            pod(
                name,
                gang=gang,
                kind=kind,
                managed=ours,
                labels={"app": app} if app else {},
                gates=frozenset(gates),
                rank=rank,
                priority=priority,
                incarnation=self.incarnation[name],
                created=self.now,
                nominated="n1" if foreign_gate else None,
            )
        )

    @rule(name=names, where=st.sampled_from((*NODES, "n5", "as planned")), devices=st.booleans())
    def pod_is_bound(self, *, name: str, where: str, devices: bool) -> None:
        known = self.pods.get(self.uid(name))
        if known is None or known.node is not None or known.finished:
            return
        hold = self.state.hold(known.uid)
        target = hold.node if hold is not None and where == "as planned" else where
        told = note(target, devices={target: ("gpu-0",)}) if devices else known.plan
        self.pod(
            replace(
                known,
                node="n0" if target == "as planned" else target,
                gates=frozenset(),
                plan=told if known.managed else None,
            )
        )

    @rule(name=names, where=node_names, spare=node_names)
    def pod_is_seen_released(self, name: str, where: str, spare: str) -> None:
        known = self.pods.get(self.uid(name))
        if known is None or not known.managed or known.node is not None or known.finished:
            return
        hold = self.state.hold(known.uid)
        told = note(where, spare)
        if known.plan is not None:
            told = known.plan  # a pin cannot be changed
        elif hold is not None:
            told = note(hold.pins[0], *hold.pins[1:], devices=hold.devices)
        self.pod(replace(known, gates=known.gates - {PLAN_GATE}, plan=told))

    @rule(name=names, succeeded=st.booleans())
    def pod_finishes(self, *, name: str, succeeded: bool) -> None:
        known = self.pods.get(self.uid(name))
        if known is not None and not known.finished:
            self.pod(replace(known, finished=True, succeeded=succeeded))

    @rule(name=names)
    def pod_is_marked_for_deletion(self, name: str) -> None:
        known = self.pods.get(self.uid(name))
        if known is not None:
            self.pod(replace(known, terminating=True))

    @rule(name=names, again=st.booleans())
    def pod_goes(self, *, name: str, again: bool) -> None:
        gone = self.uid(name)
        if again:
            self.incarnation[name] += 1  # the next pod of that name is another one
        elif gone in self.pods:
            self.told = [event for event in self.told if event.uid != gone]
        self.pods.pop(gone, None)
        self.apply(PodGone(gone))

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def pod_event_is_replayed(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.told[-20:]))
        known = self.pods.get(event.uid)
        if known is not None and known.plan is not None and event.node is None:
            return  # an older pin: covered by the rule that releases
        self.pod(event)

    @rule(data=st.data())
    def something_else_changes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(GANGS))
        team = data.draw(st.sampled_from(("red", "blue")))
        described = gang_spec(
            name, data.draw(st.integers(1, 4)), lives_with_pods=data.draw(st.booleans())
        )
        not_r0 = (Requirement("muster.dev/rack", Operator.NOT_IN, ("r0",)),)
        event: Event = data.draw(
            st.sampled_from(
                (
                    GangUpserted(described),
                    GangGone(gang_key(name)),
                    GangSkipped(gang_key(name), "not enough room"),
                    BudgetUpserted("pool", {GPU: data.draw(st.integers(0, 20))}, not_r0),
                    NamespaceUpserted("ns", {"team": team}),
                    NamespaceGone("ns"),
                )
            )
        )
        if isinstance(event, NamespaceUpserted):
            self.namespaces["ns"] = {"team": team}
        elif isinstance(event, NamespaceGone):
            self.namespaces.pop("ns", None)
        self.apply(event)

    @rule(order=st.permutations(GANGS), only=st.sampled_from((None, "", "moved")))
    def members_move(self, order: list[str], only: str | None) -> None:
        source, target = map(gang_key, order)
        for known in self.pods.values():
            if known.managed and known.gang == source and only in (None, known.role):
                self.pods[known.uid] = replace(known, gang=target, role="moved")
        self.apply(MembersMoved(source, target, role="moved", only=only))

    @rule(name=names, where=node_names, kind=kinds)
    def foreign_pod_is_bound(self, name: str, where: str, kind: PodClass) -> None:
        if self.uid(name) not in self.pods:
            self.pod(
                pod(name, on=where, kind=kind, managed=False, incarnation=self.incarnation[name])
            )

    # --- the planner ------------------------------------------------------------------

    @rule(
        name=st.sampled_from(GANGS),
        spares=st.integers(0, 2),
        devices=st.booleans(),
        ttl=st.sampled_from((0, 5, 50)),
        order=st.permutations(NODES),
    )
    def gang_is_planned(
        self, *, name: str, spares: int, devices: bool, ttl: int, order: list[str]
    ) -> None:
        # One member to a node, in any order: often right, sometimes stale.
        view = self.state.gang(gang_key(name))
        waiting = [] if view is None else [self.state.pod_uid(int(row)) for row in view.waiting]
        assignments = tuple(
            Assignment(
                u,
                order[i],
                tuple(order[(i + k + 1) % 5] for k in range(spares)),
                {order[i]: ("gpu-1",), order[(i + 1) % 5]: ("gpu-2",)}
                if devices and spares and self.nodes.get(order[i], node("x")).devices
                else {},
            )
            for i, u in enumerate(waiting[:3])
        )
        before = self.state.dump()
        event = PlanHeld(gang_key(name), "plan", assignments, self.now + ttl, self.state.generation)
        try:
            self.apply(event)
        except PlanStale:
            assert self.state.dump() == before
            seen("PlanStale")
            return
        seen("PlanHeld")
        for a in assignments:
            hold = self.state.hold(a.uid)
            assert hold is not None
            assert (hold.state, hold.node) == (HoldState.ASSUMED, a.node)

    @rule(name=st.sampled_from(GANGS))
    def gang_is_released(self, name: str) -> None:
        view = self.state.gang(gang_key(name))
        for row in [] if view is None else view.assumed.tolist():
            self.apply(PodReleased(self.state.pod_uid(row)))

    @rule(name=st.sampled_from(GANGS), devices=st.booleans())
    def gang_is_bound_as_planned(self, *, name: str, devices: bool) -> None:
        view = self.state.gang(gang_key(name))
        held = [] if view is None else [*view.released.tolist(), *view.assumed.tolist()]
        for u in [self.state.pod_uid(row) for row in held]:
            known, hold = self.pods[u], self.state.hold(u)
            if hold is not None:
                told = note(hold.pins[0], *hold.pins[1:], devices=hold.devices if devices else {})
                self.pod(replace(known, node=hold.node, plan=told, gates=frozenset()))

    @rule(name=names)
    def release_succeeds(self, name: str) -> None:
        self.apply(PodReleased(self.uid(name)))

    @rule(name=names, nominated=st.booleans())
    def release_is_given_up(self, *, name: str, nominated: bool) -> None:
        gone = self.uid(name)
        known = self.pods.get(gone)
        if nominated and known is not None and self.state.pod_state(gone) in HELD:
            self.pods[gone] = replace(known, plan=None)  # taken back where it was written
        self.apply(PodForgotten(gone, "refused", nominated))

    @rule(seconds=st.sampled_from((0, 6, 60)))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.apply(Tick())

    # --- snapshots, copies, what-ifs --------------------------------------------------

    @rule()
    def snapshot_is_taken(self) -> None:
        snapshot = self.state.snapshot()
        for query in QUERIES:
            snapshot.match_counts(*query[:3], include_terminating=query[3])
        self.kept = [*self.kept[-2:], (snapshot, fingerprint.exact(snapshot))]

    @rule()
    def state_is_dumped_and_loaded(self) -> None:
        data = self.state.dump()
        loaded = ClusterState.load(data)
        assert loaded.dump() == data
        assert fingerprint.exact(loaded.snapshot()) == fingerprint.exact(self.state.snapshot())
        self.state = loaded

    @rule()
    def an_older_snapshot_is_dumped_and_loaded(self) -> None:
        for snapshot, before in self.kept[:1]:
            loaded = ClusterState.load(dump(Frozen(snapshot, PLAN_GATE)))
            loaded.validate()
            assert fingerprint.exact(loaded.snapshot()) == before

    @rule(data=st.data(), name=node_names)
    def overlay_equals_the_real_thing(self, data: st.DataObject, name: str) -> None:
        copy = ClusterState.load(self.state.dump())
        snapshot = self.state.snapshot()
        before = fingerprint.exact(snapshot)
        used = [row for row in range(snapshot.pods.count) if snapshot.pods.state[row]]
        without = data.draw(st.lists(st.sampled_from(used), unique=True)) if used else []
        added = node(name, zone="z", rack="r7", gpus=16, devices=gpus_of(3))
        overlaid = snapshot.overlay(without_pods=without, with_nodes=[added])
        for row in without:
            copy.apply(PodGone(snapshot.pods.uid(row)), now=self.now)
        copy.apply(added, now=self.now)
        assert fingerprint.by_name(overlaid) == fingerprint.by_name(copy.snapshot())
        for query in QUERIES:
            there = overlaid.match_counts(*query[:3], include_terminating=query[3])
            real = copy.snapshot().match_counts(*query[:3], include_terminating=query[3])
            assert there.sum() == real.sum()
        assert fingerprint.exact(snapshot) == before

    # --- what must hold ---------------------------------------------------------------

    @invariant()
    def the_model_is_consistent(self) -> None:
        self.state.validate()

    @invariant()
    def snapshots_do_not_change(self) -> None:
        for snapshot, print_then in self.kept:
            assert fingerprint.exact(snapshot) == print_then

    @invariant()
    def pods_are_where_the_api_server_says(self) -> None:
        for event in self.pods.values():
            state = self.state.pod_state(event.uid)
            hold = self.state.hold(event.uid)
            if event.finished:
                assert state is PodState.FINISHED
            elif event.node is not None:
                assert state is PodState.BOUND
                assert hold is not None
                assert (hold.state, hold.node) == (HoldState.CONFIRMED, event.node)
            elif not event.managed:
                assert state is PodState.PENDING
            elif event.terminating:
                assert state is PodState.BLOCKED
            elif event.plan is not None:
                assert state is PodState.RELEASED
                assert hold is not None
                assert hold.node in {event.plan.node, *event.plan.spares}
            elif hold is None:
                blocked = bool(event.gates - {PLAN_GATE})
                assert state is (PodState.BLOCKED if blocked else PodState.WAITING)
        assert sum(self.state.pod_state(u) is not None for u in self.pods) == len(self.pods)

    @invariant()
    def used_is_the_sum_over_bound_and_held_pods(self) -> None:
        snapshot = self.state.snapshot()
        used = dict.fromkeys(self.nodes, 0)
        for event in self.pods.values():
            hold = self.state.hold(event.uid)
            if hold is not None and hold.node in used:
                used[hold.node] += event.pod_class.request(GPU)
        for name, amount in used.items():
            row = snapshot.nodes.row(name)
            assert row is not None
            assert snapshot.nodes.alive[row]
            assert snapshot.nodes.used(GPU)[row] == amount
            assert snapshot.nodes.allocatable(GPU)[row] == self.nodes[name].allocatable[GPU]
        assert snapshot.nodes.alive.sum() == len(self.nodes)

    @invariant()
    def counters_equal_a_scan(self) -> None:
        snapshot = self.state.snapshot()
        for selector, namespaces, by_labels, terminating in QUERIES:
            wanted = np.zeros(snapshot.nodes.count, dtype=np.int64)
            term = PodAffinityTerm("", selector, namespaces, by_labels)
            for event in self.pods.values():
                hold = self.state.hold(event.uid)
                if hold is None or (event.terminating and not terminating):
                    continue
                if term_matches(term, event.labels, self.namespaces):
                    row = snapshot.nodes.row(hold.node)
                    assert row is not None
                    wanted[row] += 1
            found = snapshot.match_counts(
                selector, namespaces, by_labels, include_terminating=terminating
            )
            assert found.tolist() == wanted.tolist()

    @invariant()
    def the_newest_unbound_pod_is_found_by_name(self) -> None:
        for name in PODS:
            wanted = [
                event
                for event in self.pods.values()
                if event.name == name and event.managed and not event.node and not event.finished
            ]
            found = self.state.find_pod("ns", name)
            if not wanted:
                assert found is None
            else:
                assert found in {e.uid for e in wanted}
                newest = max(e.created for e in wanted)
                assert self.pods[found].created == newest

    @invariant()
    def bound_pods_have_the_devices_that_their_plan_names(self) -> None:
        for event in self.pods.values():
            if event.node is None or event.finished or event.plan is None:
                continue
            hold = self.state.hold(event.uid)
            assert hold is not None
            wanted = set(event.plan.devices.get(event.node, ()))
            assert set(hold.devices.get(event.node, ())) == wanted

    @invariant()
    def budgets_count_their_nodes(self) -> None:
        snapshot = self.state.snapshot()
        for budget in snapshot.budgets:
            named = {snapshot.nodes.name(int(row)) for row in np.flatnonzero(budget.nodes)}
            outside = {n for n, e in self.nodes.items() if e.labels.get("muster.dev/rack") == "r0"}
            assert named == set(self.nodes) - outside
            assert budget.used[GPU] == snapshot.nodes.used(GPU)[budget.nodes].sum()

    # --- helpers ----------------------------------------------------------------------

    def uid(self, name: str) -> PodUid:
        return uid(f"ns/{name}#{self.incarnation[name]}")

    def pod(self, event: PodUpserted) -> None:
        known = self.pods.get(event.uid)
        if known is not None:
            # Nobody can add a gate to a pod that exists; ours may show again in old news.
            event = replace(event, gates=event.gates & (known.gates | {PLAN_GATE}))
        late = known is not None and (
            (known.finished and not event.finished)
            or (known.node is not None and event.node is None and not event.finished)
            or (known.terminating and not event.terminating)
        )
        self.told.append(event)
        if not late:
            if known is not None and known.plan is not None and event.plan is None:
                # Ungated once, ungated for ever: the release is not undone by old news.
                released = event.managed and not event.terminating and not event.node
                if released and not event.finished:
                    self.pods[event.uid] = replace(event, plan=known.plan, gates=known.gates)
                else:
                    self.pods[event.uid] = event
            else:
                self.pods[event.uid] = event
        self.apply(event)

    def apply(self, event: Event) -> None:
        before = {u: self.state.pod_state(u) for u in self.pods}
        held = {u: self.state.hold(u) for u in self.pods}
        room = self.room()
        generation, dumped = self.state.generation, self.state.snapshot()
        effects = self.state.apply(event, now=self.now)
        if self.state.generation == generation:
            assert effects == []
            assert self.state.snapshot() is dumped
        after = {u: self.state.pod_state(u) for u in self.pods}
        self.check_wakeups(effects, before, after, room)
        self.check_ledger(event, effects, before, held)
        self.check_overcommitment(effects)
        if isinstance(event, Tick):
            self.check_lost_pods()

    def room(self) -> dict[tuple[str, str], int]:
        nodes = self.state.snapshot().nodes
        usable = np.flatnonzero(nodes.alive & nodes.ready & ~nodes.unschedulable).tolist()
        return {
            (nodes.name(row), resource): int(nodes.free(resource)[row])
            for row in usable
            for resource in nodes.resources
        }

    def check_wakeups(
        self,
        effects: list[Effect],
        before: dict[PodUid, PodState | None],
        after: dict[PodUid, PodState | None],
        room: dict[tuple[str, str], int],
    ) -> None:
        # Nobody may be left asleep: more room anywhere is told, and so is a changed member.
        grew = any(free > max(room.get(place, 0), 0) for place, free in self.room().items())
        if grew:
            assert CapacityFreed() in effects
        for u, state in after.items():
            gang = self.state.gang_of(u)
            if gang is not None and before.get(u) != state:
                assert GangChanged(gang) in effects

    def check_ledger(
        self,
        event: Event,
        effects: list[Effect],
        before: dict[PodUid, PodState | None],
        held: dict[PodUid, object],
    ) -> None:
        for effect in effects:
            seen(type(effect).__name__)  # for --hypothesis-show-statistics
            match effect:
                case PodConfirmed(uid=u):
                    assert before[u] in {PodState.ASSUMED, PodState.RELEASED}
                    assert self.state.pod_state(u) is PodState.BOUND
                case HoldExpired(uid=u):
                    assert before[u] is PodState.ASSUMED
                    assert self.state.hold(u) is None
                case PlanBroken(uid=u):
                    assert self.state.pod_state(u) is PodState.RELEASED
                    was = held[u]
                    assert not getattr(was, "broken", "")
                    self.check_no_spare_would_do(u)
                case Overcommitted(node=name, resource=resource, excess=excess):
                    assert (
                        self.bound_on(name, resource)
                        - self.nodes[name].allocatable.get(resource, 0)
                        == excess
                    )
                    assert excess > 0
                case _:
                    pass
        for u, state in before.items():
            if state is PodState.ASSUMED and self.state.pod_state(u) is PodState.WAITING:
                given_up = isinstance(event, PodForgotten)
                assert given_up or any(isinstance(e, HoldExpired) and e.uid == u for e in effects)

    def check_overcommitment(self, effects: list[Effect]) -> None:
        # Told whenever it grows.
        excess = {
            (name, resource): self.bound_on(name, resource) - amount
            for name, event in self.nodes.items()
            for resource, amount in event.allocatable.items()
        }
        for (name, resource), amount in excess.items():
            if amount > max(self.excess.get((name, resource), 0), 0):
                assert Overcommitted(name, resource, amount) in effects
        self.excess = excess

    def check_lost_pods(self) -> None:
        # After a tick nothing is overdue and nobody waits for a node that is not there.
        for hold in filter(None, map(self.state.hold, self.pods)):
            if hold.state is HoldState.RELEASED:
                assert hold.node in self.nodes or hold.broken
            elif hold.state is HoldState.ASSUMED:
                assert hold.deadline > self.now

    def check_no_spare_would_do(self, u: PodUid) -> None:
        hold, nodes = self.state.hold(u), self.state.snapshot().nodes
        assert hold is not None
        kind = self.pods[u].pod_class
        for spare in hold.spares:
            event, row = self.nodes.get(spare), nodes.row(spare)
            if event is None or row is None or event.unschedulable or event.taints:
                continue
            lacks = any(nodes.free(name)[row] < amount for name, amount in kind.requests)
            assert lacks or kind.host_ports

    def bound_on(self, name: str, resource: str) -> int:
        return sum(
            event.pod_class.request(resource)
            for event in self.pods.values()
            if event.node == name and not event.finished
        )


TestCluster = Cluster.TestCase
