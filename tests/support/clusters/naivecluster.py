"""The naive model that ``ClusterState`` is compared with after every step.

It keeps plain dictionaries of what the API server said last and recomputes everything from them.
Where the ledger has a choice (which hold yields, which spare is taken) the model does not repeat
its algorithm; it checks that the step was a legal one.

    zone z ─┬─ rack r0 ── n0 n1
            ├─ rack r1 ── n2 n3        nodes come, go and change all the time; pods may be
            └─ (none)  ── n4           bound to nodes that were never seen (n5)
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from hypothesis import event as seen
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
)
from support.clusters import fingerprint
from support.clusters.builders import GPU, LEVELS, NOW, gpus_of, node, pod, pod_class, uid

from muster.cluster.effects import (
    CapacityFreed,
    Effect,
    GangChanged,
    HoldExpired,
    Overcommitted,
    PlanBroken,
    PodConfirmed,
)
from muster.cluster.events import Event, NodeUpserted, PodForgotten, PodUpserted, Tick
from muster.cluster.ids import PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.matching import term_matches
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import PodState
from muster.kube.names import PLAN_GATE

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


class NaiveCluster(RuleBasedStateMachine):
    """What is known, how an event is applied and checked, and what must always hold."""

    @initialize()
    def start(self) -> None:
        self.state = ClusterState("test", levels=LEVELS, gate=PLAN_GATE)
        self.now = NOW
        self.nodes: dict[str, NodeUpserted] = {}
        self.pods: dict[PodUid, PodUpserted] = {}  # as the model must believe them to be
        #: As pods like the members that they are for.
        self.hot_spares: dict[PodUid, PodUpserted] = {}
        self.pod_events: list[PodUpserted] = []  # every pod event so far, to be replayed late
        self.namespaces: dict[str, dict[str, str]] = {}
        self.incarnation = dict.fromkeys(PODS, 0)
        self.snapshots: list[tuple[Snapshot, object]] = []
        self.excess: dict[tuple[str, str], int] = {}
        for name in NODES:
            devices = gpus_of(8) if name in {"n0", "n1"} else ()
            self.nodes[name] = node(name, zone="z", rack=RACKS[name], pods=4, devices=devices)
            self.apply(self.nodes[name])
        for i, name in enumerate(PODS[:6]):
            self.pod(pod(name, gang=GANGS[i % 2], kind=KINDS[i % 2], rank=i))

    # --- what must hold ---------------------------------------------------------------

    @invariant()
    def the_model_is_consistent(self) -> None:
        self.state.validate()

    @invariant()
    def snapshots_do_not_change(self) -> None:
        for snapshot, print_then in self.snapshots:
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
        for event, hold in self.occupants():
            if hold.node in used:
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
            for event, hold in self.occupants():
                if event.terminating and not terminating:
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
    def budgets_count_their_nodes(self) -> None:
        snapshot = self.state.snapshot()
        for budget in snapshot.budgets:
            named = {snapshot.nodes.name(int(row)) for row in np.flatnonzero(budget.nodes)}
            outside = {n for n, e in self.nodes.items() if e.labels.get("muster.dev/rack") == "r0"}
            assert named == set(self.nodes) - outside
            assert budget.used[GPU] == snapshot.nodes.used(GPU)[budget.nodes].sum()

    # --- helpers ----------------------------------------------------------------------

    def occupants(self) -> Iterator[tuple[PodUpserted, Hold]]:
        """Yield who has room: pods and, whatever the pods look like by now, the hot spares."""
        for event in (*self.pods.values(), *self.hot_spares.values()):
            hold = self.state.hold(event.uid)
            if hold is not None:
                yield event, hold

    def uid(self, name: str) -> PodUid:
        return uid(f"ns/{name}#{self.incarnation[name]}")

    def pod(self, event: PodUpserted) -> None:
        known = self.pods.get(event.uid)
        if known is not None:
            # A gate cannot be added to a pod that exists; ours may show again in old news.
            event = replace(event, gates=event.gates & (known.gates | {PLAN_GATE}))
        late = known is not None and (
            (known.finished and not event.finished)
            or (known.node is not None and event.node is None and not event.finished)
            or (known.terminating and not event.terminating)
        )
        self.pod_events.append(event)
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
        # No gang may be left asleep: more room anywhere is reported, and so is a changed member.
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
        # Reported whenever it grows.
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
        # After a tick nothing is overdue and no gang waits for a node that does not exist.
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
