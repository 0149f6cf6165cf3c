"""The objects of isolated networks: Muster's own three kinds, and Multus' attachment.

::

    VNIPool      written by an operator: the VNIs, and for which pods        (cluster-scoped)
    JobNetwork   written by the leader: the VNI of one gang; named after the VNI, so that
                 the API server refuses a second one                         (cluster-scoped)
    NodeNetwork  written by an agent: the VNIs with devices on its node; named after the node
    NetworkAttachmentDefinition   written by the leader: what Multus reads when a member
                 starts (k8s.cni.cncf.io/v1, in the gang's namespace)

A JobNetwork carries one label per node that it is on. An agent watches with that label, so it
is sent the networks of its own node and no others.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from muster.kube import names
from muster.kube.resources import Resource
from muster.kube.wire import LabelSelector, ObjectMeta, Wire

NETWORK_PREFIX: Final = "vni-"
ATTACHMENT_PREFIX: Final = "muster-vni-"
BRIDGE_PREFIX: Final = "mvb"  # a device's name has 15 octets; a VNI has eight digits
VXLAN_PREFIX: Final = "mvx"
INTERFACE: Final = "job0"  # in the pod; what NCCL_SOCKET_IFNAME is set to
FINALIZER: Final = names.PREFIX + "vni"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "muster"
CNI_VERSION: Final = "0.3.1"  # all releases of the plugins that are in use support it
_ON_NODE: Final = "node." + names.PREFIX
_DIGEST_BYTES: Final = 8


class VniRange(Wire, frozen=True):
    """VNIs from ``first`` to ``last``, both included."""

    first: int = 0
    last: int = 0


class VniPoolSpec(Wire, frozen=True):
    """What the operator writes; the API server fills in the defaults of the definition."""

    range: VniRange = VniRange(first=1000, last=2000)
    federation: VniRange | None = None
    #: The pods that the pool is for; ``None``: all.
    pod_selector: LabelSelector | None = None
    #: The namespaces that the pool is for; ``None``: all.
    namespace_selector: LabelSelector | None = None
    subnet: str = "198.18.0.0/15"
    mtu: int = 0
    port: int = 4789


class PoolCondition(Wire, frozen=True):
    """meta/v1 Condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class VniPoolStatus(Wire, frozen=True):
    """What the leader reports of a pool."""

    size: int = 0
    used: int = 0
    conditions: tuple[PoolCondition, ...] = ()


class VniPool(Wire, frozen=True):
    """muster.dev/v1alpha1 VNIPool."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VniPoolSpec = VniPoolSpec()
    status: VniPoolStatus = VniPoolStatus()


class Peer(Wire, frozen=True):
    """A node of a network and its address in the underlay."""

    name: str = ""
    address: str = ""


class JobNetworkSpec(Wire, frozen=True):
    """What the leader decided for the network of one gang."""

    vni: int = 0
    #: Name of the VNIPool.
    pool: str = ""
    #: Name of the gang, in ``namespace``.
    gang: str = ""
    namespace: str = ""
    subnet: str = ""
    #: Of the devices and of the pods' interfaces.
    mtu: int = 0
    #: UDP port of VXLAN.
    port: int = 0
    #: Those that host members.
    nodes: tuple[Peer, ...] = ()


class JobNetwork(Wire, frozen=True):
    """muster.dev/v1alpha1 JobNetwork."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobNetworkSpec = JobNetworkSpec()


class NodeNetworkStatus(Wire, frozen=True):
    """What an agent reports of its node."""

    #: Of the node in the underlay.
    address: str = ""
    #: Of the underlay.
    mtu: int = 0
    #: VNIs with devices on this node, or with devices that are about to be made.
    vnis: tuple[int, ...] = ()
    #: VNIs with all their devices.
    ready: tuple[int, ...] = ()


class NodeNetwork(Wire, frozen=True):
    """muster.dev/v1alpha1 NodeNetwork."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeNetworkStatus = NodeNetworkStatus()


class Attachment(Wire, frozen=True):
    """k8s.cni.cncf.io/v1 NetworkAttachmentDefinition, of which only the metadata is read."""

    metadata: ObjectMeta = ObjectMeta()


GROUP: Final = names.PREFIX.rstrip("/")
VERSION: Final = "v1alpha1"
POOLS: Final = Resource(GROUP, VERSION, "vnipools", VniPool, namespaced=False)
NETWORKS: Final = Resource(GROUP, VERSION, "jobnetworks", JobNetwork, namespaced=False)
NODE_NETWORKS: Final = Resource(GROUP, VERSION, "nodenetworks", NodeNetwork, namespaced=False)
ATTACHMENTS: Final = Resource("k8s.cni.cncf.io", "v1", "network-attachment-definitions", Attachment)


def network_name(vni: int) -> str:
    """Return the name of the only JobNetwork that a VNI can have."""
    return f"{NETWORK_PREFIX}{vni}"


def attachment_name(vni: int) -> str:
    """Return the name of the NetworkAttachmentDefinition of a VNI."""
    return f"{ATTACHMENT_PREFIX}{vni}"


def bridge_name(vni: int) -> str:
    """Return the name of the bridge on every node of the network."""
    return f"{BRIDGE_PREFIX}{vni}"


def vxlan_name(vni: int) -> str:
    """Return the name of the VXLAN device on every node of the network."""
    return f"{VXLAN_PREFIX}{vni}"


def node_label(node: str) -> str:
    """Return the label key for a node: a digest, because names may be longer than keys."""
    return _ON_NODE + blake2b(node.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def node_labels(nodes: Iterable[Peer]) -> dict[str, str]:
    """Return the labels of a network on these nodes."""
    return {node_label(node.name): "" for node in nodes}


def network_body(spec: JobNetworkSpec) -> dict[str, object]:
    """Return the JobNetwork to create. Its finalizer stays until no node has devices of it."""
    return {
        "apiVersion": NETWORKS.api_version,
        "kind": "JobNetwork",
        "metadata": {
            "name": network_name(spec.vni),
            "labels": {MANAGED_BY: MANAGER, **node_labels(spec.nodes)},
            "finalizers": [FINALIZER],
        },
        "spec": msgspec.to_builtins(spec),
    }


def nodes_patch(network: JobNetwork, nodes: Sequence[Peer]) -> dict[str, object]:
    """Return the merge patch that puts a network on these nodes and on no others."""
    labels: dict[str, str | None] = {
        key: None for key in network.metadata.labels if key.startswith(_ON_NODE)
    }
    return {
        "metadata": {"uid": network.metadata.uid, "labels": labels | node_labels(nodes)},
        "spec": {"nodes": [msgspec.to_builtins(node) for node in nodes]},
    }


def freed_patch(network: JobNetwork) -> dict[str, object]:
    """Return the merge patch without the finalizer: a deleted network goes, and frees its VNI."""
    return {"metadata": {"uid": network.metadata.uid, "finalizers": None}}


def attachment_body(spec: JobNetworkSpec) -> dict[str, object]:
    """Return what Multus hands to the bridge plugin; the address comes with each pod.

    No gateway, no masquerading, no address on the bridge: the host is not in the network.
    """
    config = {
        "cniVersion": CNI_VERSION,
        "name": attachment_name(spec.vni),
        "type": "bridge",
        "bridge": bridge_name(spec.vni),
        "mtu": spec.mtu,
        "isGateway": False,
        "ipMasq": False,
        "capabilities": {"ips": True},
        "ipam": {"type": "static"},
    }
    return {
        "apiVersion": ATTACHMENTS.api_version,
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": attachment_name(spec.vni),
            "namespace": spec.namespace,
            "labels": {MANAGED_BY: MANAGER},
        },
        "spec": {"config": msgspec.json.encode(config).decode()},
    }


def node_body(node: str, status: NodeNetworkStatus) -> Mapping[str, object]:
    """Return a node's whole NodeNetwork; as a merge patch it replaces the whole status."""
    said = {name: getattr(status, name) for name in status.__struct_fields__}
    return {
        "apiVersion": NODE_NETWORKS.api_version,
        "kind": "NodeNetwork",
        "metadata": {"name": node},
        "status": said,
    }
