"""A cluster drawn as text, with gangs and running pods put into it.

::

    scene = Scene('''
        a/r1  n1 n2:4
        a/r2  n3 n4
    ''')

One line per rack: ``block/rack`` and its nodes, ``name`` or ``name:gpus`` (default 8). A
rack of ``-`` has no rack label, a block of ``-`` no block label.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.events import (
    Assignment,
    GangUpserted,
    NodeGone,
    NodeUpserted,
    PlanHeld,
    PodGone,
    PodUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE
from muster.placement.decision import Decision, Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

BLOCK, RACK, HOST = "muster.dev/block", "muster.dev/rack", "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
GATE = "muster.dev/plan"
NAMESPACE = "ns"


def pod_class(gpu: int = 8, cpu: int = 1000, **constraints: object) -> PodClass:
    """Return a class asking for GPUs and milli-CPU; constraints by field name."""
    requests = {"cpu": cpu, GPU: gpu, "pods": 1}
    pairs = tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    return PodClass(requests=pairs, **constraints)  # type: ignore[arg-type]


class Scene:
    """A ``ClusterState`` and the few verbs that tests need."""

    def __init__(self, drawing: str, *, levels: tuple[str, ...] = (BLOCK, RACK, HOST)) -> None:
        self.state = ClusterState("test", levels=levels, gate=PLAN_GATE)
        self._uids = itertools.count(1)
        self._pods: dict[PodUid, PodUpserted] = {}
        for line in filter(None, map(str.strip, drawing.splitlines())):
            place, *names = line.split()
            block, rack = place.split("/")
            for name in names:
                self.node(name, block=block, rack=rack)

    # --- what is there ----------------------------------------------------------------

    def node(
        self,
        name: str,
        *,
        block: str = "-",
        rack: str = "-",
        labels: Mapping[str, str] | None = None,
        allocatable: Mapping[str, int] | None = None,
        **fields: object,
    ) -> None:
        """Add or change a node: ``name`` or ``name:gpus``."""
        name, _, gpus = name.partition(":")
        own = {HOST: name, BLOCK: block, RACK: rack}
        room = {"cpu": 64_000, "pods": 110, GPU: int(gpus or 8)} | dict(allocatable or {})
        self.state.apply(
            NodeUpserted(
                name=name,
                labels={k: v for k, v in own.items() if v != "-"} | dict(labels or {}),
                allocatable=room,
                **fields,  # type: ignore[arg-type]
            ),
            now=0.0,
        )

    def remove_node(self, name: str) -> None:
        """Delete a node."""
        self.state.apply(NodeGone(name), now=0.0)

    def run(
        self,
        node: str,
        gpu: int = 8,
        *,
        gang: GangKey | None = None,
        labels: Mapping[str, str] | None = None,
        like: PodClass | None = None,
        priority: int = 0,
        terminating: bool = False,
        started: float = 0.0,
    ) -> PodUid:
        """Bind a pod on a node."""
        uid = self._uid()
        pod = PodUpserted(
            uid=uid,
            namespace=NAMESPACE,
            name=f"running-{int.from_bytes(uid, 'big')}",
            pod_class=like or pod_class(gpu),
            labels=LabelSet(NAMESPACE, tuple(sorted((labels or {}).items()))),
            node=node,
            gang=gang,
            managed=gang is not None,
            priority=priority,
            terminating=terminating,
            started=started,
        )
        self._apply(pod)
        return uid

    def alone(self, name: str, node: str, gpu: int = 8, **fields: object) -> GangKey:
        """Bind a managed pod that is a gang of one; further fields as in ``PodUpserted``."""
        return self.crew(name, [node], gpu, **fields)

    def crew(
        self,
        name: str,
        nodes: Sequence[str],
        gpu: int = 8,
        *,
        spec: Mapping[str, object] | None = None,
        like: PodClass | None = None,
        **fields: object,
    ) -> GangKey:
        """Bind a gang, one member a node given; ``fields`` as in ``PodUpserted``."""
        key = self.gang(name, len(nodes), gpu, like=like, **dict(spec or {}))  # type: ignore[arg-type]
        view = self.snapshot.gang(key)
        assert view is not None
        for row, node in zip(view.waiting.tolist(), nodes, strict=True):
            pod = self._pods[self.snapshot.pods.uid(row)]
            self._apply(replace(pod, node=node, gates=frozenset(), **fields))  # type: ignore[arg-type]
        return key

    def run_managed(
        self, name: str, node: str, like: PodClass, labels: Mapping[str, str]
    ) -> GangKey:
        """Bind a managed pod with labels, a gang of one."""
        key = self.gang(name, 1, like=like, labels=labels)
        view = self.snapshot.gang(key)
        assert view is not None
        pod = self._pods[self.snapshot.pods.uid(int(view.waiting[0]))]
        self._apply(replace(pod, node=node, gates=frozenset()))
        return key

    def finish(self, uids: Iterable[PodUid]) -> None:
        """Let pods succeed."""
        for uid in uids:
            self._apply(replace(self._pods[uid], gates=frozenset(), finished=True, succeeded=True))

    def stand(self, uids: Iterable[PodUid], node: str) -> None:
        """Bind pods to a node."""
        for uid in uids:
            self._apply(replace(self._pods[uid], node=node, gates=frozenset()))

    def end(self, uid: PodUid) -> None:
        """Delete a pod."""
        del self._pods[uid]
        self.state.apply(PodGone(uid), now=0.0)

    def gang(
        self,
        name: str,
        count: int,
        /,
        gpu: int = 8,
        *,
        like: PodClass | None = None,
        members: int | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        **spec: object,
    ) -> GangKey:
        """Create a gang of ``count``, with ``members`` (default: all) gated pods of one kind."""
        key = GangKey(f"muster/{NAMESPACE}/{name}")
        fields = {"namespace": NAMESPACE, "min_count": count, "size": count} | spec
        self.state.apply(
            GangUpserted(GangSpec(key=key, name=name, dialect="muster", **fields)),  # type: ignore[arg-type]
            now=0.0,
        )
        kind = like or pod_class(gpu)
        ranks = range(count if members is None else members)
        self.members(key, ranks, kind, labels=labels, priority=priority)
        return key

    def members(
        self,
        key: GangKey,
        ranks: Iterable[int],
        like: PodClass,
        *,
        role: str = "",
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
    ) -> list[PodUid]:
        """Create gated pods of a gang with the given ranks."""
        name = key.rsplit("/", 1)[-1]
        marks = tuple(sorted(({"gang": name} | dict(labels or {})).items()))
        view = self.snapshot.gang(key)
        namespace = NAMESPACE if view is None or view.spec is None else view.spec.namespace
        made = []
        for rank in ranks:
            uid = self._uid()
            made.append(uid)
            self._apply(
                PodUpserted(
                    uid=uid,
                    namespace=namespace,
                    name=f"{name}-{role}{rank}",
                    pod_class=like,
                    labels=LabelSet(namespace, marks),
                    gates=frozenset({GATE}),
                    gang=key,
                    role=role,
                    rank=rank,
                    priority=priority,
                    managed=True,
                    owned=True,
                )
            )
        return made

    def _uid(self) -> PodUid:
        return PodUid(next(self._uids).to_bytes(16, "big"))

    def _apply(self, pod: PodUpserted) -> None:
        self._pods[pod.uid] = pod
        self.state.apply(pod, now=0.0)

    # --- what is decided --------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The cluster of now."""
        return self.state.snapshot()

    def decide(
        self,
        key: GangKey,
        *,
        spares: int = 0,
        uids: Iterable[PodUid] = (),
        refused: Sequence[str] = (),
    ) -> Decision:
        """Plan a gang (or some of its members) and verify a plan pod by pod."""
        rows = [self.state.pod_row(uid) for uid in uids]
        members = np.array(rows, dtype=np.int32) if rows else None
        decision = plan_now(
            self.snapshot, Question(key, spare_count=spares, refused=tuple(refused)), members
        )
        if isinstance(decision, Plan):
            assert verify(self.snapshot, decision) == []
        return decision

    def place(self, key: GangKey, *, spares: int = 0, uids: Iterable[PodUid] = ()) -> Plan:
        """As ``decide``, expecting a plan."""
        decision = self.decide(key, spares=spares, uids=uids)
        assert isinstance(decision, Plan), decision
        return decision

    def nodes_of(self, plan: Plan) -> list[str]:
        """Return the node of every member in rank order."""
        return [self.snapshot.nodes.name(int(row)) for row in plan.nodes]

    def racks_of(self, plan: Plan) -> list[str]:
        """Return the rack of every member in rank order, as block/rack (no rack: its node)."""
        topology, nodes = self.snapshot.topology, self.snapshot.nodes
        level = topology.level_index(RACK)
        assert level is not None
        domains = topology.domain(level)[plan.nodes].tolist()
        return [
            "/".join(topology.path(level, d)) if topology.labelled(level)[d] else nodes.name(row)
            for d, row in zip(domains, plan.nodes.tolist(), strict=True)
        ]

    def used_by(self, key: GangKey) -> set[str]:
        """Return the nodes that a gang's members stand on, those that are leaving too."""
        view = self.snapshot.gang(key)
        assert view is not None
        rows = np.concatenate([view.bound, view.leaving])
        return {self.snapshot.nodes.name(row) for row in self.snapshot.pods.node[rows]}

    def rack_of(self, node: str) -> str:
        """Return a node's rack as block/rack."""
        topology, row = self.snapshot.topology, self.snapshot.nodes.row(node)
        level = topology.level_index(RACK)
        assert level is not None
        assert row is not None
        return "/".join(topology.path(level, int(topology.domain(level)[row])))

    def hold(self, plan: Plan) -> None:
        """Let the ledger assume a plan."""
        snapshot = self.snapshot
        names = snapshot.nodes.name
        assignments = tuple(
            Assignment(
                uid=snapshot.pods.uid(int(pod)),
                node=names(int(node)),
                spares=tuple(names(int(row)) for row in spares if row >= 0),
            )
            for pod, node, spares in zip(plan.pods, plan.nodes, plan.spares, strict=True)
        )
        held = PlanHeld(plan.gang, f"plan-{plan.gang}", assignments, 1e12, plan.generation)
        self.state.apply(held, now=0.0)

    def bind(self, plan: Plan) -> list[PodUid]:
        """Let every member of a plan be bound where it was planned; return them in rank order."""
        snapshot = self.snapshot
        uids = [snapshot.pods.uid(int(row)) for row in plan.pods]
        for uid, name in zip(uids, self.nodes_of(plan), strict=True):
            self._apply(replace(self._pods[uid], node=name, gates=frozenset()))
        return uids


def roles(**minima: int) -> tuple[RoleSpec, ...]:
    """Return roles with their minima."""
    return tuple(RoleSpec(name, count) for name, count in minima.items())
