"""The files that a node's containerd and kubelet read. What is said here was tried, key by key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from support.kubelets.realnode import images, services
from support.machine import quickyaml

from loadtest.testbed.controlplane.nodeassets import NodeAssets

KUBELET_PORT: Final = 10250  # free: every node has a network of its own
_SUBNET: Final = "10.88.0.0/24"  # of the pods; never leaves the node's network


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What differs between nodes; the defaults are one plain node."""

    name: str = "node-a"
    labels: Mapping[str, str] = field(default_factory=dict)
    numa_nodes: int = 0  # that the kubelet is made to see; 0: what the machine has
    topology_manager_policy: str = "none"  # best-effort, restricted, single-numa-node
    status_every_s: int = 1  # nodeStatusUpdateFrequency: how soon allocatable shows a change
    # Pods reach the machine and it reaches them, and they have Services: see ``services.py``.
    connected: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kubelet: Mapping[str, Any] = field(default_factory=dict)  # fields of KubeletConfiguration


def containerd(directory: Path, private: Path, assets: NodeAssets) -> str:
    """Return containerd's configuration (version 3, that of containerd 2)."""
    cri = '[plugins."io.containerd.cri.v1.runtime"'
    return f"""\
version = 3
imports = []
root = "{private}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{images.PAUSE}"
{cri}]
  restrict_oom_score_adj = true  # lowering it needs CAP_SYS_RESOURCE, which root may lack
  disable_apparmor = true
  cdi_spec_dirs = ["{directory}/cdi", "/var/run/cdi"]
{cri}.cni]
  bin_dirs = ["{assets.cni}"]
  conf_dir = "{directory}/cni"
{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  container_annotations = ["*"]  # else those of AllocateResponse end here
{cri}.containerd.runtimes.runc.options]
  BinaryName = "{assets.runc_unfiltered}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{private}/opt"
"""


def network(connected: str) -> str:
    """Return the CNI configuration: a bridge, and addresses of the node's own subnet.

    ``connected`` is another subnet, whose pods have a way out of the node; "": they have none.
    """
    ipam: dict[str, Any] = {"type": "host-local", "ranges": [[{"subnet": connected or _SUBNET}]]}
    if connected:
        ipam["routes"] = [{"dst": "0.0.0.0/0"}]
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "ipam": ipam}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]})


def kubelet(directory: Path, options: NodeOptions) -> str:
    """Return a KubeletConfiguration."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,  # the default refuses a machine with cgroup v1 since 1.35
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "oomScoreAdj": 0,  # lowering it needs CAP_SYS_RESOURCE
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        # Only the machine can reach the kubelet, and the API server is not to need certificates.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "containerRuntimeEndpoint": f"unix://{directory}/containerd.sock",
        "podLogsDir": f"{directory}/log/pods",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "nodeStatusUpdateFrequency": f"{options.status_every_s}s",
        "nodeStatusReportFrequency": "10s",
        "syncFrequency": "5s",
        "evictionHard": {  # a full disk or memory of the machine is not the tests' matter
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "topologyManagerPolicy": options.topology_manager_policy,
        "featureGates": dict(options.feature_gates),
    }
    if options.connected:
        config |= {"clusterDNS": [services.DNS], "clusterDomain": services.DOMAIN}
    return yaml.safe_dump(config | dict(options.kubelet))


def kubelet_user(kubeconfig: Path, node: str) -> str:
    """Return the kubeconfig with its user made the node's kubelet, by impersonation."""
    config = quickyaml.load(kubeconfig.read_text())
    (user,) = config["users"]
    user["user"] |= {"as": f"system:node:{node}", "as-groups": ["system:nodes"]}
    return yaml.safe_dump(config)
