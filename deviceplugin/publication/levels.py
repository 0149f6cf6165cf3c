"""Where a node stands in the network: labels of Muster's levels, from whoever knows.

For each level of the cluster the first source that knows wins::

    a file that names nodes (a mounted ConfigMap)   the operator said so
    labels that the cloud or topograph writes       CLOUD_LEVELS
    the switches that the node's ports hear (LLDP)  the lowest level above the host alone

A level's label that somebody else has set is left alone, and so are nodes whose levels are the
cloud's labels themselves: nothing has to be copied there.
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

# Label keys of those who know the network, by the level of ours that they mean.
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
    """A topology file cannot be used; says which entry and why."""


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: tuple[str, ...]
    levels: dict[str, str]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    groups: tuple[_Group, ...]


@dataclass(frozen=True, slots=True)
class LevelSources:
    """What is known of one node. ``labels``: those of its Node object that are not ours."""

    labels: Mapping[str, str]
    told: Mapping[str, str]
    neighbors: tuple[Neighbor, ...] = ()


def told_by(data: bytes, node: str, *, source: str) -> dict[str, str]:
    """Return what a topology file says of ``node``: label key → domain.

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
        domain = sources.told.get(key) or _cloud(key, sources.labels)
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
