"""The leader's writes for jobs' networks, and the objects as they are after them.

Every method leaves the book correct, whatever the answer was. Without an answer the object may
exist or not. Then ``unsure`` is set, and the next step is a list::

    create ── 201 ──────────────► HELD          delete ── 200, 202 ──► LEAVING
      │ not sent, refused ──────► FREE            │ 404, 409 ────────► unsure
      │ 409: it is there ───────► FREE, unsure    └ no answer ───────► unsure
      └ no answer ──────────────► CLAIMED, unsure
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from typing import Final

import msgspec
from msgspec.structs import replace

from extender.jobnetworks.pools import NetPools, ReadPool
from muster.cluster.ids import GangKey
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import (
    AlreadyExists,
    APIError,
    Conflict,
    Fenced,
    KubeError,
    NotFound,
    NotSent,
    ServerError,
)
from muster.kube.kinds.jobnetworks import (
    ATTACHMENTS,
    NETWORKS,
    NODE_NETWORKS,
    POOLS,
    JobNetwork,
    JobNetworkSpec,
    NodeNetworkStatus,
    Peer,
    PoolCondition,
    VniPoolStatus,
    attachment_body,
    attachment_name,
    freed_patch,
    network_body,
    nodes_patch,
)
from muster.vni.addresses import Subnet
from muster.vni.book import ChosenVni, Line, VniBook, VniStanding
from muster.vni.pools import SMALLEST_MTU, JobNetworkPool, Range, inner_mtu

FEDERATION_FREE: Final = "FederationFree"
STATUS_S: Final = 5.0  # between two statuses of a pool
_NAMED: Final = 3  # VNIs that a condition names; the others are only counted
IPV4: Final = 4
IPV6: Final = 6

Agents = Mapping[str, NodeNetworkStatus]


class TryAgain(Exception):
    """The network cannot be made now, or it is unknown whether it exists; try again later."""


def peers_of(nodes: set[str], agents: Agents) -> tuple[Peer, ...] | str:
    """Return the nodes with their addresses, by name, or the problem with a node's agent."""
    families = {node: _family(agents[node].address) for node in sorted(nodes & agents.keys())}
    missing = sorted(node for node in nodes if not families.get(node))
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return (
            f"node {missing[0]}{others}: muster vni-agent does not run there "
            f"(there is no NodeNetwork of that name)"
        )
    by_family = {family: node for node, family in families.items()}
    if len(by_family) > 1:
        return (
            f"node {by_family[IPV4]} has an IPv4 address in the underlay and node "
            f"{by_family[IPV6]} an IPv6 one: give the agents --address of one family"
        )
    return tuple(Peer(name=node, address=agents[node].address) for node in sorted(nodes))


def _family(address: str) -> int:
    """Return 4 or 6; 0 for an invalid address."""
    try:
        return ip_address(address).version
    except ValueError:
        return 0


def mtu_of(pool: JobNetworkPool, agents: Agents) -> int | str:
    """Return the MTU of a network on these nodes, or which node cannot carry it and why."""
    rooms = {
        name: inner_mtu(agent.mtu, v6=_family(agent.address) == IPV6)
        for name, agent in agents.items()
    }
    least = min(rooms, key=lambda name: (rooms[name], name))
    wanted = pool.mtu or rooms[least]
    if wanted > rooms[least]:
        return f"pool {pool.name}: spec.mtu {wanted} is more than node {least} has: {rooms[least]}"
    if wanted < SMALLEST_MTU:
        return f"node {least}: its underlay leaves an MTU of {wanted}; {SMALLEST_MTU} is the least"
    return wanted


@dataclass(slots=True)
class NetworkWrites:
    """Writes the objects of networks, and stores each as it is."""

    client: KubeClient
    book: VniBook
    #: every JobNetwork as it is, by VNI
    objects: dict[int, JobNetwork] = field(default_factory=dict)
    #: whether the networks must be listed again
    unsure: bool = False
    _attached: set[int] = field(default_factory=set)  # VNIs with an attachment
    _written: dict[str, tuple[VniPoolStatus, float]] = field(default_factory=dict)  # pool → when

    def subnet(self, vni: int) -> Subnet:
        """Return the subnet of a network."""
        return ip_network(self.objects[vni].spec.subnet)

    async def list(self, keeps: Callable[[Line], bool]) -> list[Line]:
        """Read all networks into the book; return the surplus ones (``VniBook.listed``)."""
        found = {each.spec.vni: each for each in await self.client.list(NETWORKS)}
        self.objects = found
        self._attached &= found.keys()
        self.unsure = False
        return self.book.listed((_line(each) for each in found.values()), keeps)

    async def make(self, chosen: ChosenVni, gang: GangKey, namespace: str, agents: Agents) -> Line:
        """Create a gang's network. Raises ``TryAgain`` and ``KubeError``."""
        pool, vni = chosen.pool, chosen.vni
        peers, mtu = peers_of(set(agents), agents), mtu_of(pool, agents)
        if isinstance(peers, str) or isinstance(mtu, str):
            raise TryAgain(mtu if isinstance(mtu, str) else str(peers))
        spec = JobNetworkSpec(
            vni=vni,
            pool=pool.name,
            gang=gang,
            namespace=namespace,
            subnet=pool.subnet,
            mtu=mtu,
            port=pool.port,
            nodes=peers,
        )
        self.book.claim(vni, gang, pool.name)
        try:
            self.objects[vni] = await self.client.create(NETWORKS, network_body(spec))
        except AlreadyExists:
            self.book.refused(vni)
            self.unsure = True
            raise TryAgain(f"VNI {vni} is taken already: the networks are listed again") from None
        except (NotSent, Fenced):
            self.book.refused(vni)
            raise
        except APIError as error:
            if isinstance(error, ServerError):
                self.unsure = True
            else:
                self.book.refused(vni)
            raise
        except KubeError:
            self.unsure = True
            raise
        self.book.made(vni)
        return self.book.lines[vni]

    async def add_nodes(self, vni: int, peers: Sequence[Peer], *, only: bool = False) -> None:
        """Add these nodes to a network; with ``only`` remove all others."""
        network = self.objects[vni]
        before = {peer.name: peer for peer in network.spec.nodes}
        wanted = {peer.name: peer for peer in peers}
        if not only:
            wanted = before | wanted
        if wanted == before:
            return
        nodes = tuple(wanted[name] for name in sorted(wanted))
        patch = nodes_patch(network, nodes)
        done = await self.client.patch(NETWORKS, network.metadata.name, patch, content_type=MERGE)
        spec = replace(network.spec, nodes=nodes)
        self.objects[vni] = JobNetwork(metadata=done.metadata, spec=spec)

    async def attach(self, vni: int) -> None:
        """Create the NetworkAttachmentDefinition, or correct it.

        Raises ``TryAgain`` if the kind or the namespace does not exist, and ``KubeError``.
        """
        if vni in self._attached:
            return
        spec = self.objects[vni].spec
        body = attachment_body(spec)
        try:
            await self.client.create(ATTACHMENTS, body, namespace=spec.namespace)
        except AlreadyExists:
            await self.client.patch(
                ATTACHMENTS,
                attachment_name(vni),
                {"metadata": {"labels": _labels(body)}, "spec": body["spec"]},
                namespace=spec.namespace,
                content_type=MERGE,
            )
        except NotFound as error:  # the kind, or the namespace
            raise TryAgain(
                f"namespace {spec.namespace}: NetworkAttachmentDefinition {attachment_name(vni)} "
                f"cannot be made: {error}"
            ) from error
        self._attached.add(vni)

    async def delete(self, vni: int) -> None:
        """Delete a network; its finalizer keeps the object until all agents have removed it."""
        meta = self.objects[vni].metadata
        try:
            await self.client.delete(NETWORKS, meta.name, uid=meta.uid)
        except (NotFound, Conflict):
            self.unsure = True
            return
        except KubeError:
            self.unsure = True
            raise
        self.book.leaving(vni)

    async def free(self, vni: int) -> None:
        """Remove the finalizer of a deleted network; its VNI may be assigned again."""
        network = self.objects[vni]
        await self._detach(network)
        try:
            patch = freed_patch(network)
            await self.client.patch(NETWORKS, network.metadata.name, patch, content_type=MERGE)
        except NotFound:
            pass
        except Conflict:  # another object has the name now: someone else removed the finalizer
            self.unsure = True
            return
        self.book.gone(vni)
        self.objects.pop(vni)

    async def _detach(self, network: JobNetwork) -> None:
        vni, namespace = network.spec.vni, network.spec.namespace
        self._attached.discard(vni)
        try:
            await self.client.delete(ATTACHMENTS, attachment_name(vni), namespace=namespace)
        except NotFound:
            return

    async def read_nodes(self, pools: NetPools) -> None:
        """Read the present status of every agent."""
        found = await self.client.list(NODE_NETWORKS)
        pools.nodes = {each.metadata.name: each.status for each in found}

    async def drop_nodes(self, names: Sequence[str]) -> None:
        """Delete the NodeNetworks that agents of deleted nodes have left."""
        for name in names:
            try:
                await self.client.delete(NODE_NETWORKS, name)
            except NotFound:
                continue

    async def write_pool_statuses(self, pools: NetPools, now: float) -> None:
        """Write the changed statuses of pools. ``now``: epoch seconds."""
        for name, read in list(pools.pools.items()):  # a watch may change it meanwhile
            before, at = self._written.get(name, (read.found.status, 0.0))
            status = self._status(read, pools.refused.get(name, ""), before, now)
            if status == before or now - at < STATUS_S:
                continue
            patch = {"metadata": {"uid": read.found.metadata.uid}, "status": _plain(status)}
            try:
                await self.client.patch(
                    POOLS, name, patch, content_type=MERGE, subresource="status"
                )
            except (NotFound, Conflict):
                self._written.pop(name, None)
                continue
            self._written[name] = status, now

    def _status(self, read: ReadPool, why: str, old: VniPoolStatus, now: float) -> VniPoolStatus:
        pool = read.pool
        accepted = _condition(old, "Accepted", ("Usable", "NotUsable"), why, now)
        conditions: tuple[PoolCondition, ...] = (accepted,)
        if pool.federation is not None:
            theirs = self._of_jobs(pool.federation)
            conditions += (_condition(old, FEDERATION_FREE, ("Free", "UsedByJobs"), theirs, now),)
        return VniPoolStatus(size=len(pool.range), used=self.book.used(pool), conditions=conditions)

    def _of_jobs(self, share: Range) -> str:
        """Return a text about the VNIs of a federation's range that jobs have, "" if none.

        They were assigned before the range was the federation's, and are free when the jobs end.
        """
        found = sorted(vni for vni in self.book.lines if vni in share)
        if not found:
            return ""
        named = ", ".join(f"{vni} ({self.book.lines[vni].gang})" for vni in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return f"jobs still have VNI {named}{more}: let them end before the federation uses these"


def _condition(
    old: VniPoolStatus, kind: str, reasons: tuple[str, str], problem: str, now: float
) -> PoolCondition:
    """Return a condition that is true if there is no problem. ``reasons``: good, bad."""
    truth = "False" if problem else "True"
    before = next((c for c in old.conditions if c.type == kind), PoolCondition())
    return PoolCondition(
        type=kind,
        status=truth,
        reason=reasons[bool(problem)],
        message=problem,
        last_transition_time=(
            before.last_transition_time if before.status == truth else _moment(now)
        ),
    )


def _line(network: JobNetwork) -> Line:
    leaves = network.metadata.deletion_timestamp is not None
    spec, standing = network.spec, VniStanding.LEAVING if leaves else VniStanding.HELD
    return Line(spec.vni, GangKey(spec.gang), spec.pool, standing)


def _labels(body: Mapping[str, object]) -> object:
    metadata = body["metadata"]
    return metadata["labels"] if isinstance(metadata, dict) else {}


def _plain(status: VniPoolStatus) -> dict[str, object]:
    """Return a status with its zeros: a merge patch would not change a field that is left out."""
    conditions = [
        {"message": "", **msgspec.to_builtins(condition)} for condition in status.conditions
    ]
    return {"size": status.size, "used": status.used, "conditions": conditions}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
