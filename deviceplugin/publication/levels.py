"""The labels of a node's topology levels, from the first source that knows each level.

The sources, in this order::

    a file that names nodes (a mounted ConfigMap)   written by the operator
    labels that the cloud or topograph writes       CLOUD_LEVELS
    the switches behind the node's ports (LLDP)     only the lowest level above the host

A level's label that another program has set is not changed. Where the levels are the cloud's own
labels, nothing is written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

import msgspec

from deviceplugin.publication.labelvalue import digest
from deviceplugin.publication.lldp import Neighbor
from muster.kube.names import BLOCK, RACK

# Label keys of clouds and tools that know the network, by our level that they correspond to.
# GKE: cloud.google.com documentation "Use Compact Placement", Kueue's example topology. EKS:
# cloud-provider-aws; layer 1 is the widest. OKE: written from the instance metadata when a node
# joins. CoreWeave: docs "Node labels". topograph: docs/engines/k8s.md, both spellings.
CLOUD_LEVELS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        BLOCK: (
            "cloud.google.com/gce-topology-block",
            "topology.k8s.aws/network-node-layer-2",
            "oci.oraclecloud.com/rdma.network_block_id",
            "backend.coreweave.cloud/superpod",
            "network.topology.nvidia.com/spine",
        ),
        RACK: (
            "cloud.google.com/gce-topology-subblock",
            "topology.k8s.aws/network-node-layer-3",
            "oci.oraclecloud.com/rdma.local_block_id",
            "backend.coreweave.cloud/leafgroup",
            "network.topology.nvidia.com/leaf",
            "network.topology.nvidia.com/block",
        ),
    }
)


class MalformedTopology(ValueError):
    """A topology file cannot be used; the message names the entry and the reason."""


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: tuple[str, ...]
    levels: dict[str, str]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    groups: tuple[_Group, ...]


@dataclass(frozen=True, slots=True)
class LevelSources:
    """What is known of one node's levels."""

    #: labels of its Node object that are not ours
    labels: Mapping[str, str]
    #: the levels that the topology file gives it
    in_file: Mapping[str, str]
    #: switches behind its ports, by LLDP
    neighbors: tuple[Neighbor, ...] = ()


def levels_in_file(data: bytes, node: str, *, source: str) -> dict[str, str]:
    """Return the levels of ``node`` in a topology file: label key → domain.

    ``groups`` are tried in their order; ``nodes`` are names or patterns with "*". Raises
    ``MalformedTopology``, also where two groups contradict each other about the node::

        groups:
        - {nodes: ["gpu-a-*"], levels: {muster.dev/block: b1, muster.dev/rack: a}}
    """
    try:
        file = msgspec.yaml.decode(data, type=_File)
    except msgspec.MsgspecError as error:
        raise MalformedTopology(f"{source}: {error}") from error
    found: dict[str, str] = {}
    for number, group in enumerate(file.groups):
        if any(fnmatchcase(node, pattern) for pattern in group.nodes):
            _join(found, group.levels, f"{source}: groups[{number}]", node)
    return found


def _join(found: dict[str, str], levels: Mapping[str, str], where: str, node: str) -> None:
    for key, domain in levels.items():
        if not domain:
            raise MalformedTopology(f"{where}.levels[{key}]: is empty; name the domain")
        if found.setdefault(key, domain) != domain:
            raise MalformedTopology(
                f"{where}.levels[{key}]: {domain!r}, but an earlier group puts node {node} into "
                f"{found[key]!r}; leave one of them out"
            )


def level_labels(levels: Iterable[str], sources: LevelSources) -> dict[str, str]:
    """Return the labels to write. ``levels``: the cluster's, widest first, without the host."""
    found: dict[str, str] = {}
    keys = list(levels)
    for key in keys:
        domain = sources.in_file.get(key) or _cloud(key, sources.labels)
        if not domain and key == keys[-1]:
            domain = _switches(sources.neighbors)
        if domain and key not in sources.labels:
            found[key] = digest(domain)
    return found


def _cloud(level: str, labels: Mapping[str, str]) -> str:
    return next((labels[key] for key in CLOUD_LEVELS.get(level, ()) if labels.get(key)), "")


def _switches(neighbors: Iterable[Neighbor]) -> str:
    """Return the switches as one domain: nodes with all rails on the same switches share it."""
    return "_".join(sorted({neighbor.name for neighbor in neighbors}))
