"""What injection knows beside the pod, from the live cluster.

::

    ClusterProfiles ─┐
    FabricProfiles  ─┤ watches    tables     at most every 100 ms
    Namespaces      ─┼────────► (one each) ──────────────────────► Facts ◄── every review
    Nodes           ─┘              │ keys to group nodes by            (one immutable value)
      ▲                             │
      └─────── listed anew ◄────────┘ when a profile selects by another label

A review takes the ``Facts`` of that moment and never waits for the API server. They are replaced
whole. Until everything has been listed once there are none (``injecting.Early`` says what happens
to pods then) and the replica is not ready: without nodes the rules would take everything for
possible. When the API server is away, what was known last stays.

The ClusterProfile is the one called like this cluster (``cluster`` in the configuration), or the
only one there is. One that is broken, or that names a fabric nobody knows, is reported as an Event
and a metric, and the last good one stays in force.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol

import msgspec

from injection import catalog
from injection.clusterprofile import ClusterProfile
from injection.fabric import Fabrics, Name
from injection.nodes import NOT_KNOWN
from injection.nodetable import NodeTable, keys_of
from injection.placesdata import PlacesData
from injection.subject import Facts
from kube import resources, wire
from kube.client import KubeClient
from kube.resources import Resource
from webhook.following import Source, follow
from webhook.profiles import (
    CLUSTER_PROFILES,
    FABRIC_PROFILES,
    ProfileObject,
    Profiles,
    cluster_profiles,
    fabric_profiles,
)
from workloads.accelerators import Accelerators

COALESCE_S: Final = 0.1  # between two values of the facts: a burst of nodes makes one
_log = logging.getLogger(__name__)


class PoolNodeStatus(wire.Wire, frozen=True):
    """core/v1 NodeStatus, as far as pools are told by it."""

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


class Report(Protocol):
    """Tells people of a profile that cannot be used."""

    def broken(self, kind: str, meta: wire.ObjectMeta, problem: str) -> None:
        """``kind`` and ``meta`` of the object, and what is wrong with it."""

    def problems(self, count: int) -> None:
        """How many profiles cannot be used now."""

    def nodes(self, count: int) -> None:
        """How many nodes there are."""


@dataclass(slots=True)
class LiveFacts:
    """The tables, and the value made of them. ``run`` is one task."""

    client: KubeClient
    cluster: str
    static: Static
    report: Report
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _facts: Facts | None = None
    _clusters: Profiles[ClusterProfile] = field(default_factory=cluster_profiles)
    _fabrics: Profiles[Any] = field(default_factory=fabric_profiles)
    _namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _nodes: NodeTable | None = None
    _chosen: ClusterProfile | None = None
    _told: dict[str, str] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _regroup: asyncio.Event = field(default_factory=asyncio.Event)
    _sources: list[Source[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Name what is listed before the nodes."""
        self._sources = [
            self._profiles(CLUSTER_PROFILES, self._clusters),
            self._profiles(FABRIC_PROFILES, self._fabrics),
            Source(resources.NAMESPACES, self._namespace, self._namespace_gone),
        ]

    def current(self) -> Facts | None:
        """Return what is known at this moment, ``None`` until everything has been listed once."""
        return self._facts if self._nodes is not None else None

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
        fabrics = {**self.static.fabrics, **self._fabrics.good}
        problems = self._choose(fabrics)
        nodes = self._nodes.nodes() if self._nodes is not None else NOT_KNOWN
        self._facts = Facts(
            self._chosen or ClusterProfile(metadata=Name(name=self.cluster)),
            fabrics,
            self.static.accelerators,
            self.static.places,
            nodes,
            self._namespaces.copy(),
        )
        if self._nodes is not None and not self._nodes.keys.issuperset(keys_of(self._facts)):
            self._regroup.set()
        self.report.nodes(len(self._nodes) if self._nodes is not None else 0)
        self._tell(problems)

    # -- profiles --------------------------------------------------------------------------------

    def _choose(self, fabrics: Fabrics) -> dict[str, tuple[wire.ObjectMeta, str]]:
        """Take the cluster's profile where it can be used; return what is wrong, by object."""
        found = {
            f"{profiles.kind} {name}": (profiles.metadata[name], problem)
            for profiles in (self._clusters, self._fabrics)
            for name, problem in profiles.problems.items()
        }
        names = self._clusters.metadata
        name = self.cluster if self.cluster in names else next(iter(names), "")
        if not names:
            self._chosen = None
        elif name != self.cluster and len(names) > 1:
            text = (
                f"none of the {len(names)} ClusterProfiles is called {self.cluster}: give one that "
                "name, or name one of them in the webhook's configuration, field cluster"
            )
            found["ClusterProfile"] = (names[name], text)
        elif (profile := self._clusters.good.get(name)) is not None:
            unknown = catalog.unknown_fabrics(profile, fabrics)
            if unknown:
                found[f"ClusterProfile {name}"] = (names[name], "; ".join(unknown))
            else:
                self._chosen = profile
        return found

    def _tell(self, problems: Mapping[str, tuple[wire.ObjectMeta, str]]) -> None:
        """Report what is wrong, each text once."""
        self.report.problems(len(problems))
        for what, (meta, problem) in problems.items():
            if self._told.get(what) != problem:
                self.report.broken(what.partition(" ")[0], meta, problem)
        self._told = {what: problem for what, (_, problem) in problems.items()}

    def _profiles(
        self, resource: Resource[ProfileObject], profiles: Profiles[Any]
    ) -> Source[ProfileObject]:
        def put(found: ProfileObject) -> None:
            profiles.put(found)
            self._changed.set()

        def drop(meta: wire.ObjectMeta) -> None:
            profiles.drop(meta)
            self._changed.set()

        return Source(resource, put, drop)

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
            table = NodeTable(keys_of(self._facts))
            following = asyncio.create_task(self._follow(self._pools(table)), name="nodes")
            waiting = asyncio.create_task(self._regroup.wait(), name="regroup")
            try:
                await asyncio.wait((following, waiting), return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    await following
            finally:
                following.cancel()
                waiting.cancel()

    def _pools(self, table: NodeTable) -> Source[PoolNode]:
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

        return Source(POOL_NODES, put, gone, tracks=False, on_synced=synced)

    def _follow(self, source: Source[Any]) -> Coroutine[Any, Any, NoReturn]:
        return follow(self.client, source, _problem)


def _problem(resource: str, text: str) -> None:
    _log.warning("watch", extra={"resource": resource, "problem": text})
