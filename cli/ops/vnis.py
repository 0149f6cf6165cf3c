"""Isolated networks as the API server has them, for `muster vni list`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from cli.output import Failure
from kube.auth import Auth
from kube.client import KubeClient
from kube.errors import NotFound
from kube.jobnetworks import (
    NETWORKS,
    NODE_NETWORKS,
    POOLS,
    JobNetwork,
    NodeNetwork,
    VniPool,
)

_GAP: Final = "   "
_NAMED: Final = 3  # nodes that are named; of the others there is a number


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool. ``why``: it is not used because of that, "" for one that is."""

    name: str
    first: int
    last: int
    used: int
    why: str


@dataclass(frozen=True, slots=True)
class Network:
    """One VNI. ``state``: ready, pending (some node is not done) or leaving.

    ``nodes``: that it is on, or, leaving, that still have devices; ``missing``: not ready.
    """

    vni: int
    gang: str
    pool: str
    mtu: int
    state: str
    nodes: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Networks:
    """All that there is."""

    pools: tuple[Pool, ...]
    networks: tuple[Network, ...]


async def read(auth: Auth) -> Networks:
    """Read all three kinds. Raises ``Failure`` where they are not installed."""
    async with KubeClient(auth) as client:
        try:
            pools = await client.list(POOLS)
            networks = await client.list(NETWORKS)
            agents = await client.list(NODE_NETWORKS)
        except NotFound:
            raise Failure(
                "isolated networks are not installed here: apply manifests/components/job-networks"
            ) from None
    found = sorted(networks, key=lambda network: network.spec.vni)
    return Networks(
        tuple(_pool(each, networks) for each in pools),
        tuple(_network(each, agents) for each in found),
    )


def render(found: Networks) -> str:
    """Return tables as kubectl prints them."""
    pools = [["POOL", "RANGE", "USED", "NOT USED BECAUSE"]]
    pools += [[p.name, f"{p.first}-{p.last}", str(p.used), p.why] for p in found.pools]
    rows = [["VNI", "GANG", "POOL", "MTU", "STATE", "NODES"]]
    rows += [[str(n.vni), n.gang, n.pool, str(n.mtu), n.state, _nodes(n)] for n in found.networks]
    return "\n".join([*_table(pools), "", *_table(rows)])


def to_json(found: Networks) -> str:
    """Return everything as one JSON object."""
    return msgspec.json.encode(found).decode()


def _pool(pool: VniPool, networks: Sequence[JobNetwork]) -> Pool:
    spec = pool.spec.range
    used = sum(spec.first <= network.spec.vni <= spec.last for network in networks)
    accepted = (c.message for c in pool.status.conditions if c.type == "Accepted")
    return Pool(pool.metadata.name, spec.first, spec.last, used, next(accepted, ""))


def _network(network: JobNetwork, agents: Sequence[NodeNetwork]) -> Network:
    spec = network.spec
    ready = {a.metadata.name for a in agents if spec.vni in a.status.ready}
    if network.metadata.deletion_timestamp is not None:
        nodes = sorted(a.metadata.name for a in agents if spec.vni in a.status.vnis)
        return Network(spec.vni, spec.gang, spec.pool, spec.mtu, "leaving", tuple(nodes), ())
    nodes = [peer.name for peer in spec.nodes]
    missing = tuple(node for node in nodes if node not in ready)
    state = "pending" if missing else "ready"
    return Network(spec.vni, spec.gang, spec.pool, spec.mtu, state, tuple(nodes), missing)


def _nodes(network: Network) -> str:
    count = str(len(network.nodes))
    if not network.missing:
        return count
    named = ", ".join(network.missing[:_NAMED])
    more = f" and {len(network.missing) - _NAMED} more" if len(network.missing) > _NAMED else ""
    return f"{count}, not ready: {named}{more}"


def _table(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield _GAP.join(cells).rstrip()
