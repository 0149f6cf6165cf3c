"""A model that pods are fed to: one by one, or as a list is taken over."""

from collections.abc import Iterable, Sequence

import numpy as np
from prometheus_client import CollectorRegistry
from support.clusters import fingerprint
from support.clusters.feeds import Annotations, Arrivals, feed_of

from extender.engine import Engine
from extender.intake.checkpoints import Checkpoints
from extender.intake.firstlist.plain import PlainPods
from extender.intake.firstlist.pods import ListedPods
from extender.intake.firstlist.reader import FirstListReader
from extender.intake.firstlist.siblings import is_quiet
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from muster.cluster.columns.uids import Uids
from muster.cluster.events import QueueUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.state import ClusterState
from muster.cluster.tables.pods import PodState
from muster.kube import names, wire
from muster.kube.kinds import multus
from muster.kube.writing.events import EventRecorder


class ListedCluster:
    """A model with two nodes, and what feeds it pods, one by one or taken over from a list.

    ``arrived``, ``attached``: what the feed says of pods to its listeners.
    """

    def __init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        engine = Engine(self.state, lambda: 1.0)
        waiting, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, waiting, recorder, metrics, DueEvents())
        self.checkpoints = Checkpoints(engine, reporter)
        self.feed = feed_of(
            engine,
            waiting,
            reporter,
            slipped=Arrivals(seen=self.come),
            networks=Annotations(seen=self.attach),
            checkpoints=self.checkpoints,
        )
        self.arrived: list[object] = []
        self.attached: dict[PodUid, object] = {}
        self.feed.listen(self.expect)
        self.listed = ListedPods(engine, self.feed)
        self.plain = PlainPods(engine)
        for name, managed in (("ns", "true"), ("closed", "false"), ("kube-system", "true")):
            meta = wire.ObjectMeta(name=name, labels={names.MANAGED: managed})
            self.feed.namespace(wire.Namespace(metadata=meta))
        amounts = {"cpu": "3", "memory": "64Gi", "nvidia.com/gpu": "8", "pods": "40"}
        for name in ("n0", "n1"):
            meta = wire.ObjectMeta(name=name, labels={names.HOST: name})
            status = wire.NodeStatus(allocatable=amounts)
            self.feed.node(wire.Node(metadata=meta, status=status))
        for name in ("web", "g"):
            spec = QueueSpec(QueueName(f"muster/{name}"), None, {Cell("", "cpu"): Quota(4_000)})
            engine.apply(QueueUpserted(spec, (Spelling("", name),)))

    def expect(self, gang: GangKey, ranks: Iterable[int]) -> None:
        self.arrived += (f"{gang} {rank}" for rank in ranks)

    def come(self, uid: PodUid, pod: wire.Pod, gang: GangKey | None) -> None:
        if not (gang and pod.spec.node_name and is_quiet(pod)):
            self.arrived.append((uid, pod, gang))

    def attach(self, uid: PodUid, meta: wire.ObjectMeta, ended: bool) -> None:  # noqa: FBT001  a listener
        if multus.ANNOTATION not in meta.annotations and not ended:
            return  # it has nothing to tell
        # Versions and times of siblings are not read.
        said = meta.namespace, meta.name, meta.uid, meta.labels, meta.annotations
        self.attached[uid] = said, meta.owner_references, ended

    def take(self, pod: wire.Pod) -> None:
        """Take a pod over by itself."""
        try:
            self.feed.pod(pod)
            self.listed.applied(pod)
        except ValueError:
            self.arrived.append(pod.metadata.uid)

    def take_list(
        self, reader: FirstListReader, pages: Sequence[Sequence[wire.Pod]]
    ) -> list[list[int]]:
        """Take a whole list over as ``Sync`` does; return the order in which each page's pods came.

        Those that go together come before those that are left.
        """
        orders = []
        reader.begin()
        for page in pages:
            left = reader.take(page)
            orders.append([*(place for place in range(len(page)) if place not in left), *left])
            for place in left:
                self.take(page[place])
        for uid in reader.end(self.known):
            self.feed.forget(uid)
        return orders

    def known(self) -> Uids:
        """Return the UIDs of all pods in the model."""
        pods = self.state.snapshot().pods
        return pods.uids.at(np.flatnonzero(pods.state.array() != PodState.FREE))

    def look(self) -> object:
        """Return all that the model holds; equal models have equal looks."""
        self.state.validate()
        return fingerprint.content(self.state.snapshot()), self.charged()

    def charged(self) -> dict[tuple[str, str, str], dict[str, int]]:
        """Return what is used by whom: dialect of the gang, namespace and queue, as named."""
        found: dict[tuple[str, str, str], dict[str, int]] = {}
        for user, account in self.state.charges.accounts().items():
            used = found.setdefault(tuple(user), {})
            for use, amount in account.used.items():
                used[use.resource] = used.get(use.resource, 0) + amount
        return found
