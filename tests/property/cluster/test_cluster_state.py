"""ClusterState against a naive model: whatever happens, in whatever order.

What must hold after each step is in support/naivecluster.py, with the drawing of the cluster.
"""

from dataclasses import replace

import pytest
from hypothesis import event as seen
from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
)
from support.clusters import fingerprint
from support.clusters.builders import GPU, gang_key, gang_spec, gpus_of, node, note, pod
from support.clusters.naivecluster import GANGS, KINDS, NODES, PODS, QUERIES, RACKS, TAINT
from support.clusters.naivedevices import NaiveDevices

from muster.cluster.dump.writer import dump, freeze_past
from muster.cluster.errors import PlanStale
from muster.cluster.events import (
    Assignment,
    BudgetUpserted,
    Event,
    GangGone,
    GangSkipped,
    GangUpserted,
    MembersMoved,
    MembersNumbered,
    NamespaceGone,
    NamespaceUpserted,
    NodeGone,
    PlanHeld,
    PodForgotten,
    PodGone,
    PodReleased,
    QueueGone,
    QueueUpserted,
    StandbyHeld,
    Tick,
)
from muster.cluster.handlers.quotaevents import SYSTEM_PRIORITY
from muster.cluster.ids import PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, Groups, ResourceGroup
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.gangspec import PODS_PER_JOB, number
from muster.cluster.specs.podconstraints import Operator, PodClass, Requirement
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import HoldState
from muster.cluster.tables.pods import HELD
from muster.kube.names import PLAN_GATE

# Fifty seconds alone, three times that on a busy machine, and `make deep` takes it for an hour.
pytestmark = pytest.mark.timeout(14_400)

ANY_GPU = ResourceGroup((GPU,), (Flavor("any"),))
BY_RACK = ResourceGroup((GPU, "cpu"), (Flavor("r0", (("muster.dev/rack", "r0"),)), Flavor("spot")))
names = st.sampled_from(PODS)
node_names = st.sampled_from(NODES)
kinds = st.sampled_from(KINDS)


class Cluster(NaiveDevices):
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
            allocations={},
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
        priority=st.sampled_from((0, 1, 2, SYSTEM_PRIORITY)),
        queue=st.sampled_from(("", "", "red", "blue")),
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
        queue: str,
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
                queue=queue,
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
        plan = note(target, devices={target: ("gpu-0",)}) if devices else known.plan
        self.pod(
            replace(
                known,
                node="n0" if target == "as planned" else target,
                gates=frozenset(),
                plan=plan if known.managed else None,
            )
        )

    @rule(name=names, where=node_names, spare=node_names)
    def pod_is_seen_released(self, name: str, where: str, spare: str) -> None:
        known = self.pods.get(self.uid(name))
        if known is None or not known.managed or known.node is not None or known.finished:
            return
        hold = self.state.hold(known.uid)
        plan = note(where, spare)
        if known.plan is not None:
            plan = known.plan  # a pin cannot be changed
        elif hold is not None:
            plan = note(hold.pins[0], *hold.pins[1:], devices=hold.devices)
        self.pod(replace(known, gates=known.gates - {PLAN_GATE}, plan=plan))

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
            self.pod_events = [event for event in self.pod_events if event.uid != gone]
        self.pods.pop(gone, None)
        self.apply(PodGone(gone))

    @precondition(lambda self: self.pod_events)
    @rule(data=st.data())
    def pod_event_is_replayed(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.pod_events[-20:]))
        known = self.pods.get(event.uid)
        if known is not None and known.plan is not None and event.node is None:
            return  # an older pin: covered by the rule that releases
        self.pod(event)

    @rule(data=st.data())
    def something_else_changes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(GANGS))
        team = data.draw(st.sampled_from(("red", "blue")))
        described = gang_spec(
            name,
            data.draw(st.integers(1, 4)),
            lives_with_pods=data.draw(st.booleans()),
            queue=data.draw(st.sampled_from(("", "red"))),
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

    @rule(
        name=st.sampled_from(("muster/red", "volcano/red", "kueue/blue", "muster/all")),
        parent=st.sampled_from((None, None, "muster/all", "volcano/red", "muster/none")),
        entitled=st.integers(0, 20),
        lent=st.integers(0, 20),
        flavor=st.sampled_from(("", "spot")),
        text=st.sampled_from(("red", "blue", "")),
        namespace=st.sampled_from(("", "ns", "other")),
        groups=st.sampled_from(((), (), (ANY_GPU,), (BY_RACK,))),
    )
    def queue_appears_or_changes(
        self,
        *,
        name: str,
        parent: str | None,
        entitled: int,
        lent: int,
        flavor: str,
        text: str,
        namespace: str,
        groups: Groups,
    ) -> None:
        quotas = {Cell(flavor, GPU): Quota(entitled, lendable=lent)}
        if parent is None:
            quotas[Cell("", "pods")] = Quota(entitled)
        above = None if parent is None else QueueName(parent)
        is_cluster = name.endswith("all") and above is None
        spec = QueueSpec(QueueName(name), above, quotas, is_cluster=is_cluster)
        self.apply(QueueUpserted(spec, (Spelling(namespace, text),), groups=groups))

    @rule(name=st.sampled_from(("muster/red", "volcano/red", "kueue/blue", "muster/all")))
    def queue_goes(self, name: str) -> None:
        self.apply(QueueGone(QueueName(name)))

    @rule(order=st.permutations(GANGS), only=st.sampled_from((None, "", "moved")))
    def members_move(self, order: list[str], only: str | None) -> None:
        source, target = map(gang_key, order)
        for known in self.pods.values():
            if known.managed and known.gang == source and only in (None, known.role):
                self.pods[known.uid] = replace(known, gang=target, role="moved")
        self.apply(MembersMoved(source, target, role="moved", only=only))

    @rule(of=st.sampled_from(GANGS), roles=st.permutations(("", "moved")))
    def members_are_numbered(self, of: str, roles: list[str]) -> None:
        runs = ((1, 3), (1, 2))  # and ranks up to 3: some number comes twice
        counted = tuple((role, 0) for role in roles)
        spec = gang_spec(of, 1, size=None, numbered_roles=counted, rank_runs=runs)
        for known in self.pods.values():
            if known.managed and known.gang == spec.key and known.rank < PODS_PER_JOB:
                rank = number(spec, known.role, known.rank)
                self.pods[known.uid] = replace(known, rank=rank)
        self.apply(MembersNumbered(spec))

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
                self.named(u, order[i], order[(i + 1) % 5] if spares else None) if devices else {},
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

    @rule(name=st.sampled_from(GANGS), count=st.integers(1, 3), order=st.permutations(NODES))
    def hot_spares_are_held(self, *, name: str, count: int, order: list[str]) -> None:
        key, view = gang_key(name), self.state.gang(gang_key(name))
        if view is None or not len(view.bound):
            return
        spec = view.spec or gang_spec(name, 2)
        if count > spec.standby:
            self.apply(GangUpserted(replace(spec, standby=count)))
        like = self.state.pod_uid(int(view.bound[0]))
        taken = len(self.hot_spares)
        spares = tuple(
            Assignment(PodUid(f"spar{taken + i:012}".encode()), order[i]) for i in range(count)
        )
        before = self.state.dump()
        try:
            self.apply(StandbyHeld(key, like, spares))
        except PlanStale:
            assert self.state.dump() == before
            seen("hot spares PlanStale")
            return
        seen("StandbyHeld")
        for spare in spares:
            self.hot_spares[spare.uid] = replace(self.pods[like], uid=spare.uid, terminating=False)

    @rule(name=st.sampled_from(GANGS), other=st.sampled_from(GANGS), order=st.permutations(NODES))
    def gang_is_planned_in_the_room_of_hot_spares(
        self, name: str, other: str, order: list[str]
    ) -> None:
        view, owner = self.state.gang(gang_key(name)), self.state.gang(gang_key(other))
        if view is None or owner is None or not len(view.waiting):
            return
        spares = tuple(self.state.pod_uid(int(row)) for row in owner.standby)
        uids = [self.state.pod_uid(int(row)) for row in view.waiting[:3]]
        chosen = tuple(Assignment(u, order[i]) for i, u in enumerate(uids))
        before = self.state.dump()
        event = PlanHeld(gang_key(name), "plan", chosen, self.now + 50, 0, displaced=spares)
        try:
            self.apply(event)
        except PlanStale:
            assert self.state.dump() == before
            return
        seen(f"displaced {len(spares)}")
        assert all(self.state.pod_row(spare) is None for spare in spares)

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
                plan = note(hold.pins[0], *hold.pins[1:], devices=hold.devices if devices else {})
                self.pod(replace(known, node=hold.node, plan=plan, gates=frozenset()))

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
        self.snapshots = [*self.snapshots[-2:], (snapshot, fingerprint.exact(snapshot))]

    @rule(steps=st.integers(0, 9))
    def copies_are_made_beforehand(self, steps: int) -> None:
        for _, _ in zip(range(steps), self.state.prepare(), strict=False):
            continue

    @rule()
    def state_is_dumped_and_loaded(self) -> None:
        data = self.state.dump()
        loaded = ClusterState.load(data)
        assert loaded.dump() == data
        assert fingerprint.exact(loaded.snapshot()) == fingerprint.exact(self.state.snapshot())
        self.state = loaded

    @rule()
    def an_older_snapshot_is_dumped_and_loaded(self) -> None:
        for snapshot, before in self.snapshots[:1]:
            loaded = ClusterState.load(dump(freeze_past(snapshot, PLAN_GATE)))
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


TestCluster = Cluster.TestCase
