"""What injection knows beside the pod, from the live cluster.

::

    ClusterProfiles ─┐
    FabricProfiles  ─┤ watches    tables     at most every 100 ms
    override policies┼────────► (one each) ──────────────────────► Facts ◄── every review
    Namespaces      ─┤              │                   (one immutable value)
    Nodes           ─┘              │ keys to group nodes by
      ▲                             │
      └─────── listed anew ◄────────┘ when a profile selects by another label

A review takes the ``Facts`` of that moment and never waits for the API server. They are replaced
whole. Until everything has been listed once there are none (``injecting.Early`` says what happens
to pods then) and the replica is not ready: without nodes the rules would take everything for
possible. When the API server is away, what was known last stays. A kind that is not installed is
a kind of which there is nothing.

What is wrong with a profile or a policy goes to ``Report``, and stops nothing else.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol, TypeVar

import msgspec

from muster.injection.choosing.nodetable import FabricNodes, keys_of
from muster.injection.nodegroups import NOT_KNOWN
from muster.injection.overrides.policy import Policies, PolicyName
from muster.injection.profiles.fabric import Fabrics
from muster.injection.profiles.tiers import PlacesData
from muster.injection.subject import Facts
from muster.kube import resources, wire
from muster.kube.client import KubeClient
from muster.kube.resources import KubeObject, Resource
from muster.workloads.devices.accelerators import Accelerators
from webhook.facts.objectchanges import FollowedKind, follow
from webhook.facts.policies import RESOURCES, PolicyTable
from webhook.facts.profiles import CLUSTER_PROFILES, FABRIC_PROFILES, InForce, ProfileState

COALESCE_S: Final = 0.1  # between two values of the facts: a burst of nodes makes one
Found = TypeVar("Found", bound=KubeObject)
Drop = Callable[[wire.ObjectMeta], None]
_log = logging.getLogger(__name__)


class PoolNodeStatus(wire.Wire, frozen=True):
    """core/v1 NodeStatus, as far as pools show in it."""

    allocatable: wire.Quantities = msgspec.field(default_factory=dict)


class PoolNode(wire.Wire, frozen=True):
    """core/v1 Node without its conditions, images and addresses."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: wire.NodeSpec = wire.NodeSpec()
    status: PoolNodeStatus = PoolNodeStatus()


POOL_NODES: Final = Resource("", "v1", "nodes", PoolNode, namespaced=False)


@dataclass(frozen=True, slots=True)
class Static:
    """What does not change while the process runs. ``fabrics``: shipped ones and those of files."""

    accelerators: Accelerators
    places: PlacesData
    fabrics: Fabrics


@dataclass(frozen=True, slots=True)
class SeenProblems:
    """What there is and what is wrong with it, for Events, statuses and metrics."""

    profiles: tuple[ProfileState, ...]
    policies: Policies
    #: policies that cannot be used, with their objects and the reason
    wrong: Mapping[PolicyName, tuple[wire.ObjectMeta, str]]
    nodes: int


class Report(Protocol):
    """Tells people how profiles and policies fare."""

    def seen(self, seen: SeenProblems) -> None:
        """Take what is known now; called whenever the facts are replaced."""


@dataclass(slots=True)
class LiveFacts:
    """The tables, and the value made of them. ``run`` is one task."""

    client: KubeClient
    cluster: str
    static: Static
    report: Report
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _facts: Facts | None = None
    _profiles: InForce = field(init=False)
    _policies: PolicyTable = field(default_factory=PolicyTable)
    _namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _nodes: FabricNodes | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _regroup: asyncio.Event = field(default_factory=asyncio.Event)
    _sources: list[FollowedKind[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Name what is listed before the nodes."""
        self._profiles = InForce(self.cluster, self.static.fabrics)
        clusters, own, table = self._profiles.clusters, self._profiles.own, self._policies
        self._sources = [
            self._objects(CLUSTER_PROFILES, clusters.put, clusters.drop),
            self._objects(FABRIC_PROFILES, own.put, own.drop),
            FollowedKind(resources.NAMESPACES, self._namespace, self._namespace_gone),
            *(self._objects(resource, table.put, table.drop) for resource in RESOURCES),
        ]

    def current(self) -> Facts | None:
        """Return what is known at this moment, ``None`` until everything has been listed once."""
        return self._facts if self._nodes is not None else None

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, ``None`` where they are not known."""
        return self._namespaces.get(namespace)

    def problem(self) -> str | None:
        """Return what has not been listed yet, for the readiness check."""
        missing = [str(s.resource) for s in self._sources if not s.synced.is_set()]
        missing += ["nodes"] if self._nodes is None else []
        return f"not listed yet: {', '.join(missing)}" if missing else None

    async def run(self) -> NoReturn:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(self._follow(source), name=f"watch {source.resource}")
            for source in self._sources:
                await source.synced.wait()
            self.assemble()
            group.create_task(self._follow_nodes(), name="watch nodes")
            while True:
                await self._changed.wait()
                self._changed.clear()
                self.assemble()
                await self.sleep(COALESCE_S)
        raise AssertionError("watches do not end")

    def assemble(self) -> None:
        """Replace the facts by what the tables say now."""
        self._profiles.choose()
        policies = self._policies.policies()
        nodes = self._nodes.nodes() if self._nodes is not None else NOT_KNOWN
        self._facts = Facts(
            self._profiles.chosen(),
            self._profiles.fabrics,
            self.static.accelerators,
            self.static.places,
            nodes,
            self._namespaces.copy(),
            policies,
        )
        if self._nodes is not None and not self._nodes.keys.issuperset(keys_of(self._facts)):
            self._regroup.set()
        count = len(self._nodes) if self._nodes is not None else 0
        problems = self._policies.problems()
        wrong = {name: problems[str(name)] for name in policies.problems()}
        self.report.seen(SeenProblems(tuple(self._profiles.states()), policies, wrong, count))

    # -- profiles and policies -------------------------------------------------------------------

    def _objects(
        self, resource: Resource[Found], put: Callable[[Found], None], drop: Drop
    ) -> FollowedKind[Found]:
        """Return a source whose every change makes new facts."""

        def changed(found: Found) -> None:
            put(found)
            self._changed.set()

        def gone(meta: wire.ObjectMeta) -> None:
            drop(meta)
            self._changed.set()

        return FollowedKind(resource, changed, gone)

    # -- namespaces and nodes --------------------------------------------------------------------

    def _namespace(self, found: wire.Namespace) -> None:
        name, labels = found.metadata.name, found.metadata.labels
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._changed.set()

    def _namespace_gone(self, meta: wire.ObjectMeta) -> None:
        if self._namespaces.pop(meta.name, None) is not None:
            self._changed.set()

    async def _follow_nodes(self) -> NoReturn:
        """Follow the nodes; list them anew when they are to be grouped by another label."""
        while True:
            assert self._facts is not None  # noqa: S101 - made before this is started
            self._regroup.clear()
            table = FabricNodes(keys_of(self._facts))
            following = asyncio.create_task(self._follow(self._pools(table)), name="nodes")
            waiting = asyncio.create_task(self._regroup.wait(), name="regroup")
            try:
                await asyncio.wait((following, waiting), return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    await following
            finally:
                following.cancel()
                waiting.cancel()

    def _pools(self, table: FabricNodes) -> FollowedKind[PoolNode]:
        """Return a source that fills ``table``, and puts it in force when it is full."""

        def put(node: PoolNode) -> None:
            meta = node.metadata
            if table.put(meta.uid, meta.labels, node.status.allocatable, node.spec.taints):
                self._changed.set()

        def gone(meta: wire.ObjectMeta) -> None:
            if table.drop(meta.uid):
                self._changed.set()

        def synced(seen: frozenset[str] | None) -> None:
            if seen is not None:
                table.keep_only(seen)
            self._nodes = table
            self._changed.set()

        return FollowedKind(POOL_NODES, put, gone, tracks=False, on_synced=synced)

    def _follow(self, source: FollowedKind[Any]) -> Coroutine[Any, Any, NoReturn]:
        return follow(self.client, source, _problem)


def _problem(resource: str, text: str) -> None:
    _log.warning("watch", extra={"resource": resource, "problem": text})
