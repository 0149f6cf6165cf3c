"""Pools of VNIs and the nodes' agents, as the watches show them; every replica stores both.

A pool selects pods by their labels and by the labels of their namespace, with the code that also
evaluates pod affinity. Pools that select the same pods are used in the order of their names.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import LabelSelector, PodAffinityTerm
from muster.kube import wire
from muster.kube.kinds.jobnetworks import NodeNetwork, NodeNetworkStatus, VniPool
from muster.kube.translation.selectors import label_selector
from muster.vni.pools import JobNetworkPool, Range, judge


@dataclass(frozen=True, slots=True)
class ReadPool:
    """A pool in three forms."""

    #: as it was read
    found: VniPool
    #: for the choice of VNIs
    pool: JobNetworkPool
    #: for the selection of pods
    term: PodAffinityTerm


@dataclass(slots=True)
class NetPools:
    """The pools and the nodes' agents, by name, as they were read last."""

    pools: dict[str, ReadPool] = field(default_factory=dict)
    #: pool → why it is not used
    refused: dict[str, str] = field(default_factory=dict)
    #: node → the status that its agent reports
    nodes: dict[str, NodeNetworkStatus] = field(default_factory=dict)
    #: called when pools have changed
    pool_listeners: list[Callable[[], None]] = field(default_factory=list)
    #: called when agents have changed
    agent_listeners: list[Callable[[], None]] = field(default_factory=list)
    _usable: tuple[ReadPool, ...] = ()

    def pool(self, found: VniPool) -> None:
        """Apply a pool. Raises ``ValueError`` for a selector that is newer than this code."""
        spec = found.spec
        pool = JobNetworkPool(
            name=found.metadata.name,
            range=Range(spec.range.first, spec.range.last),
            federation=(
                None
                if spec.federation is None
                else Range(spec.federation.first, spec.federation.last)
            ),
            subnet=spec.subnet,
            mtu=spec.mtu,
            port=spec.port,
            made=_moment(found.metadata),
        )
        term = PodAffinityTerm(
            topology_key="",
            selector=label_selector(spec.pod_selector),
            namespaces=frozenset(),
            namespace_selector=label_selector(spec.namespace_selector) or LabelSelector(),
        )
        before = self.pools.get(pool.name)
        self.pools[pool.name] = ReadPool(found, pool, term)
        if before is None or (before.pool, before.term) != (pool, term):
            self._judge()

    def pool_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a pool; networks that were made from it stay until their gangs end."""
        if self.pools.pop(meta.name, None) is not None:
            self._judge()

    def _judge(self) -> None:
        found = judge(each.pool for each in self.pools.values())
        self.refused = {name: why for name, why in found.items() if why}
        self._usable = tuple(
            self.pools[name] for name in sorted(self.pools) if name not in self.refused
        )
        _call(self.pool_listeners)

    def node(self, found: NodeNetwork) -> None:
        """Apply the status of an agent."""
        name = found.metadata.name
        if self.nodes.get(name) != found.status:
            self.nodes[name] = found.status
            _call(self.agent_listeners)

    def node_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget an agent."""
        if self.nodes.pop(meta.name, None) is not None:
            _call(self.agent_listeners)

    def selecting(self, snapshot: Snapshot, label_ids: Iterable[int]) -> tuple[JobNetworkPool, ...]:
        """Return the pools that select pods with any of these labels, in the order of use."""
        ids = tuple(label_ids) if self._usable else ()
        return tuple(
            each.pool
            for each in self._usable
            if any(snapshot.matches(each.term, label_id) for label_id in ids)
        )

    def refusal(self, snapshot: Snapshot, label_ids: Iterable[int]) -> str:
        """Return why pools that select such pods are not used, "" if no such pool selects them.

        The pods wait then. Without the network they would run without isolation, unnoticed.
        """
        ids = tuple(label_ids) if self.refused else ()
        return "; ".join(
            f"pool {name} is not used: {why}"
            for name, why in sorted(self.refused.items())
            if any(snapshot.matches(self.pools[name].term, label_id) for label_id in ids)
        )

    def selects(self, name: str, snapshot: Snapshot, label_id: int) -> bool:
        """Return whether a pool selects pods with these labels; a deleted pool selects all."""
        pool = self.pools.get(name)
        return pool is None or snapshot.matches(pool.term, label_id)


def _call(listeners: Iterable[Callable[[], None]]) -> None:
    for listener in listeners:
        listener()


def _moment(meta: wire.ObjectMeta) -> str:
    made = meta.creation_timestamp
    return "" if made is None else made.isoformat()
