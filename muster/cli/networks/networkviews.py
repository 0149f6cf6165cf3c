"""Isolated networks for people: tables as kubectl prints them. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from muster.cli.ask.views import age, columns
from muster.cli.ops.networks import Network, NetworkNode, NetworkPool, Networks, NetworkState

_NAMED: Final = 3  # most nodes that are named; the others are counted
_NO_POOLS: Final = (
    "no pools: no gang gets a network of its own; "
    "manifests/components/job-networks/pool.yaml is one to begin with"
)
_NO_NETWORKS: Final = "no networks: no gang that a pool selects has been planned"


def table(found: Networks, now: float) -> str:
    """Return pools, networks and what is wrong. ``now``: epoch seconds."""
    parts = [_pools(found.pools), _networks(found.networks, now), *found.problems]
    return "\n\n".join(parts)


def detail(network: Network, now: float) -> str:
    """Return one network and each of its nodes."""
    facts = columns(
        [
            ("VNI", f"{network.vni}, of pool {network.pool}"),
            ("Gang", network.gang),
            ("Age", _age(network, now)),
            ("Addresses", f"{network.subnet}, MTU {network.mtu}, UDP port {network.port}"),
            ("Attachment", f"{network.namespace}/muster-vni-{network.vni}"),
            ("NetworkState", _state(network)),
        ]
    )
    if not network.nodes:
        return facts
    rows = [(node.name, node.address, _meant(node)) for node in network.nodes]
    return "\n\n".join([facts, columns([("NODE", "ADDRESS", "STATE"), *rows])])


def as_json(found: Networks | Network) -> str:
    """Return everything as one JSON object."""
    return msgspec.json.encode(found).decode()


def _pools(pools: Sequence[NetworkPool]) -> str:
    if not pools:
        return _NO_POOLS
    head = ("POOL", "VNIS", "USED", "FREE", "FEDERATION", "STATE")
    return columns([head, *map(_pool, pools)])


def _pool(pool: NetworkPool) -> tuple[str, ...]:
    free = pool.size - pool.used
    state = f"not used: {pool.why}" if pool.why else pool.note or "in use"
    return pool.name, pool.range, str(pool.used), str(free), pool.federation, state


def _networks(networks: Sequence[Network], now: float) -> str:
    if not networks:
        return _NO_NETWORKS
    head = ("VNI", "GANG", "POOL", "MTU", "NODES", "AGE", "STATE")
    return columns([head, *(_network(each, now) for each in networks)])


def _network(found: Network, now: float) -> tuple[str, ...]:
    nodes, old = str(len(found.nodes)), _age(found, now)
    return str(found.vni), found.gang, found.pool, str(found.mtu), nodes, old, _state(found)


def _age(network: Network, now: float) -> str:
    return age(now - network.made) if network.made else "-"


def _state(network: Network) -> str:
    """Return the state, and the nodes that are not ready."""
    if network.state is NetworkState.LEAVING:
        left = "; devices are left on " + _names(network.nodes) if network.nodes else ""
        return f"leaving{left}"
    late = {
        state: [node for node in network.nodes if node.state is state]
        for state in (NetworkState.PENDING, NetworkState.SILENT)
    }
    texts = (f"{state.value}: {_names(nodes)}" for state, nodes in late.items() if nodes)
    return "; ".join(texts) or "ready"


def _names(nodes: Sequence[NetworkNode]) -> str:
    named = ", ".join(node.name for node in nodes[:_NAMED])
    return named + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")


def _meant(node: NetworkNode) -> str:
    """Return a node's state, with its reason."""
    match node.state:
        case NetworkState.SILENT:
            return "no agent: muster vni-agent does not run there"
        case NetworkState.PENDING:
            return "pending: its agent has not made the devices yet"
        case NetworkState.LEAVING:
            return "leaving: its agent still has devices to remove"
        case NetworkState.READY:
            return "ready"
