"""Isolated networks as the API server has them, for `muster networks`.

::

    VNIPool ─────► its VNIs, how many are free, and why it is not used
    JobNetwork ──► which gang has which VNI, and on which nodes it should be
    NodeNetwork ─► the VNIs that are on a node, as its agent reports them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from muster.cli.output import Failure
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden, NotFound
from muster.kube.http.auth import Auth
from muster.kube.kinds.jobnetworks import (
    ATTACHMENTS,
    NETWORK_PREFIX,
    NETWORKS,
    NODE_NETWORKS,
    POOLS,
    JobNetwork,
    NodeNetworkStatus,
    Peer,
    VniPool,
    VniRange,
)

NOT_INSTALLED: Final = (
    "isolated networks are not installed in this cluster: apply manifests/components/job-networks "
    "(docs/job-networks.md)"
)
NO_MULTUS: Final = (
    "NetworkAttachmentDefinition is not served (k8s.cni.cncf.io/v1): install Multus; until then "
    "gangs that a pool selects wait"
)
NO_AGENTS: Final = (
    "no node has reported: muster vni-agent runs nowhere; until then gangs that a pool selects wait"
)
UNSEEN: Final = "not checked yet: is the extender running?"


class NetworkState(StrEnum):
    """The state of a network, or of one of its nodes. ``PENDING``: devices are missing."""

    READY = "ready"
    PENDING = "pending"
    LEAVING = "leaving"
    SILENT = "no agent"


@dataclass(frozen=True, slots=True)
class NetworkPool:
    """One pool."""

    name: str
    #: Its VNIs, "first-last".
    range: str
    #: Number of its VNIs.
    size: int
    #: How many of them have a network.
    used: int
    #: The VNIs of its federation share, "" for none.
    federation: str
    #: Why it is not used, "" for a pool that is used.
    why: str
    #: Another condition of its status that needs action, "" for none.
    note: str


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """A node that the network should be on, or that a leaving network is still on."""

    name: str
    #: Its address in the underlay.
    address: str
    state: NetworkState


@dataclass(frozen=True, slots=True)
class Network:
    """One VNI."""

    vni: int
    #: Key of its gang.
    gang: str
    #: The namespace of the gang.
    namespace: str
    #: Name of the pool that the VNI is from.
    pool: str
    subnet: str
    mtu: int
    #: UDP port of VXLAN.
    port: int
    #: When it was created, epoch seconds, 0.0 where that is not known.
    made: float
    state: NetworkState
    nodes: tuple[NetworkNode, ...]


@dataclass(frozen=True, slots=True)
class Networks:
    """All pools and networks of a cluster."""

    pools: tuple[NetworkPool, ...]
    networks: tuple[Network, ...]
    #: Number of nodes that have reported.
    agents: int
    #: A sentence for each.
    problems: tuple[str, ...]


async def read(auth: Auth) -> Networks:
    """Read all three kinds. Raises ``Failure`` where they are not installed."""
    async with KubeClient(auth) as client:
        try:
            pools = await client.list(POOLS)
            networks = await client.list(NETWORKS)
            agents = await client.list(NODE_NETWORKS)
        except NotFound:
            raise Failure(NOT_INSTALLED) from None
        has_multus = await _has_multus(client)
    reports = {agent.metadata.name: agent.status for agent in agents}
    problems = ("" if has_multus else NO_MULTUS, "" if agents or not pools else NO_AGENTS)
    return Networks(
        tuple(_pool(each, networks) for each in pools),
        tuple(_network(each, reports) for each in sorted(networks, key=lambda each: each.spec.vni)),
        len(agents),
        tuple(filter(None, problems)),
    )


async def _has_multus(client: KubeClient) -> bool:
    try:
        return await client.serves(ATTACHMENTS)
    except Forbidden:
        return True  # unknown


def named(found: Networks, text: str) -> Network:
    """Return the network of a VNI, or of a gang by its key or the end of it.

    Raises ``Failure`` where there is none, or more than one.
    """
    number = text.removeprefix(NETWORK_PREFIX)
    if number.isdecimal():
        mine = [each for each in found.networks if each.vni == int(number)]
    else:
        mine = [each for each in found.networks if f"/{each.gang}".endswith(f"/{text}")]
    living = [each for each in mine if each.state is not NetworkState.LEAVING]
    match living or mine:
        case [one]:
            return one
        case []:
            raise Failure(
                f"{text!r} has no network: name a VNI or a gang that muster networks lists; why a "
                "gang waits for one: muster explain POD"
            )
        case several:
            keys = ", ".join(each.gang for each in several)
            raise Failure(f"{text!r} is more than one gang: {keys}; write one of them whole")


def _pool(pool: VniPool, networks: Sequence[JobNetwork]) -> NetworkPool:
    spec, conditions = pool.spec, {each.type: each for each in pool.status.conditions}
    first, last = spec.range.first, spec.range.last
    accepted, free = conditions.get("Accepted"), conditions.get("FederationFree")
    return NetworkPool(
        name=pool.metadata.name,
        range=_range(spec.range),
        size=max(0, last - first + 1),
        used=sum(first <= network.spec.vni <= last for network in networks),
        federation="" if spec.federation is None else _range(spec.federation),
        why=UNSEEN if accepted is None else accepted.message,
        note="" if free is None else free.message,
    )


def _range(found: VniRange) -> str:
    return f"{found.first}-{found.last}"


def _network(network: JobNetwork, reports: Mapping[str, NodeNetworkStatus]) -> Network:
    spec, meta = network.spec, network.metadata
    leaves = meta.deletion_timestamp is not None
    nodes = _left(spec.vni, reports) if leaves else _wanted(spec.vni, spec.nodes, reports)
    return Network(
        vni=spec.vni,
        gang=spec.gang,
        namespace=spec.namespace,
        pool=spec.pool,
        subnet=spec.subnet,
        mtu=spec.mtu,
        port=spec.port,
        made=_seconds(meta.creation_timestamp),
        state=NetworkState.LEAVING if leaves else _whole(nodes),
        nodes=nodes,
    )


def _left(vni: int, reports: Mapping[str, NodeNetworkStatus]) -> tuple[NetworkNode, ...]:
    return tuple(
        NetworkNode(name, status.address, NetworkState.LEAVING)
        for name, status in sorted(reports.items())
        if vni in status.vnis
    )


def _wanted(
    vni: int, peers: Sequence[Peer], reports: Mapping[str, NodeNetworkStatus]
) -> tuple[NetworkNode, ...]:
    return tuple(
        NetworkNode(peer.name, peer.address, _state(vni, reports.get(peer.name))) for peer in peers
    )


def _state(vni: int, status: NodeNetworkStatus | None) -> NetworkState:
    if status is None:
        return NetworkState.SILENT
    return NetworkState.READY if vni in status.ready else NetworkState.PENDING


def _whole(nodes: Sequence[NetworkNode]) -> NetworkState:
    return (
        NetworkState.READY
        if all(node.state is NetworkState.READY for node in nodes)
        else NetworkState.PENDING
    )


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
